// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstartconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"

	"github.com/llmfleet/llmfleet/connector/coldstartconnector/internal/metadata"
)

const componentType = "cold_start"

// NewFactory returns the factory of the cold_start connector.
func NewFactory() connector.Factory {
	return connector.NewFactory(
		metadata.Type,
		createDefaultConfig,
		connector.WithLogsToTraces(createLogsToTraces, metadata.LogsToTracesStability),
		connector.WithLogsToMetrics(createLogsToMetrics, metadata.LogsToMetricsStability),
		connector.WithTracesToTraces(createTracesToTraces, metadata.TracesToTracesStability),
		connector.WithTracesToMetrics(createTracesToMetrics, metadata.TracesToMetricsStability),
		connector.WithMetricsToTraces(createMetricsToTraces, metadata.MetricsToTracesStability),
		connector.WithMetricsToMetrics(createMetricsToMetrics, metadata.MetricsToMetricsStability),
	)
}

func createLogsToTraces(
	_ context.Context, set connector.Settings, config component.Config, next consumer.Traces,
) (connector.Logs, error) {
	return newPart(set, config, part{input: logs, traces: next})
}

func createLogsToMetrics(
	_ context.Context, set connector.Settings, config component.Config, next consumer.Metrics,
) (connector.Logs, error) {
	return newPart(set, config, part{input: logs, metrics: next})
}

func createTracesToTraces(
	_ context.Context, set connector.Settings, config component.Config, next consumer.Traces,
) (connector.Traces, error) {
	return newPart(set, config, part{input: traces, traces: next})
}

func createTracesToMetrics(
	_ context.Context, set connector.Settings, config component.Config, next consumer.Metrics,
) (connector.Traces, error) {
	return newPart(set, config, part{input: traces, metrics: next})
}

func createMetricsToTraces(
	_ context.Context, set connector.Settings, config component.Config, next consumer.Traces,
) (connector.Metrics, error) {
	return newPart(set, config, part{input: metrics, traces: next})
}

func createMetricsToMetrics(
	_ context.Context, set connector.Settings, config component.Config, next consumer.Metrics,
) (connector.Metrics, error) {
	return newPart(set, config, part{input: metrics, metrics: next})
}
