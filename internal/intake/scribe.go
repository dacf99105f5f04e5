// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"math"
	"strings"

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
	notes    fleet.ID // hash of those of the resource
	scale    float64  // of the metric being read
}

// metric folds all points of one metric in.
func (s *scribe) metric(f *found) {
	entry := f.Entry
	s.scale = entry.Scale
	total := entry.Signal.Kind() == fleet.Counter
	switch m := f.metric; {
	case m.Type() == pmetric.MetricTypeHistogram && entry.Kind == fleet.Histogram:
		s.histograms(f)
	case m.Type() == pmetric.MetricTypeExponentialHistogram && entry.Kind == fleet.Histogram:
		s.exponentials(f)
	case m.Type() == pmetric.MetricTypeGauge && entry.Kind == fleet.Gauge && total:
		s.totals(f, m.Gauge().DataPoints(), false)
	case m.Type() == pmetric.MetricTypeGauge && entry.Kind == fleet.Gauge:
		s.gauges(f, m.Gauge().DataPoints())
	case m.Type() == pmetric.MetricTypeSum && entry.Kind == fleet.Gauge && isLevel(m.Sum()):
		s.gauges(f, m.Sum().DataPoints())
	case m.Type() == pmetric.MetricTypeSum && entry.Kind == fleet.Counter && m.Sum().IsMonotonic():
		s.totals(f, m.Sum().DataPoints(), m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityDelta)
	case isUntypedCounter(m, entry):
		s.totals(f, m.Gauge().DataPoints(), false)
	case isEcho(m, entry):
		s.names.tally.ignore(Unspoken, m.Name(), s.sender())
	default:
		s.names.tally.ignore(Type, m.Name(), s.sender())
	}
}

// isEcho tells whether a gauge repeats a counter under its name without _total,
// as Ray's agent does with all of them.
func isEcho(m pmetric.Metric, entry *dialect.Entry) bool {
	return m.Type() == pmetric.MetricTypeGauge && entry.Kind == fleet.Counter && !strings.HasSuffix(m.Name(), "_total") && !isUntyped(m)
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
		if !f.Entry.InRange(value) {
			s.names.tally.ignore(Range, f.metric.Name(), series.Replica())
			continue
		}
		if f.Entry.Signal.Kind() == fleet.Gauge {
			outcome, heard := series.ObserveGauge(at, value)
			s.count(f, series, outcome, heard)
		} else {
			outcome, heard := series.ObserveValue(at, value)
			s.count(f, series, outcome, heard)
		}
	}
}

// totals folds counters in.
func (s *scribe) totals(f *found, points pmetric.NumberDataPointSlice, delta bool) {
	for i := range points.Len() {
		point := points.At(i)
		at := instant(point.Timestamp())
		series := s.recorded(f, point.Attributes(), salted(delta), at, point.Flags())
		if series == nil {
			continue
		}
		s.total(f, series, number(point)*s.scale, window.Sample{At: at, Start: instant(point.StartTimestamp()), Delta: delta})
	}
}

// total folds one value of a counter in: a histogram of one bucket.
func (s *scribe) total(f *found, series *fleet.Series, value float64, sample window.Sample) {
	if !f.Entry.InRange(value) {
		s.names.tally.ignore(Range, f.metric.Name(), series.Replica())
		return
	}
	p := s.page
	p.counts = append(p.counts[:0], uint64(value))
	sample.Counts = p.counts
	outcome, heard := series.ObserveHistogram(nil, &sample)
	s.count(f, series, outcome, heard)
}

// deltaSalt tells a series of differences from one of totals.
const deltaSalt = 0x5bd1e9955bd1e995

func salted(delta bool) fleet.ID {
	if delta {
		return deltaSalt
	}
	return 0
}

func (s *scribe) histograms(f *found) {
	h := f.metric.Histogram()
	delta := h.AggregationTemporality() == pmetric.AggregationTemporalityDelta
	points := h.DataPoints()
	for i := range points.Len() {
		point := points.At(i)
		at := instant(point.Timestamp())
		series := s.recorded(f, point.Attributes(), salted(delta), at, point.Flags())
		if series == nil {
			continue
		}
		if part := f.Entry.Part; part != dialect.Whole {
			value := float64(point.Count())
			if part == dialect.Sum {
				value = point.Sum() * s.scale
			}
			s.total(f, series, value, window.Sample{At: at, Start: instant(point.StartTimestamp()), Delta: delta})
			continue
		}
		sample := window.Sample{At: at, Start: instant(point.StartTimestamp()), Delta: delta, Sum: math.NaN()}
		if point.HasSum() {
			sample.Sum = point.Sum() * s.scale
		}
		if !s.buckets(point) {
			s.names.tally.ignore(Reason(window.BadBuckets), f.metric.Name(), series.Replica())
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
		if !follows(b, last) {
			return false
		}
		p.bounds = append(p.bounds, b)
		last = b
	}
	return true
}

// follows tells whether a bound of a time can stand behind the one before.
func follows(bound, last float64) bool {
	return bound > last && bound >= 0 && !math.IsInf(bound, 1) // NaN is in no order
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
		s.names.tally.ignore(Unrecorded, f.metric.Name(), series.Replica())
		return nil
	}
	series.Touch(at)
	return series
}

// count keeps the tally of one point.
func (s *scribe) count(f *found, series *fleet.Series, outcome window.Outcome, heard bool) {
	if !heard {
		s.names.tally.ignore(Unspoken, f.metric.Name(), series.Replica())
		return
	}
	if outcome != window.Accepted {
		s.names.tally.ignore(Reason(outcome), f.metric.Name(), series.Replica())
	}
	if outcome.Used() {
		f.observed.Add(1)
	}
}

// series finds the series of a point, or makes it; nil if the point is none of
// a replica.
func (s *scribe) series(f *found, attributes pcommon.Map, salt fleet.ID) *fleet.Series {
	labels, notes := s.names.labels(attributes)
	notes += s.notes
	id := (f.id ^ salt) + labels
	if s.page.untyped {
		id += s.pods.salt(&s.names, &point{attributes: attributes, resource: s.resource, entry: f.Entry})
	}
	if series := s.target.Series(id); series != nil {
		if !series.Noted(notes) {
			s.describe(f, series, notes, attributes)
		}
		return series
	}
	if reason, refused := s.target.Refused(id); refused {
		s.names.tally.ignore(Reason(reason), f.metric.Name(), s.sender())
		return nil
	}
	if reason := s.refusal(f, attributes); reason != 0 {
		s.names.tally.ignore(reason, f.metric.Name(), s.sender())
		return nil
	}
	series, reason := s.join(f, id, attributes)
	if series == nil {
		s.names.tally.ignore(reason, f.metric.Name(), s.sender())
		return nil
	}
	series.Note(notes)
	return series
}

// sender names who sent a point that is of no replica.
func (s *scribe) sender() string { return instanceOf(s.resource) }

// describe renews what is known of the series' replica beside what tells it
// from others.
func (s *scribe) describe(f *found, series *fleet.Series, notes fleet.ID, attributes pcommon.Map) {
	series.Note(notes)
	point := point{attributes: attributes, resource: s.resource, entry: f.Entry, models: s.models}
	if identity, reason := s.whose.identity(&point); reason == 0 && identity.Replica == series.Replica() {
		series.Describe(&identity)
	}
}

// refusal is why a point is not read, whosever it is. That is found out as fast
// as remembered.
func (s *scribe) refusal(f *found, attributes pcommon.Map) Reason {
	p := point{attributes: attributes, resource: s.resource, entry: f.Entry, models: s.models}
	return p.refusal()
}

// join adds a new series to the target.
func (s *scribe) join(f *found, id fleet.ID, attributes pcommon.Map) (*fleet.Series, Reason) {
	point := point{attributes: attributes, resource: s.resource, entry: f.Entry, models: s.models}
	identity, reason := s.whose.identity(&point)
	if reason != 0 {
		s.target.Refuse(id, uint8(reason))
		return nil, reason
	}
	if model := point.model(); s.models.unknown(model) {
		s.names.tally.ignore(UnknownModel, f.metric.Name(), identity.Replica)
	}
	spelling := s.names.spelling(f, attributes)
	series, err := s.target.Join(id, &identity, f.Entry.Signal, spelling)
	if crowd := identity; err != nil && s.whose.crowd(&crowd) {
		s.names.tally.ignore(Crowd, f.metric.Name(), identity.Replica)
		series, err = s.target.Join(id, &crowd, f.Entry.Signal, spelling)
	}
	if err != nil {
		s.target.Refuse(id, uint8(Limit))
		return nil, Limit
	}
	return series, 0
}

// spelling says how a point speaks for its signal.
func (n *names) spelling(f *found, attributes pcommon.Map) fleet.Spelling {
	labels := &f.Entry.Dialect.Labels
	spelling := fleet.Spelling{
		Alias:    uint8(preference(f.Alias, f.metric)), //nolint:gosec // a handful of names
		Rank:     n.chosen(attributes, labels.Ranks),
		Reason:   strings.ToLower(borrowed(attributes, labels.Reasons)),
		Realtime: f.Entry.Realtime(),
	}
	if len(labels.First) > 0 {
		spelling.Choice = n.chosen(attributes, labels.First)
		own, _ := n.labels(attributes)
		spelling.Group = fleet.ID(mix(uint64(f.Entry.Signal)+1, uint64(own-spelling.Choice)))
	}
	return spelling
}
