// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantshareprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"

	"github.com/llmfleet/llmfleet/processor/tenantshareprocessor/internal/metadata"
)

const componentType = "tenant_share"

// NewFactory returns the factory of the tenant_share processor.
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
