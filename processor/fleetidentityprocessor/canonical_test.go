// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetidentityprocessor

import (
	"math"
	"strings"
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

// TestExponentialHistogramsOfRanks are added up, as explicit ones are.
func TestExponentialHistogramsOfRanks(t *testing.T) {
	_, canonical := canonicalOf(t, false, func(page pmetric.MetricSlice) {
		exponential(page, "vllm:time_to_first_token_seconds", 1.5, 2.5)
	})
	require.Equal(t, 1, canonical.Len())
	assert.Equal(t, "llmfleet.engine.ttft", canonical.At(0).Name())
	assert.Equal(t, "s", canonical.At(0).Unit())
	points := canonical.At(0).ExponentialHistogram().DataPoints()
	require.Equal(t, 1, points.Len())
	p := points.At(0)
	assert.Equal(t, map[string]any{"pod": "a", "model_name": "m", "engine_name": "vllm", "replica": "u1"}, p.Attributes().AsRaw())
	assert.EqualValues(t, 3, p.Scale())
	assert.EqualValues(t, -4, p.Positive().Offset())
	assert.Equal(t, []uint64{2, 4}, p.Positive().BucketCounts().AsRaw())
	assert.EqualValues(t, 6, p.Count())
	assert.InDelta(t, 4, p.Sum(), 0)
}

// TestExponentialHistogramsOfTwoScales meet at the lower: of scale 1, buckets -3
// and -2 are halves of -2 and -1 of scale 0 (index >> 1).
func TestExponentialHistogramsOfTwoScales(t *testing.T) {
	_, canonical := canonicalOf(t, false, func(page pmetric.MetricSlice) {
		exponential(page, "vllm:time_to_first_token_seconds", 1, 1)
		points := page.At(0).ExponentialHistogram().DataPoints()
		points.At(0).SetScale(1)
		points.At(0).Positive().SetOffset(-3)
		points.At(1).SetScale(0)
		points.At(1).Positive().SetOffset(0)
		points.At(1).Positive().BucketCounts().FromRaw([]uint64{3, 0, 5})
		points.At(1).SetZeroCount(2)
		points.At(1).SetCount(10)
	})
	p := canonical.At(0).ExponentialHistogram().DataPoints().At(0)
	assert.EqualValues(t, 0, p.Scale())
	assert.EqualValues(t, -2, p.Positive().Offset())
	assert.Equal(t, []uint64{1, 2, 3, 0, 5}, p.Positive().BucketCounts().AsRaw())
	assert.EqualValues(t, 2, p.ZeroCount())
	assert.EqualValues(t, 13, p.Count())
}

// TestHistogramToldBothWays is told once: as the exponential one.
func TestHistogramToldBothWays(t *testing.T) {
	_, canonical := canonicalOf(t, false, func(page pmetric.MetricSlice) {
		m := page.AppendEmpty()
		m.SetName("vllm:time_to_first_token_seconds")
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		p := m.Histogram().DataPoints().AppendEmpty()
		p.Attributes().PutStr("model_name", "m")
		p.ExplicitBounds().FromRaw([]float64{1})
		p.BucketCounts().FromRaw([]uint64{1, 2})
		p.SetCount(3)
		exponential(page, "vllm:time_to_first_token_seconds", 1.5)
	})
	require.Equal(t, 1, canonical.Len())
	assert.Equal(t, pmetric.MetricTypeExponentialHistogram, canonical.At(0).Type())
}

// TestHistogramsThatCannotBe are told nowhere: no bounds in disorder, no counts
// that the buckets do not have, and a sum that is none is left out.
func TestHistogramsThatCannotBe(t *testing.T) {
	nan := math.NaN()
	for name, fill := range map[string]func(pmetric.HistogramDataPoint){
		"bounds that are no numbers": func(p pmetric.HistogramDataPoint) { p.ExplicitBounds().FromRaw([]float64{nan}) },
		"bounds in disorder": func(p pmetric.HistogramDataPoint) {
			p.ExplicitBounds().FromRaw([]float64{2, 1})
			p.BucketCounts().FromRaw([]uint64{1, 1, 1})
		},
		"more observations than in buckets": func(p pmetric.HistogramDataPoint) { p.SetCount(4) },
		"a count too few":                   func(p pmetric.HistogramDataPoint) { p.BucketCounts().FromRaw([]uint64{3}) },
		"a negative sum":                    func(p pmetric.HistogramDataPoint) { p.SetSum(-1) },
		"a sum that is no number":           func(p pmetric.HistogramDataPoint) { p.SetSum(nan) },
		"an infinite sum":                   func(p pmetric.HistogramDataPoint) { p.SetSum(math.Inf(1)) },
	} {
		_, canonical := canonicalOf(t, false, func(page pmetric.MetricSlice) {
			m := page.AppendEmpty()
			m.SetName("vllm:time_to_first_token_seconds")
			m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			p := m.Histogram().DataPoints().AppendEmpty()
			p.Attributes().PutStr("model_name", "m")
			p.ExplicitBounds().FromRaw([]float64{1})
			p.BucketCounts().FromRaw([]uint64{1, 2})
			p.SetCount(3)
			fill(p)
		})
		if strings.Contains(name, "sum") {
			require.Equal(t, 1, canonical.Len(), name)
			assert.False(t, canonical.At(0).Histogram().DataPoints().At(0).HasSum(), name)
		} else {
			assert.Zero(t, canonical.Len(), name)
		}
	}
}

// TestScrapesInOneMetric, as a batch holds them, stay points of their own time.
func TestScrapesInOneMetric(t *testing.T) {
	_, canonical := canonicalOf(t, false, func(page pmetric.MetricSlice) {
		m := page.AppendEmpty()
		m.SetName("vllm:prompt_tokens_total")
		m.SetEmptySum().SetIsMonotonic(true)
		m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		for i, value := range []float64{100, 130} {
			for _, rank := range []string{"0", "1"} {
				p := m.Sum().DataPoints().AppendEmpty()
				p.Attributes().PutStr("model_name", "m")
				p.Attributes().PutStr("engine", rank)
				p.SetTimestamp(pcommon.Timestamp(i + 1))
				p.SetDoubleValue(value)
			}
		}
	})
	told := map[pcommon.Timestamp]float64{}
	for _, p := range canonical.At(0).Sum().DataPoints().All() {
		told[p.Timestamp()] = p.DoubleValue()
	}
	assert.Equal(t, map[pcommon.Timestamp]float64{1: 200, 2: 260}, told)
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

// TestHistogramsOfOtherBounds: ranks whose buckets differ cannot be added; each
// is told, the second with its rank.
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
	require.Equal(t, 2, points.Len())
	for i, bound := range []float64{0.1, 0.2} {
		assert.Equal(t, []float64{bound}, points.At(i).ExplicitBounds().AsRaw())
		assert.EqualValues(t, 3, points.At(i).Count())
		assert.False(t, points.At(i).HasSum())
	}
	_, ranked := points.At(0).Attributes().Get("rank")
	assert.False(t, ranked)
	rank, _ := points.At(1).Attributes().Get("rank")
	assert.Equal(t, "1", rank.Str())
}
