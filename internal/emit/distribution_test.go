// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package emit

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// metrics are those that arrived since the last call.
func (s *sink) metrics() (all []pmetric.Metric) {
	for _, md := range s.batches {
		for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			all = append(all, m)
		}
	}
	s.batches = nil
	return all
}

func tenantWriter(s *sink) *Writer {
	return NewWriter(Options{Component: tenantUsage, Next: s.next})
}

func TestExplicitDistribution(t *testing.T) {
	var s sink
	w := tenantWriter(&s)
	slot := w.Slot(TenantTTFT)
	bounds, counts := []float64{0.1, 1}, []uint64{1, 2, 3}
	w.Begin(60)
	w.AboutSince(t.Context(), []fleet.Label{label("tenant", "a")}, 30)
	w.SetDistribution(slot, &Distribution{Count: 6, Sum: 7.5, Bounds: bounds, Counts: counts})
	w.SetDistribution(slot, &Distribution{}) // one point a series and evaluation
	w.AboutSince(t.Context(), []fleet.Label{label("tenant", "b")}, 40)
	w.SetDistribution(slot, &Distribution{Bounds: bounds, Counts: []uint64{0, 0, 0}})
	require.NoError(t, w.End(t.Context()))
	counts[0], bounds[0] = 99, 99 // borrowed

	got := s.metrics()
	require.Len(t, got, 1)
	assert.Equal(t, "llmfleet.tenant.ttft", got[0].Name())
	assert.Equal(t, "s", got[0].Unit())
	require.Equal(t, pmetric.MetricTypeHistogram, got[0].Type())
	assert.Equal(t, pmetric.AggregationTemporalityCumulative, got[0].Histogram().AggregationTemporality())
	points := got[0].Histogram().DataPoints()
	require.Equal(t, 2, points.Len())
	p := points.At(0)
	assert.Equal(t, map[string]any{"tenant": "a"}, p.Attributes().AsRaw())
	assert.Equal(t, [2]pcommon.Timestamp{30, 60}, [2]pcommon.Timestamp{p.StartTimestamp(), p.Timestamp()})
	assert.EqualValues(t, 6, p.Count())
	assert.InDelta(t, 7.5, p.Sum(), 0)
	assert.Equal(t, []float64{0.1, 1}, p.ExplicitBounds().AsRaw())
	assert.Equal(t, []uint64{1, 2, 3}, p.BucketCounts().AsRaw())
	assert.EqualValues(t, 40, points.At(1).StartTimestamp())
	assert.EqualValues(t, 0, points.At(1).Count(), "a tenant enters with zeros")

	w.Begin(120)
	require.NoError(t, w.End(t.Context()))
	ends := s.metrics()
	require.Len(t, ends, 2, "each end is alone in its Metric")
	for _, m := range ends {
		require.Equal(t, pmetric.MetricTypeHistogram, m.Type())
		assert.True(t, m.Histogram().DataPoints().At(0).Flags().NoRecordedValue())
	}
}

func TestExponentialDistribution(t *testing.T) {
	for name, c := range map[string]struct {
		counts   []uint64
		zero     uint64
		offset   int32
		positive []uint64
	}{
		"empty buckets at the ends are left out": {[]uint64{4, 0, 5, 0, 6, 0, 0}, 4, -2, []uint64{5, 0, 6}},
		"only the zero bucket":                   {[]uint64{4, 0, 0, 0, 0, 0, 0}, 4, 0, nil},
		"all of them":                            {[]uint64{0, 1, 2, 3, 4, 5, 0}, 0, -3, []uint64{1, 2, 3, 4, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			var s sink
			w := tenantWriter(&s)
			slot := w.Slot(TierTTFT)
			w.Begin(60)
			w.About(t.Context(), []fleet.Label{label("tier", "gold")})
			w.SetDistribution(slot, &Distribution{
				Count: 15, Sum: 2, Counts: c.counts,
				Exponential: &window.Exponential{Scale: 3, First: -3, Buckets: 5, ZeroThreshold: 1e-6, Unit: 1},
			})
			require.NoError(t, w.End(t.Context()))
			m := s.metrics()[0]
			require.Equal(t, pmetric.MetricTypeExponentialHistogram, m.Type())
			p := m.ExponentialHistogram().DataPoints().At(0)
			assert.EqualValues(t, 3, p.Scale())
			assert.InDelta(t, 1e-6, p.ZeroThreshold(), 0)
			assert.Equal(t, c.zero, p.ZeroCount())
			assert.Equal(t, c.offset, p.Positive().Offset())
			assert.Equal(t, c.positive, p.Positive().BucketCounts().AsRaw())

			w.Begin(120)
			require.NoError(t, w.End(t.Context()))
			end := s.metrics()[0]
			require.Equal(t, pmetric.MetricTypeExponentialHistogram, end.Type(), "an end is of the kind that it ends")
			assert.True(t, end.ExponentialHistogram().DataPoints().At(0).Flags().NoRecordedValue())
		})
	}
}

func TestSinceIsTheStartOfWhatAddsUp(t *testing.T) {
	var s sink
	w := tenantWriter(&s)
	tokens := w.Slot(TenantTokens, label(AttributeTokenType, "output"))
	for at := window.Instant(60); at <= 120; at += 60 {
		w.Begin(at)
		w.AboutSince(t.Context(), []fleet.Label{label("tenant", "a")}, 30)
		w.Set(tokens, 7)
		require.NoError(t, w.End(t.Context()))
		m := s.metrics()
		require.Len(t, m, 1)
		assert.EqualValues(t, 30, m[0].Sum().DataPoints().At(0).StartTimestamp())
	}
}

func TestExemplarsLeadToTheirTraces(t *testing.T) {
	exemplars := []Exemplar{
		{Value: 0.2, At: 40, Trace: pcommon.TraceID{15: 1}, Span: pcommon.SpanID{7: 2}},
		{Value: 7, At: 50, Trace: pcommon.TraceID{15: 3}, Span: pcommon.SpanID{7: 4}},
	}
	for name, d := range map[string]*Distribution{
		"explicit": {Count: 2, Sum: 7.2, Bounds: []float64{1}, Counts: []uint64{1, 1}, Exemplars: exemplars},
		"exponential": {
			Count: 2, Sum: 7.2, Counts: []uint64{0, 1, 1, 0},
			Exponential: &window.Exponential{First: -1, Buckets: 2, Unit: 1}, Exemplars: exemplars,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var s sink
			w := tenantWriter(&s)
			slot := w.Slot(TierTTFT)
			w.Begin(60)
			w.About(t.Context(), []fleet.Label{label("tier", "gold")})
			w.SetDistribution(slot, d)
			require.NoError(t, w.End(t.Context()))
			var got pmetric.ExemplarSlice
			if m := s.metrics()[0]; name == "explicit" {
				got = m.Histogram().DataPoints().At(0).Exemplars()
			} else {
				got = m.ExponentialHistogram().DataPoints().At(0).Exemplars()
			}
			require.Equal(t, len(exemplars), got.Len())
			for i, e := range got.All() {
				assert.InDelta(t, exemplars[i].Value, e.DoubleValue(), 0)
				assert.EqualValues(t, exemplars[i].At, e.Timestamp())
				assert.Equal(t, exemplars[i].Trace, e.TraceID())
				assert.Equal(t, exemplars[i].Span, e.SpanID())
			}
		})
	}
}
