// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstartconnector

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/llmfleet/llmfleet/internal/judge/coldstart"
	"github.com/llmfleet/llmfleet/internal/lifecycle"
)

const reasonCount = coldstart.Future + 1

// reasons are why facts were not taken, as self-telemetry calls it.
var reasons = [reasonCount]string{
	coldstart.Duplicate: "duplicate", coldstart.Limit: "limit", coldstart.Over: "over",
	coldstart.Old: "old", coldstart.Timeless: "timeless", coldstart.Future: "future",
}

// outcomes are how starts end.
var outcomes = [...]string{coldstart.Served: "served", coldstart.Gone: "gone", coldstart.Expired: "expired"}

var inOutcome = func() (all [len(outcomes)]metric.MeasurementOption) {
	for i, text := range outcomes {
		all[i] = metric.WithAttributes(attribute.String("outcome", text))
	}
	return all
}()

// report registers what the connector tells about itself.
func (c *core) report() error {
	return errors.Join(
		c.telemetry.RegisterConnectorColdStartFactsCallback(func(_ context.Context, o metric.Int64Observer) error {
			for name := range c.tally.taken {
				if n := c.tally.taken[name].Load(); n > 0 {
					o.Observe(n, metric.WithAttributes(attribute.String("fact", lifecycle.Name(name).String())))
				}
			}
			return nil
		}),
		c.telemetry.RegisterConnectorColdStartIgnoredCallback(func(_ context.Context, o metric.Int64Observer) error {
			for reason := range c.tally.ignored {
				if n := c.tally.ignored[reason].Load(); n > 0 {
					o.Observe(n, metric.WithAttributes(attribute.String("reason", reasons[reason])))
				}
			}
			return nil
		}),
		c.telemetry.RegisterConnectorColdStartPodsCallback(func(_ context.Context, o metric.Int64Observer) error {
			c.mu.Lock()
			open, remembered := c.book.Pods()
			c.mu.Unlock()
			o.Observe(int64(open), metric.WithAttributes(attribute.String("state", "open")))
			o.Observe(int64(remembered), metric.WithAttributes(attribute.String("state", "remembered")))
			return nil
		}),
		c.telemetry.RegisterConnectorColdStartWaitingCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(c.outbox.len()))
			return nil
		}),
	)
}
