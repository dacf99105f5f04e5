// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetidentityprocessor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// canonicalOf feeds one page of a pod and returns what comes out: the raw metrics
// that are left, and the canonical ones.
func canonicalOf(t *testing.T, dropRaw bool, page func(pmetric.MetricSlice)) (raw, canonical pmetric.MetricSlice) {
	t.Helper()
	raw, canonical = pmetric.NewMetricSlice(), pmetric.NewMetricSlice()
	synctest.Test(t, func(t *testing.T) {
		config := createDefaultConfig().(*Config)
		config.EmitCanonical, config.DropRaw = true, dropRaw
		stage := newStage(t, config)
		stage.raise()
		md := pmetric.NewMetrics()
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("k8s.pod.uid", "u1")
		rm.Resource().Attributes().PutStr("k8s.pod.name", "a")
		page(rm.ScopeMetrics().AppendEmpty().Metrics())
		stage.consumeMetrics(md)
		stage.shutdown()
		for _, sm := range stage.page.ResourceMetrics().At(0).ScopeMetrics().All() {
			if sm.Scope().Name() == scopeName {
				sm.Metrics().CopyTo(canonical)
			} else {
				sm.Metrics().CopyTo(raw)
			}
		}
	})
	return raw, canonical
}

// exponential adds an exponential histogram with a point for each rank.
func exponential(to pmetric.MetricSlice, name string, sums ...float64) {
	m := to.AppendEmpty()
	m.SetName(name)
	h := m.SetEmptyExponentialHistogram()
	h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	for rank, sum := range sums {
		p := h.DataPoints().AppendEmpty()
		p.Attributes().PutStr("model_name", "m")
		p.Attributes().PutStr("engine", string(rune('0'+rank)))
		p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		p.SetScale(3)
		p.Positive().SetOffset(-4)
		p.Positive().BucketCounts().FromRaw([]uint64{1, 2})
		p.SetCount(3)
		p.SetSum(sum)
	}
}

// TestExponentialHistogramsOfRanks: they are told as they are, each rank for
// itself.
func TestExponentialHistogramsOfRanks(t *testing.T) {
	_, canonical := canonicalOf(t, false, func(page pmetric.MetricSlice) {
		exponential(page, "vllm:time_to_first_token_seconds", 1.5, 2.5)
	})
	require.Equal(t, 1, canonical.Len())
	assert.Equal(t, "llmfleet.engine.ttft", canonical.At(0).Name())
	assert.Equal(t, "s", canonical.At(0).Unit())
	points := canonical.At(0).ExponentialHistogram().DataPoints()
	require.Equal(t, 2, points.Len())
	for rank, p := range points.All() {
		assert.Equal(t, map[string]any{
			"pod": "a", "model_name": "m", "engine_name": "vllm", "replica": "u1", "rank": string(rune('0' + rank)),
		}, p.Attributes().AsRaw())
		assert.EqualValues(t, 3, p.Scale())
		assert.EqualValues(t, -4, p.Positive().Offset())
		assert.Equal(t, []uint64{1, 2}, p.Positive().BucketCounts().AsRaw())
		assert.InDelta(t, 1.5+float64(rank), p.Sum(), 0)
	}
}

// TestExponentialHistogramsInOtherUnits: buckets of milliseconds cannot be told in
// seconds, so that the raw metric stays. A sum can.
func TestExponentialHistogramsInOtherUnits(t *testing.T) {
	raw, canonical := canonicalOf(t, true, func(page pmetric.MetricSlice) {
		exponential(page, "sglang:kv_transfer_latency_ms", 100)
		exponential(page, "sglang:kv_transfer_total_mb", 10)
	})
	require.Equal(t, 1, raw.Len())
	assert.Equal(t, "sglang:kv_transfer_latency_ms", raw.At(0).Name())
	require.Equal(t, 1, canonical.Len())
	assert.Equal(t, "llmfleet.engine.kv_transfer_bytes", canonical.At(0).Name())
	assert.InDelta(t, 10*1024*1024, canonical.At(0).Sum().DataPoints().At(0).DoubleValue(), 0)
}

// TestDifferencesStayDifferences: a metric has one temporality.
func TestDifferencesStayDifferences(t *testing.T) {
	_, canonical := canonicalOf(t, false, func(page pmetric.MetricSlice) {
		for _, temporality := range []pmetric.AggregationTemporality{
			pmetric.AggregationTemporalityDelta, pmetric.AggregationTemporalityCumulative,
		} {
			m := page.AppendEmpty()
			m.SetName("vllm:num_preemptions_total")
			m.SetEmptySum().SetIsMonotonic(true)
			m.Sum().SetAggregationTemporality(temporality)
			p := m.Sum().DataPoints().AppendEmpty()
			p.Attributes().PutStr("model_name", "m")
			p.SetIntValue(int64(temporality))
		}
	})
	require.Equal(t, 2, canonical.Len())
	for _, m := range canonical.All() {
		assert.Equal(t, "llmfleet.engine.preemptions", m.Name())
		assert.True(t, m.Sum().IsMonotonic())
		require.Equal(t, 1, m.Sum().DataPoints().Len())
		assert.InDelta(t, float64(m.Sum().AggregationTemporality()), m.Sum().DataPoints().At(0).DoubleValue(), 0)
	}
}

// TestPointsWithoutValueComeLast: the prometheus exporter stops reading a Metric
// at the first point that has no value.
func TestPointsWithoutValueComeLast(t *testing.T) {
	_, canonical := canonicalOf(t, false, func(page pmetric.MetricSlice) {
		// Who is known by nothing but marks is nobody.
		known := page.AppendEmpty()
		known.SetName("vllm:num_requests_waiting")
		known.SetEmptyGauge().DataPoints().AppendEmpty().Attributes().PutStr("model_name", "m")
		m := page.AppendEmpty()
		m.SetName("vllm:request_success_total")
		m.SetEmptySum().SetIsMonotonic(true)
		m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		for i, reason := range []string{"abort", "stop", "error", "length"} {
			p := m.Sum().DataPoints().AppendEmpty()
			p.Attributes().PutStr("model_name", "m")
			p.Attributes().PutStr("finished_reason", reason)
			p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(i%2 == 0))
			p.SetDoubleValue(float64(i))
			p.SetStartTimestamp(7)
			p.SetTimestamp(9)
		}
	})
	var told []string
	for _, m := range canonical.All() {
		if m.Name() != "llmfleet.engine.finished" {
			continue
		}
		points := m.Sum().DataPoints()
		for _, p := range points.All() {
			reason, _ := p.Attributes().Get("reason")
			told = append(told, reason.Str())
			assert.EqualValues(t, 7, p.StartTimestamp())
			assert.EqualValues(t, 9, p.Timestamp())
			if p.Flags().NoRecordedValue() {
				assert.Equal(t, 1, points.Len(), "alone in its Metric")
			}
		}
	}
	assert.Equal(t, []string{"stop", "length", "abort", "error"}, told)
}

// TestHistogramsOfOtherBounds: ranks whose buckets differ cannot be added; the
// first is told.
func TestHistogramsOfOtherBounds(t *testing.T) {
	_, canonical := canonicalOf(t, false, func(page pmetric.MetricSlice) {
		m := page.AppendEmpty()
		m.SetName("vllm:time_to_first_token_seconds")
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		for rank, bound := range []float64{0.1, 0.2} {
			p := m.Histogram().DataPoints().AppendEmpty()
			p.Attributes().PutStr("model_name", "m")
			p.Attributes().PutStr("engine", string(rune('0'+rank)))
			p.ExplicitBounds().FromRaw([]float64{bound})
			p.BucketCounts().FromRaw([]uint64{1, 2})
			p.SetCount(3)
		}
	})
	points := canonical.At(0).Histogram().DataPoints()
	require.Equal(t, 1, points.Len())
	assert.Equal(t, []float64{0.1}, points.At(0).ExplicitBounds().AsRaw())
	assert.EqualValues(t, 3, points.At(0).Count())
	assert.False(t, points.At(0).HasSum())
}
