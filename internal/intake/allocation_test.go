// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// The race detector makes pools forget, so that they allocate.
//go:build !race

package intake

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// TestSteadyScoresAllocateNothing, new ones and those that stand.
func TestSteadyScoresAllocateNothing(t *testing.T) {
	r := newQualityReader(Options{VariantLabels: []string{"track"}, Templates: true})
	var pages [2]pmetric.Metrics
	for i := range pages {
		of := labels{"eval.name": "faithful", "model_name": "m", "track": "canary"}
		pages[i] = score{metric: "eval.score", labels: of, value: 0.9 + float64(i)/100}.page(t, 0)
	}
	n := 0
	read := func() {
		n++
		page := pages[n/2%2] // each twice
		p := page.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0)
		p.SetTimestamp(pcommon.Timestamp(noon.Add(time.Second + time.Duration(n)*time.Millisecond)))
		r.Read(page)
	}
	read()
	const runs = 1000
	assert.Zero(t, testing.AllocsPerRun(runs, read))
	observations, _, _ := judgements(r)
	assert.Equal(t, uint64((runs+2)/2+1), observations["judge:1 track=canary quality_1"])
}

// TestPointsThatAreRefusedAllocateNothing: of vLLM's reasons only one is an error.
func TestPointsThatAreRefusedAllocateNothing(t *testing.T) {
	registry := fleet.NewRegistry(fleet.Options{Grids: []window.Grid{window.NewGrid(interval, time.Minute, 5*time.Second)}, MaxReplicas: 10, DepartedAfter: time.Minute})
	registry.Open(noon + 1)
	r := NewReader(Options{
		Dialects: dialect.Builtin(), Signals: []fleet.Signal{fleet.Finished, fleet.Errors}, GroupBy: []string{keyModelName}, Templates: true,
	}, registry)
	md, m := pageOf("i", "vllm:request_success_total")
	sum := m.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	for _, reason := range []string{"stop", "length", "error"} {
		stamp(sum.DataPoints().AppendEmpty(), 0).Attributes().PutStr("finished_reason", reason)
	}
	at := time.Second
	read := func() {
		at += time.Millisecond
		for _, p := range sum.DataPoints().All() {
			p.SetTimestamp(pcommon.Timestamp(noon.Add(at)))
		}
		r.Read(md)
	}
	read()
	const runs = 100
	assert.Zero(t, testing.AllocsPerRun(runs, read))
	// Two by the label's one name, three by its other, of which there is none.
	assert.Equal(t, uint64(5*(runs+2)), r.Tally().Ignored(Label))
}
