// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canarydeltaprocessor

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/internal/window"
	"github.com/llmfleet/llmfleet/processor/canarydeltaprocessor/internal/metadata"
)

// outcome is what evaluations tell the self-telemetry.
type outcome struct {
	duration metric.Float64Histogram
	mu       sync.Mutex
	withheld [reasonCount]uint64
	fleets   int
}

func (o *outcome) evaluated(ctx context.Context, withheld *[reasonCount]uint64, fleets int, took time.Duration) {
	o.duration.Record(ctx, took.Seconds())
	o.mu.Lock()
	defer o.mu.Unlock()
	o.withheld, o.fleets = *withheld, fleets
}

// attributes are those of what is told of one input.
func (in *input) attributes(more ...attribute.KeyValue) metric.ObserveOption {
	return metric.WithAttributes(append(more, attribute.String("input", in.name))...)
}

// report registers what the processor tells about itself. It is read when
// telemetry is collected; nothing is recorded point by point.
func (p *canaryProcessor) report(b *metadata.TelemetryBuilder) error {
	p.outcome.duration = b.ProcessorCanaryDeltaEvaluationDuration
	return errors.Join(
		b.RegisterProcessorCanaryDeltaIgnoredCallback(p.each(func(o metric.Int64Observer, in *input) {
			for r := range intake.ReasonCount {
				if n := in.reader.Tally().Ignored(r); n > 0 && r != intake.Reason(window.Reset) {
					o.Observe(int64(n), in.attributes(attribute.String("reason", r.String()))) //nolint:gosec // a count
				}
			}
		})),
		b.RegisterProcessorCanaryDeltaResetsCallback(p.each(func(o metric.Int64Observer, in *input) {
			o.Observe(int64(in.reader.Tally().Ignored(intake.Reason(window.Reset))), in.attributes()) //nolint:gosec // a count
		})),
		b.RegisterProcessorCanaryDeltaObservationsCallback(p.each(func(o metric.Int64Observer, in *input) {
			in.reader.Tally().Observed(func(dialect string, signal fleet.Signal, points uint64) {
				o.Observe(int64(points), in.attributes(attribute.String("dialect", dialect), attribute.String("signal", signal.String()))) //nolint:gosec // a count
			})
		})),
		b.RegisterProcessorCanaryDeltaMembersCallback(p.each(func(o metric.Int64Observer, in *input) {
			members, _ := in.registry.Members()
			o.Observe(int64(members), in.attributes())
		})),
		b.RegisterProcessorCanaryDeltaMembersLimitCallback(p.each(func(o metric.Int64Observer, in *input) {
			o.Observe(int64(p.config.MaxReplicas), in.attributes())
		})),
		p.reportOutcome(b),
	)
}

// each observes something of every input.
func (p *canaryProcessor) each(observe func(metric.Int64Observer, *input)) metric.Int64Callback {
	return func(_ context.Context, o metric.Int64Observer) error {
		for _, in := range p.inputs {
			observe(o, in)
		}
		return nil
	}
}

// reportOutcome registers what is told of evaluations.
func (p *canaryProcessor) reportOutcome(b *metadata.TelemetryBuilder) error {
	return errors.Join(
		b.RegisterProcessorCanaryDeltaWithheldCallback(func(_ context.Context, o metric.Int64Observer) error {
			p.outcome.mu.Lock()
			defer p.outcome.mu.Unlock()
			for r, n := range p.outcome.withheld {
				if n > 0 {
					o.Observe(int64(n), metric.WithAttributes(attribute.String("reason", reason(r).String()))) //nolint:gosec // a count
				}
			}
			return nil
		}),
		b.RegisterProcessorCanaryDeltaFleetsCallback(func(_ context.Context, o metric.Int64Observer) error {
			p.outcome.mu.Lock()
			defer p.outcome.mu.Unlock()
			o.Observe(int64(p.outcome.fleets))
			return nil
		}),
		b.RegisterProcessorCanaryDeltaFleetsLimitCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(p.config.MaxFleets))
			return nil
		}),
		b.RegisterProcessorCanaryDeltaSkippedEvaluationsCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(p.loop.Skipped())) //nolint:gosec // a count
			return nil
		}),
	)
}
