// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleeteventsconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"

	"github.com/llmfleet/llmfleet/connector/fleeteventsconnector/internal/metadata"
)

// NewFactory returns the factory of the fleet_events connector.
func NewFactory() connector.Factory {
	return connector.NewFactory(
		metadata.Type,
		createDefaultConfig,
		connector.WithMetricsToLogs(createMetricsToLogs, metadata.MetricsToLogsStability),
	)
}

func createMetricsToLogs(
	_ context.Context, set connector.Settings, config component.Config, next consumer.Logs,
) (connector.Metrics, error) {
	return newConnector(set, config.(*Config), next)
}
