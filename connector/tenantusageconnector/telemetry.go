// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantusageconnector

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/llmfleet/llmfleet/connector/tenantusageconnector/internal/metadata"
	"github.com/llmfleet/llmfleet/internal/intake"
)

var (
	ofMetrics = metric.WithAttributes(attribute.String("output", "metrics"))
	ofLogs    = metric.WithAttributes(attribute.String("output", "logs"))
)

// extent is what a record tells of.
type extent uint8

const (
	ofWindow extent = iota
	ofPart          // of a window
	ofRequest
	extentCount
)

// inRecords are the extents as attributes of self-telemetry.
var inRecords = [extentCount]metric.MeasurementOption{
	ofWindow:  metric.WithAttributes(attribute.String("record", "window")),
	ofPart:    metric.WithAttributes(attribute.String("record", "partial")),
	ofRequest: metric.WithAttributes(attribute.String("record", "request")),
}

// report registers what the connector tells about itself.
func (c *core) report(set component.TelemetrySettings) (err error) {
	if c.telemetry, err = metadata.NewTelemetryBuilder(set); err != nil {
		return err
	}
	return errors.Join(
		c.telemetry.RegisterConnectorTenantUsageRequestsCallback(func(_ context.Context, o metric.Int64Observer) error {
			if requests := c.requests.Load(); requests != nil {
				for class := range intake.RequestClassCount {
					o.Observe(int64(requests.Observed(class)), metric.WithAttributes(attribute.String("class", class.String()))) //nolint:gosec // a count
				}
			}
			return nil
		}),
		c.telemetry.RegisterConnectorTenantUsageIgnoredCallback(func(_ context.Context, o metric.Int64Observer) error {
			requests := c.requests.Load()
			if requests == nil {
				return nil
			}
			for r := range intake.ReasonCount {
				if n := requests.Tally().Ignored(r); n > 0 {
					o.Observe(int64(n), metric.WithAttributes(attribute.String("reason", r.String()))) //nolint:gosec // a count
				}
			}
			return nil
		}),
		c.telemetry.RegisterConnectorTenantUsageMergedCallback(func(_ context.Context, o metric.Int64Observer) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.logs != nil {
				o.Observe(int64(c.logs.journals.Merged())) //nolint:gosec // a count
			}
			return nil
		}),
		c.telemetry.RegisterConnectorTenantUsageTenantsCallback(func(_ context.Context, o metric.Int64Observer) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.metrics != nil {
				o.Observe(c.metrics.told.Load(), ofMetrics)
			}
			if c.logs != nil {
				o.Observe(c.logs.told.Load(), ofLogs)
			}
			return nil
		}),
	)
}

// explain tells an operator now and then which spans were not used.
func (c *core) explain(now time.Time) {
	c.explaining.Lock()
	defer c.explaining.Unlock()
	c.explainer.Explain(c.requests.Load().Tally(), now, func(r intake.Reason, e *intake.Example, total uint64) {
		c.logger.Warn("spans of requests were not used, or not as a whole", zap.Stringer("reason", r),
			zap.String("source", e.Metric), zap.String("sender", e.Replica), zap.Uint64("so_far", total))
	})
}
