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
		buckets, ok := s.exponential(point)
		if !ok {
			s.names.tally.ignore(Reason(window.BadBuckets), f.metric.Name(), series.Replica())
			continue
		}
		sample.Counts = s.page.counts
		outcome, heard := series.ObserveExponential(buckets, &sample)
		s.count(f, series, outcome, heard)
	}
}

// exponential reads a point's buckets, and their counts into the page; false if
// no histogram of a time can have them. Observations that are no finite number
// count, and are in no bucket.
func (s *scribe) exponential(point pmetric.ExponentialHistogramDataPoint) (buckets window.Exponential, ok bool) {
	e := window.Exponential{Scale: int(point.Scale()), ZeroThreshold: point.ZeroThreshold(), Unit: s.scale}
	if e.Scale < minScale || e.Scale > maxScale || !(e.ZeroThreshold >= 0) || math.IsInf(e.ZeroThreshold*s.scale, 1) {
		return e, false
	}
	if negative := point.Negative().BucketCounts(); firstFilled(negative) < negative.Len() {
		return e, false
	}
	counts, offset := point.Positive().BucketCounts(), int(point.Positive().Offset())
	from, to := firstFilled(counts), counts.Len()
	for to > from && (counts.At(to-1) == 0 || math.IsInf(s.bound(e.Scale, offset+to), 1)) {
		to--
	}
	p := s.page
	p.counts = append(p.counts[:0], point.ZeroCount())
	if from < to {
		e.First, e.Buckets = offset+from, to-from
		for i := from; i < to; i++ {
			p.counts = append(p.counts, counts.At(i))
		}
	}
	elsewhere := point.Count()
	for _, c := range p.counts {
		if c > elsewhere {
			return e, false
		}
		elsewhere -= c
	}
	p.counts = append(p.counts, elsewhere)
	return e, true
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

// bound is the lower bound of a bucket, in the signal's unit.
func (s *scribe) bound(scale, index int) float64 {
	return math.Exp2(math.Ldexp(float64(index), -scale)) * s.scale
}

// alias is the place of the point's name and of its buckets in the order of
// preference: where a target tells one histogram in both ways, the exponential
// buckets count, which are finer.
func (f *found) alias() uint8 {
	alias := 2 * f.Alias
	if f.metric.Type() != pmetric.MetricTypeExponentialHistogram {
		alias++
	}
	return uint8(alias) //nolint:gosec // a handful of names
}
