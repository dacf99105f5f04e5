// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetidentityprocessor

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/processor/fleetidentityprocessor/internal/metadata"
)

// report registers what the processor tells about itself.
func (c *core) report(b *metadata.TelemetryBuilder) error {
	tally := c.clerk.Tally()
	return errors.Join(
		b.RegisterProcessorFleetIdentityUnidentifiedCallback(func(_ context.Context, o metric.Int64Observer) error {
			for r := range intake.ReasonCount {
				if n := tally.Ignored(r); n > 0 {
					o.Observe(int64(n), metric.WithAttributes(attribute.String("reason", r.String()))) //nolint:gosec // a count
				}
			}
			return nil
		}),
		b.RegisterProcessorFleetIdentityMembersCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(c.directory.Count()))
			return nil
		}),
		b.RegisterProcessorFleetIdentityMembersLimitCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(c.config.MaxReplicas))
			return nil
		}),
	)
}
