// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetidentityprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"

	"github.com/llmfleet/llmfleet/processor/fleetidentityprocessor/internal/metadata"
)

const componentType = "fleet_identity"

// NewFactory returns the factory of the fleet_identity processor.
func NewFactory() processor.Factory {
	return processor.NewFactory(
		metadata.Type,
		createDefaultConfig,
		processor.WithMetrics(createMetrics, metadata.MetricsStability),
		processor.WithTraces(createTraces, metadata.TracesStability),
		processor.WithLogs(createLogs, metadata.LogsStability),
	)
}

func createMetrics(
	_ context.Context, set processor.Settings, config component.Config, next consumer.Metrics,
) (processor.Metrics, error) {
	c, err := acquire(set, config.(*Config))
	if err != nil {
		return nil, err
	}
	return &metricsProcessor{part: part{core: c, derived: next}, next: next}, nil
}

func createTraces(
	_ context.Context, set processor.Settings, config component.Config, next consumer.Traces,
) (processor.Traces, error) {
	c, err := acquire(set, config.(*Config))
	if err != nil {
		return nil, err
	}
	return &tracesProcessor{part: part{core: c}, next: next}, nil
}

func createLogs(
	_ context.Context, set processor.Settings, config component.Config, next consumer.Logs,
) (processor.Logs, error) {
	c, err := acquire(set, config.(*Config))
	if err != nil {
		return nil, err
	}
	return &logsProcessor{part: part{core: c}, next: next}, nil
}
