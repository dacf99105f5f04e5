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

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/evaluate"
	"github.com/llmfleet/llmfleet/internal/tenant"
)

var _ connector.Traces = (*logsConnector)(nil)

// logsConnector tells of every tenant, each window.
type logsConnector struct {
	part
	next     consumer.Logs
	loop     *evaluate.Loop
	journals *tenant.Journals // guarded by the core's mu; but one of a window that ended, by who tells it
	told     atomic.Int64     // tenants, at the end of the last window
	instance string
	version  string
}

func newLogsConnector(c *core, set connector.Settings, next consumer.Logs) *logsConnector {
	l := &logsConnector{part: part{core: c}, next: next, instance: emit.Instance(set.ID), version: set.BuildInfo.Version}
	l.loop = evaluate.New(c.config.Events.Window, 0, l.evaluate)
	return l
}

// Start begins to count.
func (l *logsConnector) Start(context.Context, component.Host) error {
	if err := l.join(func() {
		l.journals = tenant.NewJournals(l.config.journalOptions(), instant(time.Now()))
		l.logs = l
	}); err != nil {
		return err
	}
	l.loop.Start()
	return nil
}

// Shutdown tells what is known of the open window.
func (l *logsConnector) Shutdown(ctx context.Context) (err error) {
	l.stopped.Do(func() {
		started := l.leave(func() {
			l.logs = nil
			l.journals.End(instant(time.Now()))
		})
		if err = l.loop.Shutdown(ctx); err == nil && started {
			l.evaluate(ctx, time.Now())
		}
		l.release()
	})
	return err
}

// evaluate tells of everyone in the window that ends at end, and before that of
// windows that ended while it was busy. Spans go on being counted, in the next.
func (l *logsConnector) evaluate(ctx context.Context, end time.Time) {
	began := time.Now()
	l.mu.Lock()
	l.journals.Turn(instant(end))
	closing := l.journals.Next()
	l.mu.Unlock()
	told := int64(0)
	for closing != nil {
		told = l.tell(ctx, closing)
		l.mu.Lock()
		l.journals.Told()
		closing = l.journals.Next()
		l.mu.Unlock()
	}
	l.told.Store(told)
	l.telemetry.ConnectorTenantUsageEvaluationDuration.Record(ctx, time.Since(began).Seconds(), ofLogs)
	l.explain(began)
}

// tell sends the records of a window that ended, and returns how many there are.
func (l *logsConnector) tell(ctx context.Context, closing *tenant.Journal) (told int64) {
	p := l.newPost(time.Now())
	closing.Each(func(r *tenant.Record) {
		told++
		p.window(r)
		if p.full() {
			p.send(ctx)
		}
	})
	p.send(ctx)
	return told
}
