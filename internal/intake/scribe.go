// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// scribe folds the points of one page into one locked target.
type scribe struct {
	*Reader
	page     *page
	target   *fleet.Target
	resource pcommon.Map
	scale    float64 // of the metric being read
}

// metric folds all points of one metric in.
func (s *scribe) metric(f *found) {
	switch entry := f.name.match.Entry; {
	case f.metric.Type() == pmetric.MetricTypeHistogram && entry.Kind == dialect.Histogram:
		s.scale = entry.Scale
		s.histograms(f)
	case f.metric.Type() == pmetric.MetricTypeGauge && entry.Kind == dialect.Gauge:
		s.scale = entry.Scale
		s.gauges(f, f.metric.Gauge().DataPoints())
	case f.metric.Type() == pmetric.MetricTypeSum && entry.Kind == dialect.Gauge && isLevel(f.metric.Sum()):
		s.scale = entry.Scale
		s.gauges(f, f.metric.Sum().DataPoints())
	default:
		s.tally.ignore(Type, f.metric.Name(), s.sender())
	}
}

// isLevel tells whether a sum is a gauge by another name: an UpDownCounter.
func isLevel(sum pmetric.Sum) bool {
	return !sum.IsMonotonic() && sum.AggregationTemporality() == pmetric.AggregationTemporalityCumulative
}

func (s *scribe) gauges(f *found, points pmetric.NumberDataPointSlice) {
	for i := range points.Len() {
		point := points.At(i)
		at := instant(point.Timestamp())
		series := s.recorded(f, point.Attributes(), 0, at, point.Flags())
		if series == nil {
			continue
		}
		value := number(point) * s.scale
		if !series.Signal().InRange(value) { // NaN is in no range
			s.tally.ignore(Range, f.metric.Name(), series.Replica())
			continue
		}
		outcome, heard := series.ObserveGauge(at, value)
		s.count(f, series, outcome, heard)
	}
}

// deltaSalt tells a series of differences from one of totals.
const deltaSalt = 0x5bd1e9955bd1e995

func (s *scribe) histograms(f *found) {
	h := f.metric.Histogram()
	delta := h.AggregationTemporality() == pmetric.AggregationTemporalityDelta
	var salt fleet.ID
	if delta {
		salt = deltaSalt
	}
	points := h.DataPoints()
	for i := range points.Len() {
		point := points.At(i)
		at := instant(point.Timestamp())
		series := s.recorded(f, point.Attributes(), salt, at, point.Flags())
		if series == nil {
			continue
		}
		sample := window.Sample{At: at, Start: instant(point.StartTimestamp()), Delta: delta, Sum: math.NaN()}
		if point.HasSum() {
			sample.Sum = point.Sum() * s.scale
		}
		if !s.buckets(point) {
			s.tally.ignore(Reason(window.BadBuckets), f.metric.Name(), series.Replica())
			continue
		}
		sample.Counts = s.page.counts
		outcome, heard := series.ObserveHistogram(s.page.bounds, &sample)
		s.count(f, series, outcome, heard)
	}
}

// buckets reads a point's bounds and counts into the page; false if no
// histogram of a time can have them.
func (s *scribe) buckets(point pmetric.HistogramDataPoint) bool {
	p := s.page
	p.bounds, p.counts = p.bounds[:0], p.counts[:0]
	bounds, counts := point.ExplicitBounds(), point.BucketCounts()
	if counts.Len() == 0 {
		p.counts = append(p.counts, point.Count())
		return true
	}
	if counts.Len() != bounds.Len()+1 {
		return false
	}
	for i := range counts.Len() {
		p.counts = append(p.counts, counts.At(i))
	}
	last := math.Inf(-1)
	for i := range bounds.Len() {
		b := bounds.At(i) * s.scale
		if !(b > last) || b < 0 || math.IsInf(b, 1) { // NaN is in no order
			return false
		}
		p.bounds = append(p.bounds, b)
		last = b
	}
	return true
}

// recorded finds the series of a point that has a value; nil if it has none, or
// is none of a replica. The zero that a point without a value carries is none.
func (s *scribe) recorded(
	f *found, attributes pcommon.Map, salt fleet.ID, at window.Instant, flags pmetric.DataPointFlags,
) *fleet.Series {
	series := s.series(f, attributes, salt)
	if series == nil {
		return nil
	}
	if flags.NoRecordedValue() {
		series.Suspend(at)
		series.Unreached()
		s.tally.ignore(Unrecorded, f.metric.Name(), series.Replica())
		return nil
	}
	series.Touch(at)
	return series
}

// count keeps the tally of one point.
func (s *scribe) count(f *found, series *fleet.Series, outcome window.Outcome, heard bool) {
	if !heard {
		s.tally.ignore(Unspoken, f.metric.Name(), series.Replica())
		return
	}
	if outcome != window.Accepted {
		s.tally.ignore(Reason(outcome), f.metric.Name(), series.Replica())
	}
	if outcome.Used() {
		f.name.observed.Add(1)
	}
}

// series finds the series of a point, or makes it; nil if the point is none of
// a replica.
func (s *scribe) series(f *found, attributes pcommon.Map, salt fleet.ID) *fleet.Series {
	id := (f.name.hash ^ salt) + s.names.labels(attributes)
	if series := s.target.Series(id); series != nil {
		return series
	}
	if reason, refused := s.target.Refused(id); refused {
		s.tally.ignore(Reason(reason), f.metric.Name(), s.sender())
		return nil
	}
	series, reason := s.join(f, id, attributes)
	if series == nil {
		s.tally.ignore(reason, f.metric.Name(), s.sender())
	}
	return series
}

// sender names who sent a point that is of no replica.
func (s *scribe) sender() string { return instanceOf(s.resource) }

// join adds a new series to the target.
func (s *scribe) join(f *found, id fleet.ID, attributes pcommon.Map) (*fleet.Series, Reason) {
	entry := f.name.match.Entry
	point := point{attributes: attributes, resource: s.resource, entry: entry}
	reason := point.refusal()
	var identity fleet.Identity
	if reason == 0 {
		identity, reason = point.identity(s.groupBy)
	}
	if reason != 0 {
		s.target.Refuse(id, uint8(reason))
		return nil, reason
	}
	spelling := fleet.Spelling{
		Alias: uint8(f.name.match.Alias), //nolint:gosec // a handful of names
		Rank:  s.names.chosen(attributes, entry.Ranks),
	}
	if len(entry.First) > 0 {
		spelling.Choice = s.names.chosen(attributes, entry.First)
		spelling.Group = fleet.ID(mix(uint64(entry.Signal)+1, uint64(s.names.labels(attributes)-spelling.Choice)))
	}
	series, err := s.target.Join(id, &identity, entry.Signal, spelling)
	if err != nil {
		s.target.Refuse(id, uint8(Limit))
		return nil, Limit
	}
	return series, 0
}
