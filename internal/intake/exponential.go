// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/window"
)

// exponentialSalt tells a series with exponential buckets from the one of the
// same name that has explicit ones.
const exponentialSalt = 0x2545f4914f6cdd1d

// The scales that the data model names; no sender has others.
const (
	minScale = -10
	maxScale = 20
)

// exponentials folds exponential histograms in. Prometheus' native histograms
// arrive as such, but for those with custom buckets, which are explicit here.
func (s *scribe) exponentials(f *found) {
	h := f.metric.ExponentialHistogram()
	delta := h.AggregationTemporality() == pmetric.AggregationTemporalityDelta
	points := h.DataPoints()
	for i := range points.Len() {
		point := points.At(i)
		at := instant(point.Timestamp())
		series := s.recorded(f, point.Attributes(), salted(delta)^exponentialSalt, at, point.Flags())
		if series == nil {
			continue
		}
		sample := window.Sample{At: at, Start: instant(point.StartTimestamp()), Delta: delta, Sum: math.NaN()}
		if point.HasSum() {
			sample.Sum = point.Sum() * s.scale
		}
		switch f.Entry.Part {
		case dialect.Count:
			s.total(f, series, float64(point.Count()), sample)
			continue
		case dialect.Sum:
			s.total(f, series, sample.Sum, sample)
			continue
		}
		buckets, counts, ok := exponential(point, s.scale, s.page.counts[:0])
		s.page.counts = counts
		if !ok {
			s.names.tally.ignore(Reason(window.BadBuckets), f.metric.Name(), series.Replica())
			continue
		}
		sample.Counts = s.page.counts
		outcome, heard := series.ObserveExponential(buckets, &sample)
		s.count(f, series, outcome, heard)
	}
}

// exponential reads a point's buckets, in the signal's unit, and appends their
// counts; false if no histogram of a time can have them. Observations
// that are no finite number count, and are in no bucket.
func exponential(point pmetric.ExponentialHistogramDataPoint, unit float64, counts []uint64) (buckets window.Exponential, told []uint64, ok bool) {
	e := window.Exponential{Scale: int(point.Scale()), ZeroThreshold: point.ZeroThreshold(), Unit: unit}
	if e.Scale < minScale || e.Scale > maxScale || !(e.ZeroThreshold >= 0) || math.IsInf(e.ZeroThreshold*unit, 1) {
		return e, counts, false
	}
	if negative := point.Negative().BucketCounts(); firstFilled(negative) < negative.Len() {
		return e, counts, false
	}
	sent, offset := point.Positive().BucketCounts(), int(point.Positive().Offset())
	from, to := firstFilled(sent), sent.Len()
	for to > from && (sent.At(to-1) == 0 || math.IsInf(lowerBound(e.Scale, offset+to)*unit, 1)) {
		to--
	}
	counts = append(counts, point.ZeroCount())
	if from < to {
		e.First, e.Buckets = offset+from, to-from
		for i := from; i < to; i++ {
			counts = append(counts, sent.At(i))
		}
	}
	elsewhere := point.Count()
	for _, c := range counts {
		if c > elsewhere {
			return e, counts, false
		}
		elsewhere -= c
	}
	return e, append(counts, elsewhere), true
}

// firstFilled is the place of the first count that is not zero, or their number.
func firstFilled(counts pcommon.UInt64Slice) int {
	for i := range counts.Len() {
		if counts.At(i) > 0 {
			return i
		}
	}
	return counts.Len()
}

// lowerBound is that of a bucket, in the unit that it was sent in.
func lowerBound(scale, index int) float64 {
	return math.Exp2(math.Ldexp(float64(index), -scale))
}

// preference is the place of a name, and of the buckets of the metric, among all
// that tell the signal: where a target tells one histogram in both ways, the
// exponential buckets count, which are finer.
func preference(alias int, m pmetric.Metric) int {
	if m.Type() == pmetric.MetricTypeExponentialHistogram {
		return 2 * alias
	}
	return 2*alias + 1
}
