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

// Reading is one signal that a metric of a page tells.
type Reading struct {
	dialect.Match
	Metric pmetric.Metric
}

// Preference is the reading's place among those of its signal: the lowest that
// a target shows counts.
func (r *Reading) Preference() int { return preference(r.Alias, r.Metric) }

// Readings appends the page's signals of one component.
func (p *Page) Readings(into []Reading, of dialect.Component) []Reading {
	add := func(metric pmetric.Metric, readings []reading) {
		for i := range readings {
			if m := readings[i].Match; m.Entry.Dialect.Component == of {
				into = append(into, Reading{m, metric})
			}
		}
	}
	for i := range p.Sighted {
		if s := &p.Sighted[i]; s.part == isWhole && !s.echo {
			add(s.Metric, s.readings)
		}
	}
	for _, w := range p.wholes {
		add(w.metric, w.readings)
	}
	return into
}

// Process is since when the page's process runs, in seconds since the Unix
// epoch; 0 if the page does not say.
func (p *Page) Process() float64 { return p.process }

// Point is one point that tells a signal of a resident.
type Point struct {
	Of       *fleet.Resident
	Serves   string // the model
	Reason   string // what the dialect's label for reasons says
	Rank     string // which rank tells it, "" if only one does
	Choice   fleet.ID
	Series   fleet.ID // the same for all points of one series
	Delta    bool
	Recorded bool // it has a value
	At       pcommon.Timestamp
	Start    pcommon.Timestamp
	// Number is the value of a gauge or a counter in the canonical unit.
	Number float64
	// Histogram and Exponential are as they were sent; one of them is there if
	// the signal is a histogram. Buckets are the exponential one's, with Counts.
	Histogram   *pmetric.HistogramDataPoint
	Exponential *pmetric.ExponentialHistogramDataPoint
	Buckets     window.Exponential
	Counts      []uint64
}

// Points calls each with the points of a reading that tell its signal, by the
// dialect's filters and kind, with values that the signal can have.
func (p *Page) Points(r *Reading, each func(Point)) {
	if convertible(r.Entry, r.Metric) {
		r.points(func(attributes pcommon.Map, point Point) { p.point(r.Entry, attributes, point, each) })
	}
}

// convertible tells whether what a metric tells can be told in the signal's
// unit: the bounds of exponential histograms are powers, in one unit alone.
func convertible(e *dialect.Entry, m pmetric.Metric) bool {
	return reads(e, m) && (m.Type() != pmetric.MetricTypeExponentialHistogram || e.Part != dialect.Whole || e.Scale == 1)
}

// reads tells whether a metric is of the kind that the dialect knows.
func reads(e *dialect.Entry, m pmetric.Metric) bool {
	switch m.Type() {
	case pmetric.MetricTypeHistogram, pmetric.MetricTypeExponentialHistogram:
		return e.Kind == fleet.Histogram
	case pmetric.MetricTypeGauge:
		return e.Kind == fleet.Gauge || isUntypedCounter(m, e)
	case pmetric.MetricTypeSum:
		return e.Kind == fleet.Gauge && isLevel(m.Sum()) || e.Kind == fleet.Counter && m.Sum().IsMonotonic()
	default:
		return false
	}
}

// points calls each with all points of a reading, as the dialect reads them; it
// returns false if the metric is not of the kind that the dialect knows.
func (r *Reading) points(each func(attributes pcommon.Map, p Point)) bool {
	m := r.Metric
	if !reads(r.Entry, m) {
		return false
	}
	switch m.Type() {
	case pmetric.MetricTypeHistogram:
		r.histograms(m.Histogram(), each)
	case pmetric.MetricTypeExponentialHistogram:
		r.exponentials(m.ExponentialHistogram(), each)
	case pmetric.MetricTypeGauge:
		r.numbers(m.Gauge().DataPoints(), false, each)
	case pmetric.MetricTypeSum:
		r.numbers(m.Sum().DataPoints(), m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityDelta, each)
	case pmetric.MetricTypeSummary, pmetric.MetricTypeEmpty:
	}
	return true
}

func (r *Reading) histograms(m pmetric.Histogram, each func(attributes pcommon.Map, p Point)) {
	delta := m.AggregationTemporality() == pmetric.AggregationTemporalityDelta
	for i := range m.DataPoints().Len() {
		h := m.DataPoints().At(i)
		each(h.Attributes(), Point{
			Delta: delta, Recorded: !h.Flags().NoRecordedValue(), At: h.Timestamp(), Start: h.StartTimestamp(),
			Number: r.part(h.Sum(), h.Count()), Histogram: &h,
		})
	}
}

func (r *Reading) exponentials(m pmetric.ExponentialHistogram, each func(attributes pcommon.Map, p Point)) {
	delta := m.AggregationTemporality() == pmetric.AggregationTemporalityDelta
	for i := range m.DataPoints().Len() {
		h := m.DataPoints().At(i)
		each(h.Attributes(), Point{
			Delta: delta, Recorded: !h.Flags().NoRecordedValue(), At: h.Timestamp(), Start: h.StartTimestamp(),
			Number: r.part(h.Sum(), h.Count()), Exponential: &h,
		})
	}
}

// part is the value of a counter that a histogram tells; 0 if it tells itself.
func (r *Reading) part(sum float64, count uint64) float64 {
	switch r.Entry.Part {
	case dialect.Sum:
		return sum * r.Entry.Scale
	case dialect.Count:
		return float64(count)
	default:
		return 0
	}
}

func (r *Reading) numbers(points pmetric.NumberDataPointSlice, delta bool, each func(attributes pcommon.Map, p Point)) {
	for i := range points.Len() {
		n := points.At(i)
		each(n.Attributes(), Point{
			Delta: delta, Recorded: !n.Flags().NoRecordedValue(), At: n.Timestamp(), Start: n.StartTimestamp(), Number: number(n) * r.Entry.Scale,
		})
	}
}

// point completes a point with who it is of.
func (p *Page) point(e *dialect.Entry, attributes pcommon.Map, told Point, each func(Point)) {
	c := p.Desk.clerk
	read := point{attributes: attributes, resource: p.Desk.resource, entry: e, models: c.models}
	if read.refusal() != 0 || told.Recorded && !e.InRange(told.Number) {
		return
	}
	if told.Recorded && e.Part == dialect.Whole && !told.plausible(e.Scale) {
		c.names.tally.ignore(Reason(window.BadBuckets), e.Signal.String(), instanceOf(p.Desk.resource))
		return
	}
	face, _ := p.Face(e, attributes, told.Recorded)
	if face.Resident == nil {
		return
	}
	labels := &e.Dialect.Labels
	told.Of, told.Serves = face.Resident, face.Model()
	told.Reason, told.Rank = borrowed(attributes, labels.Reasons), borrowed(attributes, labels.Ranks)
	told.Choice = c.names.chosen(attributes, labels.First)
	told.Series, _ = c.names.labels(attributes)
	each(told)
}

// plausible tells whether a histogram can be one of a time: with as many counts
// as its buckets have, and bounds that ascend from zero. Of an exponential one it
// reads the buckets.
func (p *Point) plausible(scale float64) (ok bool) {
	switch {
	case p.Histogram != nil:
		bounds, counts := p.Histogram.ExplicitBounds(), p.Histogram.BucketCounts()
		return counts.Len() == 0 && bounds.Len() == 0 ||
			ascend(bounds, scale) && counts.Len() == bounds.Len()+1 && sumOf(counts) == p.Histogram.Count()
	case p.Exponential != nil:
		p.Buckets, p.Counts, ok = exponential(*p.Exponential, scale, nil)
		return ok
	default:
		return true
	}
}

// ascend tells whether bounds are those of a time.
func ascend(bounds pcommon.Float64Slice, scale float64) bool {
	last := math.Inf(-1)
	for i := range bounds.Len() {
		b := bounds.At(i) * scale
		if !follows(b, last) {
			return false
		}
		last = b
	}
	return true
}

func sumOf(counts pcommon.UInt64Slice) (sum uint64) {
	for i := range counts.Len() {
		sum += counts.At(i)
	}
	return sum
}

// borrowed is the first of some attributes that says something. It is not
// copied.
func borrowed(m pcommon.Map, keys []string) string {
	for _, key := range keys {
		if v, ok := m.Get(key); ok && v.AsString() != "" {
			return v.AsString()
		}
	}
	return ""
}
