// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package scenariotest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestConduct holds that consuming and judging do not stand in each other's way,
// whatever the next consumer does, and that a shutdown is safe at any time.
func (d *Deriver[C]) TestConduct(t *testing.T) {
	t.Helper()
	for name, test := range map[string]func(*testing.T){
		"ConsumeDoesNotWaitForAnEvaluation": d.consumeDoesNotWait,
		"ConsumeWhileEvaluating":            d.consumeWhileEvaluating,
		"BlockedOutput":                     d.blockedOutput,
		"RefusedOutput":                     d.refusedOutput,
		"Shutdown":                          d.shutdown,
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
	}
}

// consumeDoesNotWait holds an evaluation in its next consumer and feeds pages
// meanwhile.
func (d *Deriver[C]) consumeDoesNotWait(t *testing.T) {
	t.Helper()
	stage := d.Stage(t, d.Defaults())
	var held atomic.Int64
	release := make(chan struct{})
	stage.Take = func(context.Context, pmetric.Metrics) error {
		held.Add(1)
		<-release
		return nil
	}
	stage.Raise()
	stage.show("a")
	common := d.Common(stage.Config)
	Wait(stage.Began.Add(common.Pane / 2))
	stage.show("a")
	Wait(stage.Began.Add(common.Pane + common.Lateness))
	require.EqualValues(t, 1, held.Load(), "an evaluation is under way")
	// In a bubble, a call that waited would be a deadlock, and end the test.
	stage.show("a")
	stage.show("b")
	close(release)
	stage.Shutdown()
}

// consumeWhileEvaluating feeds pages from several goroutines while panes are
// judged, for the race detector, and loses none.
func (d *Deriver[C]) consumeWhileEvaluating(t *testing.T) {
	t.Helper()
	stage := d.Stage(t, d.Defaults())
	stage.Raise()
	const feeders, pages = 4, 200
	var group sync.WaitGroup
	for f := range feeders {
		group.Go(func() {
			for range pages {
				page := d.Page(fmt.Sprintf("target-%d", f), time.Now())
				assert.NoError(t, stage.Processor.ConsumeMetrics(t.Context(), page))
				time.Sleep(d.Common(stage.Config).Pane / 10)
			}
		})
	}
	group.Wait()
	synctest.Wait()
	counts := stage.Counts()
	assert.InDelta(t, feeders*pages, counts.Total("observations"), 0)
	assert.InDelta(t, feeders, counts.Total("members"), 0)
	assert.Len(t, stage.passed, feeders*pages)
	stage.Shutdown()
	assert.NotEmpty(t, stage.Told(t))
}

// blockedOutput has a next consumer that takes nothing until it is given up on:
// what targets show meanwhile is read as ever.
func (d *Deriver[C]) blockedOutput(t *testing.T) {
	t.Helper()
	stage := d.Stage(t, d.Defaults())
	var tried atomic.Int64
	stage.Take = func(ctx context.Context, _ pmetric.Metrics) error {
		<-ctx.Done()
		tried.Add(1)
		return ctx.Err()
	}
	stage.Raise()
	const pages = 100
	for range pages {
		stage.show("a")
		Wait(time.Now().Add(d.Common(stage.Config).Pane / 10))
	}
	counts := stage.Counts()
	assert.InDelta(t, pages, counts.Total("observations"), 0)
	assert.Zero(t, counts.Total("ignored", `reason="future"`))
	assert.Greater(t, tried.Load(), int64(5), "each pane's report was tried")
	stage.Shutdown()
}

// refusedOutput has a next consumer that refuses what is derived: input goes on,
// each refusal is logged, and the next evaluation is made.
func (d *Deriver[C]) refusedOutput(t *testing.T) {
	t.Helper()
	stage := d.Stage(t, d.Defaults())
	var refused atomic.Int64
	stage.Take = func(context.Context, pmetric.Metrics) error {
		refused.Add(1)
		return errors.New("memory is short")
	}
	core, logs := observer.New(zap.ErrorLevel)
	stage.Settings.Logger = zap.New(core)
	stage.Raise()
	common := d.Common(stage.Config)
	for range 3 {
		stage.show("a")
		Wait(time.Now().Add(common.Pane))
	}
	Wait(time.Now().Add(common.Lateness))
	assert.GreaterOrEqual(t, refused.Load(), int64(3), "of each pane")
	assert.EqualValues(t, refused.Load(), logs.Len())
	assert.Contains(t, logs.All()[0].ContextMap()["error"], "memory is short")
	stage.Shutdown()
}

// shutdown is safe without a start, twice, and before any input.
func (d *Deriver[C]) shutdown(t *testing.T) {
	t.Helper()
	next := new(consumertest.MetricsSink)
	for _, starts := range []bool{false, true} {
		p, err := d.Factory.CreateMetrics(t.Context(), processortest.NewNopSettings(d.Factory.Type()), d.Defaults(), next)
		require.NoError(t, err)
		if starts {
			require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
		}
		require.NoError(t, p.Shutdown(t.Context()))
		require.NoError(t, p.Shutdown(t.Context()))
	}
	assert.Empty(t, next.AllMetrics())
}

// TestIgnored feeds a page that has one point to be ignored, every minute, and
// looks for log lines that name such a point: the first, and one more every 10
// minutes. Line is what they say beside the counts.
func (d *Deriver[C]) TestIgnored(t *testing.T, page func(at time.Time) pmetric.Metrics, line map[string]any) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		p := d.Start(t, zap.New(core), d.Defaults(), consumertest.NewNop())
		const minutes = 21
		for range minutes {
			require.NoError(t, p.ConsumeMetrics(t.Context(), page(time.Now())))
			Wait(time.Now().Add(time.Minute))
		}
		require.Equal(t, 3, logs.Len())
		first, last := logs.All()[0].ContextMap(), logs.All()[2].ContextMap()
		assert.Subset(t, first, line)
		assert.EqualValues(t, 1, first["points_so_far"])
		assert.EqualValues(t, minutes, last["points_so_far"])
	})
}
