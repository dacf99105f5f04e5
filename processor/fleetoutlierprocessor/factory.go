// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"

	"github.com/llmfleet/llmfleet/processor/fleetoutlierprocessor/internal/metadata"
)

const componentType = "fleet_outlier"

// NewFactory returns the factory of the fleet_outlier processor.
func NewFactory() processor.Factory {
	return processor.NewFactory(
		metadata.Type,
		createDefaultConfig,
		processor.WithMetrics(createMetrics, metadata.MetricsStability),
	)
}

func createMetrics(
	_ context.Context, set processor.Settings, config component.Config, next consumer.Metrics,
) (processor.Metrics, error) {
	return newProcessor(set, config.(*Config), next)
}
