// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package k8sfleetreceiver

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/evaluate"
	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/capacity"
	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/metadata"
)

var _ receiver.Metrics = (*metricsReceiver)(nil)

// metricsReceiver tells the capacity, once each collection interval, from the
// collector that watches.
type metricsReceiver struct {
	part
	next     consumer.Metrics
	loop     *evaluate.Loop
	writer   *capacityWriter
	instance string
}

func newMetricsReceiver(c *core, set receiver.Settings, next consumer.Metrics) *metricsReceiver {
	config := metadata.NewDefaultMetricsBuilderConfig()
	config.Metrics = c.config.Metrics
	m := &metricsReceiver{
		part: part{core: c}, next: next, instance: emit.Instance(set.ID),
		writer: newCapacityWriter(metadata.NewMetricsBuilder(config, set)),
	}
	m.loop = evaluate.New(c.config.CollectionInterval, 0, m.tell)
	return m
}

// Start begins to watch and to tell.
func (m *metricsReceiver) Start(ctx context.Context, host component.Host) error {
	if err := m.join(ctx, host); err != nil {
		return err
	}
	m.loop.Start()
	return nil
}

// Shutdown ends.
func (m *metricsReceiver) Shutdown(ctx context.Context) error {
	return m.shutdown(ctx, m.loop.Shutdown)
}

// tell sends the account of a moment. What the next component refuses is not sent
// again: the next account replaces it.
func (m *metricsReceiver) tell(ctx context.Context, now time.Time) {
	store := m.inventory()
	if store == nil {
		return
	}
	report := store.Report(now)
	m.overflow.Store(&report.Overflow)
	m.writer.write(&report, now)
	resource := pcommon.NewResource()
	resource.Attributes().PutStr("service.name", "llmfleet")
	resource.Attributes().PutStr("service.instance.id", m.instance)
	metrics := m.writer.builder.Emit(metadata.WithResource(resource))
	if metrics.DataPointCount() == 0 {
		return
	}
	if err := m.next.ConsumeMetrics(ctx, metrics); err != nil {
		m.logger.Warn("the next component refused the capacity", zap.Error(err))
	}
}

// observeCapacity registers what the account tells about itself.
func (c *core) observeCapacity() error {
	return errors.Join(
		c.telemetry.RegisterReceiverK8sFleetCapacityOverflowCallback(func(_ context.Context, o metric.Int64Observer) error {
			now := c.lastOverflow()
			for limit, n := range map[metadata.AttributeLimit]int{metadata.AttributeLimitRows: now.Rows, metadata.AttributeLimitGpus: now.Excess} {
				o.Observe(int64(n), metric.WithAttributes(attribute.String("limit", limit.String())))
			}
			return nil
		}),
		c.telemetry.RegisterReceiverK8sFleetRefusedCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(c.lastOverflow().Objects))
			return nil
		}),
	)
}

func (c *core) lastOverflow() capacity.Overflow {
	if last := c.overflow.Load(); last != nil {
		return *last
	}
	return capacity.Overflow{}
}
