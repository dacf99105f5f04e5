// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

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

// noon is a pane's end.
const noon = window.Instant(1_767_268_800) * window.Instant(time.Second)

const interval = 30 * time.Second

// newReader makes a reader of TTFT and waiting requests that takes points after
// noon.
func newReader() *Reader {
	const lateness = 5 * time.Second
	registry := fleet.NewRegistry(fleet.Options{
		Grids: []window.Grid{window.NewGrid(interval, time.Minute, lateness)}, Lateness: lateness, MaxReplicas: 10,
	})
	registry.Open(noon + 1)
	return NewReader(Options{
		Dialects: dialect.Builtin(), Signals: []fleet.Signal{fleet.TTFT, fleet.Waiting}, GroupBy: []string{"model_name"},
	}, registry)
}

// pageOf makes one metric of one target.
func pageOf(instance, metric string) (pmetric.Metrics, pmetric.Metric) {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("k8s.pod.uid", "u")
	rm.Resource().Attributes().PutStr("k8s.pod.name", "p")
	rm.Resource().Attributes().PutStr("service.instance.id", instance)
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(metric)
	return md, m
}

// stamp gives a point its model and its time.
func stamp[P interface {
	Attributes() pcommon.Map
	SetTimestamp(pcommon.Timestamp)
}](p P, at time.Duration) P {
	p.Attributes().PutStr("model_name", "m")
	p.SetTimestamp(pcommon.Timestamp(noon.Add(at)))
	return p
}

// TestNotWhatTheDialectKnows: a known name of another type is another metric.
func TestNotWhatTheDialectKnows(t *testing.T) {
	for name, fill := range map[string]func(pmetric.Metric){
		"vllm:num_requests_waiting": func(m pmetric.Metric) { // differences are no level
			sum := m.SetEmptySum()
			sum.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
			stamp(sum.DataPoints().AppendEmpty(), time.Second)
		},
		"vllm_num_requests_waiting": func(m pmetric.Metric) { // a counter neither
			sum := m.SetEmptySum()
			sum.SetIsMonotonic(true)
			sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			stamp(sum.DataPoints().AppendEmpty(), time.Second)
		},
		"vllm:time_to_first_token_seconds": func(m pmetric.Metric) {
			stamp(m.SetEmptyGauge().DataPoints().AppendEmpty(), time.Second)
		},
		"vllm_time_to_first_token_seconds": func(m pmetric.Metric) {
			stamp(m.SetEmptySummary().DataPoints().AppendEmpty(), time.Second)
		},
	} {
		r := newReader()
		md, m := pageOf("i", name)
		fill(m)
		r.Read(md)
		assert.Equal(t, uint64(1), r.Tally().Ignored(Type), name)
	}
}

// TestBoundsThatNoLatencyHas: such a point is refused as a whole.
func TestBoundsThatNoLatencyHas(t *testing.T) {
	nan := func() float64 { zero := 0.0; return zero / zero }()
	for _, bounds := range [][]float64{{-1, 1}, {1, 1}, {2, 1}, {1, nan}, {1}, {1, 2, 3}} {
		r := newReader()
		md, m := pageOf("i", "vllm:time_to_first_token_seconds")
		p := stamp(m.SetEmptyHistogram().DataPoints().AppendEmpty(), time.Second)
		p.ExplicitBounds().FromRaw(bounds)
		p.BucketCounts().FromRaw([]uint64{1, 1, 1})
		r.Read(md)
		assert.Equal(t, uint64(1), r.Tally().Ignored(Reason(window.BadBuckets)), "%v", bounds)
	}
}

// TestTwoSendersOfDifferencesAreTwoRanks: they have no totals to be compared
// by, and nothing else says that they tell the same.
func TestTwoSendersOfDifferencesAreTwoRanks(t *testing.T) {
	r := newReader()
	for i, instance := range []string{"i:1", "i:2"} {
		md, m := pageOf(instance, "vllm:time_to_first_token_seconds")
		h := m.SetEmptyHistogram()
		h.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		p := stamp(h.DataPoints().AppendEmpty(), time.Duration(i+1)*time.Second)
		p.ExplicitBounds().FromRaw([]float64{1})
		p.BucketCounts().FromRaw([]uint64{10, 5})
		r.Read(md)
	}
	r.registry.Close(noon.Add(interval), fleet.Ask{Signals: []fleet.Signal{fleet.TTFT}}, func(f *fleet.Frame) {
		assert.Zero(t, f.Copies)
		assert.Equal(t, uint64(30), f.Members[0].Told[0].Observations())
	})
}
