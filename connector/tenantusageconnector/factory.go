// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantusageconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"

	"github.com/llmfleet/llmfleet/connector/tenantusageconnector/internal/metadata"
)

const componentType = "tenant_usage"

// NewFactory returns the factory of the tenant_usage connector.
func NewFactory() connector.Factory {
	return connector.NewFactory(
		metadata.Type,
		createDefaultConfig,
		connector.WithTracesToMetrics(createTracesToMetrics, metadata.TracesToMetricsStability),
		connector.WithTracesToLogs(createTracesToLogs, metadata.TracesToLogsStability),
	)
}

func createTracesToMetrics(
	_ context.Context, set connector.Settings, config component.Config, next consumer.Metrics,
) (connector.Traces, error) {
	c, err := acquire(set, config.(*Config))
	if err != nil {
		return nil, err
	}
	return newMetricsConnector(c, set, next), nil
}

func createTracesToLogs(
	_ context.Context, set connector.Settings, config component.Config, next consumer.Logs,
) (connector.Traces, error) {
	c, err := acquire(set, config.(*Config))
	if err != nil {
		return nil, err
	}
	return newLogsConnector(c, set, next), nil
}
