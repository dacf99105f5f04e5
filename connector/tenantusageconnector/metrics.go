// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantusageconnector

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/llmfleet/llmfleet/internal/evaluate"
	"github.com/llmfleet/llmfleet/internal/tenant"
)

var _ connector.Traces = (*metricsConnector)(nil)

// metricsConnector tells the accounts of tenants and tiers, each interval.
type metricsConnector struct {
	part
	next   consumer.Metrics
	loop   *evaluate.Loop
	ledger *tenant.Ledger // since the start; guarded by the core's mu
	teller *teller
	last   time.Time    // evaluation
	told   atomic.Int64 // tenants, in that evaluation
}

func newMetricsConnector(c *core, set connector.Settings, next consumer.Metrics) *metricsConnector {
	m := &metricsConnector{part: part{core: c}, next: next, teller: newTeller(c.config, set)}
	m.loop = evaluate.New(c.config.Interval, 0, m.evaluate)
	return m
}

// Start begins to count.
func (m *metricsConnector) Start(context.Context, component.Host) error {
	began := instant(time.Now())
	if err := m.join(func() {
		m.ledger = tenant.NewLedger(m.config.ledgerOptions(), began)
		m.metrics = m
	}); err != nil {
		return err
	}
	m.loop.Start()
	return nil
}

// Shutdown tells the accounts once more as they are: nothing that was counted is
// left out of the sums.
func (m *metricsConnector) Shutdown(ctx context.Context) (err error) {
	m.stopped.Do(func() {
		started := m.leave(func() { m.metrics = nil })
		if err = m.loop.Shutdown(ctx); err == nil && started {
			m.evaluate(ctx, time.Now())
		}
		m.release()
	})
	return err
}

// evaluate ranks tenants and tells their accounts, which have the time end.
func (m *metricsConnector) evaluate(ctx context.Context, end time.Time) {
	if !end.After(m.last) { // at the shutdown right after an evaluation
		return
	}
	m.last = end
	began := time.Now()
	for _, md := range m.close(ctx, end) {
		if err := m.next.ConsumeMetrics(ctx, md); err != nil {
			m.logger.Error("metrics of tenants were refused: what they count is in the next ones", zap.Error(err))
		}
	}
	m.telemetry.ConnectorTenantUsageEvaluationDuration.Record(ctx, time.Since(began).Seconds(), ofMetrics)
	m.explain(began)
}

// close writes the accounts. It sends nothing: spans wait for it.
func (m *metricsConnector) close(ctx context.Context, end time.Time) []pmetric.Metrics {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.teller.begin(instant(end))
	told := 0
	m.ledger.Close(instant(end), func(b *tenant.Books) {
		told += len(b.Tenants)
		m.teller.tell(ctx, b)
	})
	m.told.Store(int64(told))
	return m.teller.end(ctx)
}
