// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstartconnector

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/internal/window"
)

// signal is what a part is given.
type signal uint8

const (
	logs signal = iota
	traces
	metrics
	signalCount
)

// part is what the connector of one pair of signals has of the core. Of those that
// are given the same signal, one reads it for all; of those that can send the same,
// one sends it.
type part struct {
	*core
	input   signal
	traces  consumer.Traces // where traces go; nil of those to metrics
	metrics consumer.Metrics
	stopped *sync.Once
}

var (
	_ connector.Logs    = (*part)(nil)
	_ connector.Traces  = (*part)(nil)
	_ connector.Metrics = (*part)(nil)
)

func newPart(set connector.Settings, config component.Config, p part) (*part, error) {
	c, err := cores.Acquire(config.(*Config), func() (*core, error) { return newCore(set, config.(*Config)) })
	if err != nil {
		return nil, err
	}
	p.core, p.stopped = c, new(sync.Once)
	return &p, nil
}

// Start starts the core with the first of its parts.
func (p *part) Start(ctx context.Context, host component.Host) error {
	if err := p.start(ctx, host); err != nil {
		return err
	}
	p.reading[p.input].Join(p)
	if p.traces != nil {
		p.tracing.Join(p)
	} else {
		p.measuring.Join(p)
	}
	return nil
}

// Shutdown stops the core with the last of its parts, and with the last that can
// send traces, or metrics: what comes after that one may be stopped already when
// the others are.
func (p *part) Shutdown(ctx context.Context) (err error) {
	p.stopped.Do(func() {
		p.reading[p.input].Leave(p)
		last := cores.Release(p.config)
		if last || p.tracing.Alone(p) || p.measuring.Alone(p) {
			err = p.loop.Shutdown(ctx)
		}
		p.tracing.Leave(p)
		p.measuring.Leave(p)
		if last {
			err = p.close(ctx, err)
		}
	})
	return err
}

// Capabilities says that input is not changed.
func (*part) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: false} }

// ConsumeLogs reads lifecycle facts, events of Kubernetes and lines of engines.
func (p *part) ConsumeLogs(_ context.Context, ld plog.Logs) error {
	if p.reading[logs].Holder() == p {
		p.lifecycle.ReadLogs(ld, instant(time.Now()), p.note)
	}
	return nil
}

// ConsumeTraces reads the spans of an engine's start, and of its first requests.
func (p *part) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	if p.reading[traces].Holder() == p {
		p.lifecycle.ReadTraces(td, p.note, p.link)
	}
	return nil
}

// ConsumeMetrics reads what kube-state-metrics and engines tell of starts.
func (p *part) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	if p.reading[metrics].Holder() == p {
		p.lifecycle.ReadMetrics(md, p.note)
	}
	return nil
}

func instant(t time.Time) window.Instant { return window.Instant(t.UnixNano()) }
