// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package emit

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// Distribution is a histogram that adds up since its series began.
type Distribution struct {
	Count uint64
	Sum   float64 // in the metric's unit
	// Bounds are the upper bounds of explicit buckets, in the metric's unit, and
	// Counts has one count more than they are.
	Bounds []float64
	Counts []uint64
	// Exponential, if it is not nil, says what buckets Counts are of instead.
	Exponential *window.Exponential
	// Exemplars are single observations, at most one a bucket, with the trace that
	// tells of each.
	Exemplars []Exemplar
}

// Exemplar is one observation of a distribution, and the span that tells of it.
type Exemplar struct {
	Value float64
	At    window.Instant
	Trace pcommon.TraceID
	Span  pcommon.SpanID
}

// SetDistribution writes one histogram. All of a metric are of one kind: with
// explicit or with exponential buckets.
func (w *Writer) SetDistribution(s Slot, d *Distribution) {
	if s == None || !w.current.mark(s) {
		return
	}
	of := &w.slots[s]
	if !w.batch.made[of.metric] {
		w.batch.distributions[of.metric], w.batch.made[of.metric] = w.batch.metric(&w.metrics[of.metric]), true
	}
	w.current.exponential = d.Exponential != nil
	metric := w.batch.distributions[of.metric]
	if d.Exponential != nil {
		point := exponentialsOf(metric).AppendEmpty()
		point.SetTimestamp(w.at)
		w.fill(point.Attributes(), of.attributes)
		point.SetStartTimestamp(w.current.start)
		point.SetCount(d.Count)
		point.SetSum(d.Sum)
		d.spread(point)
		d.exemplify(point.Exemplars())
	} else {
		point := histogramsOf(metric).AppendEmpty()
		point.SetTimestamp(w.at)
		w.fill(point.Attributes(), of.attributes)
		point.SetStartTimestamp(w.current.start)
		point.SetCount(d.Count)
		point.SetSum(d.Sum)
		point.ExplicitBounds().FromRaw(d.Bounds)
		point.BucketCounts().FromRaw(d.Counts)
		d.exemplify(point.Exemplars())
	}
	w.batch.count++
}

func (d *Distribution) exemplify(to pmetric.ExemplarSlice) {
	to.EnsureCapacity(len(d.Exemplars))
	for i := range d.Exemplars {
		e := &d.Exemplars[i]
		exemplar := to.AppendEmpty()
		exemplar.SetDoubleValue(e.Value)
		exemplar.SetTimestamp(pcommon.Timestamp(e.At)) //nolint:gosec // since 1970
		exemplar.SetTraceID(e.Trace)
		exemplar.SetSpanID(e.Span)
	}
}

// spread writes exponential buckets: those at either end that are empty are left
// out.
func (d *Distribution) spread(point pmetric.ExponentialHistogramDataPoint) {
	e, counts := d.Exponential, d.Counts[1:1+d.Exponential.Buckets]
	first := e.First
	for len(counts) > 0 && counts[0] == 0 {
		counts, first = counts[1:], first+1
	}
	for len(counts) > 0 && counts[len(counts)-1] == 0 {
		counts = counts[:len(counts)-1]
	}
	point.SetScale(int32(e.Scale)) //nolint:gosec // at most window.MaxScale
	point.SetZeroThreshold(e.ZeroThreshold)
	point.SetZeroCount(d.Counts[0])
	if len(counts) > 0 {
		point.Positive().SetOffset(int32(first)) //nolint:gosec // an exponent of a time
		point.Positive().BucketCounts().FromRaw(counts)
	}
}

// histogramsOf are the points of a metric with explicit buckets.
func histogramsOf(m pmetric.Metric) pmetric.HistogramDataPointSlice {
	if m.Type() != pmetric.MetricTypeHistogram {
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	return m.Histogram().DataPoints()
}

// exponentialsOf are the points of a metric with exponential buckets.
func exponentialsOf(m pmetric.Metric) pmetric.ExponentialHistogramDataPointSlice {
	if m.Type() != pmetric.MetricTypeExponentialHistogram {
		m.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	return m.ExponentialHistogram().DataPoints()
}

// append begins another pmetric.Metric with one point.
func (b *batch) append(m *Metric, exponential bool) dataPoint {
	metric := b.metric(m)
	switch {
	case m.Kind != fleet.Histogram:
		return numbersOf(metric).AppendEmpty()
	case exponential:
		return exponentialsOf(metric).AppendEmpty()
	default:
		return histogramsOf(metric).AppendEmpty()
	}
}
