// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleeteventsconnector

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/llmfleet/llmfleet/connector/fleeteventsconnector/internal/metadata"
)

// telemetry is what the connector tells about itself.
type telemetry struct {
	events, lost metric.Int64Counter
	shutdown     func()
}

// tell counts events by name.
func (t *telemetry) tell(ctx context.Context, events map[string]int64) {
	for name, n := range events {
		t.events.Add(ctx, n, metric.WithAttributes(attribute.String("event", name)))
	}
}

// lose counts events that are not told.
func (t *telemetry) lose(ctx context.Context, events int) {
	if events > 0 {
		t.lost.Add(ctx, int64(events))
	}
}

var (
	ofFlags    = metric.WithAttributes(attribute.String("followed", "flags"))
	ofVariants = metric.WithAttributes(attribute.String("followed", "variants"))
)

// report registers what is read when telemetry is collected.
func (c *eventsConnector) report(set component.TelemetrySettings) error {
	b, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return err
	}
	c.telemetry = telemetry{b.ConnectorFleetEventsEvents, b.ConnectorFleetEventsLost, b.Shutdown}
	return errors.Join(
		b.RegisterConnectorFleetEventsSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			o.Observe(int64(len(c.flagged.of)), ofFlags)
			o.Observe(int64(len(c.variants.of)), ofVariants)
			return nil
		}),
		b.RegisterConnectorFleetEventsSeriesLimitCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(c.config.MaxSeries), ofFlags)
			o.Observe(int64(c.config.MaxSeries), ofVariants)
			return nil
		}),
		b.RegisterConnectorFleetEventsOverflowCallback(func(_ context.Context, o metric.Int64Observer) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			o.Observe(c.flagged.overflow, ofFlags)
			o.Observe(c.variants.overflow, ofVariants)
			return nil
		}),
	)
}
