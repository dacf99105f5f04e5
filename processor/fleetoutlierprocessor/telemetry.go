// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/internal/judge/outlier"
	"github.com/llmfleet/llmfleet/internal/window"
	"github.com/llmfleet/llmfleet/processor/fleetoutlierprocessor/internal/metadata"
)

// outcome is what evaluations tell the self-telemetry.
type outcome struct {
	duration metric.Float64Histogram
	mu       sync.Mutex
	withheld [outlier.ReasonCount]uint64
}

func (o *outcome) evaluated(ctx context.Context, withheld *[outlier.ReasonCount]uint64, took time.Duration) {
	o.duration.Record(ctx, took.Seconds())
	o.mu.Lock()
	defer o.mu.Unlock()
	o.withheld = *withheld
}

func byReason(name string) metric.ObserveOption {
	return metric.WithAttributes(attribute.String("reason", name))
}

// report registers what the processor tells about itself. It is read when
// telemetry is collected; nothing is recorded point by point.
func (p *outlierProcessor) report(b *metadata.TelemetryBuilder) error {
	p.outcome.duration = b.ProcessorFleetOutlierEvaluationDuration
	tally := p.reader.Tally()
	return errors.Join(
		b.RegisterProcessorFleetOutlierIgnoredCallback(func(_ context.Context, o metric.Int64Observer) error {
			for r := range intake.ReasonCount {
				if n := tally.Ignored(r); n > 0 && r != intake.Reason(window.Reset) {
					o.Observe(int64(n), byReason(r.String())) //nolint:gosec // a count
				}
			}
			return nil
		}),
		b.RegisterProcessorFleetOutlierResetsCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(tally.Ignored(intake.Reason(window.Reset)))) //nolint:gosec // a count
			return nil
		}),
		b.RegisterProcessorFleetOutlierObservationsCallback(func(_ context.Context, o metric.Int64Observer) error {
			tally.Observed(func(engine string, signal fleet.Signal, points uint64) {
				o.Observe(int64(points), metric.WithAttributes( //nolint:gosec // a count
					attribute.String("dialect", engine), attribute.String("signal", signal.String())))
			})
			return nil
		}),
		b.RegisterProcessorFleetOutlierWithheldCallback(func(_ context.Context, o metric.Int64Observer) error {
			p.outcome.mu.Lock()
			defer p.outcome.mu.Unlock()
			for r, n := range p.outcome.withheld {
				if n > 0 {
					o.Observe(int64(n), byReason(outlier.Reason(r).String())) //nolint:gosec // a count
				}
			}
			return nil
		}),
		b.RegisterProcessorFleetOutlierMembersCallback(func(_ context.Context, o metric.Int64Observer) error {
			members, _ := p.registry.Members()
			o.Observe(int64(members))
			return nil
		}),
		b.RegisterProcessorFleetOutlierMembersLimitCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(p.config.MaxReplicas))
			return nil
		}),
		b.RegisterProcessorFleetOutlierSkippedEvaluationsCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(p.loop.Skipped())) //nolint:gosec // a count
			return nil
		}),
	)
}
