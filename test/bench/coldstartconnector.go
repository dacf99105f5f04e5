// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/connector/coldstartconnector"
	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

const (
	factsOfBatch   = 100
	coldStartsTTL  = 6 * time.Hour
	coldStartsPast = 3 * time.Hour // in which all of them are over
)

// coldStartConnector measures the same through cold_start: from log records to
// traces.
func coldStartConnector(ctx context.Context) (perSecond float64, err error) {
	batches, pods, ready, err := tellColdStartsAsLogs()
	if err != nil {
		return 0, err
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	factory := coldstartconnector.NewFactory()
	config := factory.CreateDefaultConfig().(*coldstartconnector.Config)
	config.Interval, config.Wait, config.TTL, config.MaxAge = time.Second, time.Second, coldStartsTTL, coldStartsTTL
	told := &startCount{most: int64(ready), all: make(chan struct{})}
	c, err := factory.CreateLogsToTraces(ctx, connectortest.NewNopSettings(factory.Type()), config, told)
	if err != nil {
		return 0, err
	}
	if err := c.Start(ctx, componenttest.NewNopHost()); err != nil {
		return 0, err
	}
	runtime.GC()
	began := processorTime()
	for _, ld := range batches {
		err = firstError(err, c.ConsumeLogs(ctx, ld))
	}
	waiting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	select {
	case <-told.all:
	case <-waiting.Done():
		err = firstError(err, fmt.Errorf("told %d starts of %d", told.starts.Load(), ready))
	}
	took := processorTime() - began
	return float64(pods) / took.Seconds(), firstError(err, c.Shutdown(ctx))
}

// tellColdStartsAsLogs are the facts of starts that are over, in batches, and of
// how many pods and starts they are that were told to be ready.
func tellColdStartsAsLogs() (batches []plog.Logs, pods, ready int, err error) {
	world := fleetsim.HardColdStarts("bench", startingPods)
	world.Begin = window.Instant(time.Now().Add(-coldStartsPast).UnixNano())
	facts := 0
	err = world.Play(seed,
		func(s *fleetsim.ColdStart) {
			pods += len(s.Pods)
			if s.ReadyTold {
				ready++
			}
		},
		func(_ window.Instant, f *lifecycle.Fact) {
			if facts%factsOfBatch == 0 {
				batches = append(batches, plog.NewLogs())
			}
			facts++
			rl := batches[len(batches)-1].ResourceLogs().AppendEmpty()
			emit.WriteFactResource(f, rl.Resource())
			emit.WriteFact(f, rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty())
		})
	return batches, pods, ready, err
}

// startCount counts traces, and closes a channel when nearly all are there.
type startCount struct {
	most   int64
	starts atomic.Int64
	done   atomic.Bool
	all    chan struct{}
}

// Capabilities says that traces are only read.
func (*startCount) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// ConsumeTraces counts the spans without a parent.
func (c *startCount) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				if span.ParentSpanID().IsEmpty() {
					c.starts.Add(1)
				}
			}
		}
	}
	if c.starts.Load() >= c.most*99/100 && c.done.CompareAndSwap(false, true) {
		close(c.all)
	}
	return nil
}
