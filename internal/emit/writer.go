// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package emit

import (
	"context"
	"errors"
	"hash/maphash"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// Options are where and as whom a writer writes.
type Options struct {
	Component string // whose metrics these are
	Switches  Switches
	ScopeName string // instrumentation scope
	Version   string
	// Instance tells this writer from all others, now and after a restart.
	Instance string
	Next     func(context.Context, pmetric.Metrics) error
}

// Slot is one series of every label set of a scope: a metric with the
// attributes that tell it from its siblings. Disabled metrics have no slot.
type Slot int

// None is the slot of a disabled metric; nothing is written to it.
const None Slot = -1

// batchPoints is how many points one pmetric.Metrics holds at most. It bounds
// the memory that a report of a large fleet takes on its way.
const batchPoints = 4096

// Writer writes the figures of one evaluation after the other. A series that
// was written in the evaluation before and is not written now has ended: it
// gets one point without a value, unless another replica goes on writing the
// same labels. Not safe for concurrent use.
type Writer struct {
	options Options
	metrics []Metric
	slots   []slot
	series  map[uint64]*series
	seed    maphash.Seed
	epoch   uint64
	at      pcommon.Timestamp
	current *series
	labels  pcommon.Map // of the points being written
	batch   batch
	errs    error
}

// slot is a declared Slot.
type slot struct {
	metric     int
	attributes []fleet.Label
}

// series is all slots of one label set.
type series struct {
	labels  []fleet.Label
	start   pcommon.Timestamp // since when what adds up does
	epoch   uint64            // when something was last written
	written []uint64          // which slots that was, a bit each
	former  []uint64          // which slots were written in the evaluation before

	exponential bool // its histograms have exponential buckets
}

// batch is a pmetric.Metrics in the making.
type batch struct {
	metrics pmetric.Metrics
	scope   pmetric.ScopeMetrics
	numbers []pmetric.NumberDataPointSlice // by metric; where made
	// distributions are the metrics of histograms; where made.
	distributions []pmetric.Metric
	made          []bool
	count         int
}

// NewWriter makes a writer.
func NewWriter(o Options) *Writer {
	w := &Writer{options: o, metrics: Of(o.Component), series: make(map[uint64]*series), seed: maphash.MakeSeed(), labels: pcommon.NewMap()}
	w.batch.numbers = make([]pmetric.NumberDataPointSlice, len(w.metrics))
	w.batch.distributions = make([]pmetric.Metric, len(w.metrics))
	w.batch.made = make([]bool, len(w.metrics))
	w.renew()
	return w
}

// Slot declares a series. All slots are declared before the first evaluation.
func (w *Writer) Slot(metric string, attributes ...fleet.Label) Slot {
	for i := range w.metrics {
		if m := &w.metrics[i]; m.Name == metric {
			if !w.options.Switches.Enabled(m) {
				return None
			}
			w.slots = append(w.slots, slot{metric: i, attributes: attributes})
			return Slot(len(w.slots) - 1)
		}
	}
	panic("emit: no metric " + metric + " in the table") // a name that is not one of the constants
}

// Begin starts an evaluation whose points carry the time at.
func (w *Writer) Begin(at window.Instant) {
	w.epoch++
	w.at, w.errs = pcommon.Timestamp(at), nil //nolint:gosec // since 1970
}

// AboutSince says whose series the next figures are, and since when those that
// add up do. The labels are borrowed.
func (w *Writer) AboutSince(ctx context.Context, labels []fleet.Label, since window.Instant) {
	w.About(ctx, labels)
	w.current.start = pcommon.Timestamp(since) //nolint:gosec // since 1970
}

// About says whose series the next figures are: those that add up do so since
// they were first written. The labels are borrowed.
func (w *Writer) About(ctx context.Context, labels []fleet.Label) {
	if w.batch.count+len(w.slots) > batchPoints {
		w.Flush(ctx)
	}
	key := w.key(labels)
	s := w.series[key]
	if s == nil {
		words := (len(w.slots) + 63) / 64
		s = &series{
			labels: append([]fleet.Label(nil), labels...), start: w.at,
			written: make([]uint64, words), former: make([]uint64, words),
		}
		w.series[key] = s
	}
	if s.epoch != w.epoch {
		s.epoch = w.epoch
		s.former, s.written = s.written, s.former
		clear(s.written)
	}
	w.current = s
	w.describe(s)
}

// describe makes the labels of a series those of the next points.
func (w *Writer) describe(s *series) {
	w.labels.Clear()
	w.labels.EnsureCapacity(len(s.labels))
	put(w.labels, s.labels)
}

func (w *Writer) key(labels []fleet.Label) uint64 {
	var h maphash.Hash
	h.SetSeed(w.seed)
	for _, l := range labels {
		_, _ = h.WriteString(l.Name)
		_ = h.WriteByte(0)
		_, _ = h.WriteString(l.Value)
		_ = h.WriteByte(0)
	}
	return h.Sum64()
}

// Set writes one figure. A value that is no number is none.
func (w *Writer) Set(s Slot, value float64) {
	if s == None || math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	if !w.current.mark(s) {
		return
	}
	of := &w.slots[s]
	point := w.batch.dataPoints(of.metric, &w.metrics[of.metric]).AppendEmpty()
	point.SetTimestamp(w.at)
	w.fill(point.Attributes(), of.attributes)
	point.SetDoubleValue(value)
	if w.metrics[of.metric].Kind == fleet.Counter {
		point.SetStartTimestamp(w.current.start)
	}
	w.batch.count++
}

// mark notes that a slot is written; false if it was written in this evaluation
// before, with the same labels: one point a series.
func (s *series) mark(slot Slot) bool {
	word, bit := slot/64, uint64(1)<<(slot%64)
	if s.written[word]&bit != 0 {
		return false
	}
	s.written[word] |= bit
	return true
}

// dataPoint is what all kinds of points have in common.
type dataPoint interface {
	Attributes() pcommon.Map
	SetTimestamp(pcommon.Timestamp)
	SetFlags(pmetric.DataPointFlags)
}

// fill writes the labels of a point: those of what it is about, and its own.
func (w *Writer) fill(m pcommon.Map, attributes []fleet.Label) {
	m.EnsureCapacity(w.labels.Len() + len(attributes))
	w.labels.CopyTo(m) // compares no keys, as putting them one by one would
	put(m, attributes)
}

func put(m pcommon.Map, labels []fleet.Label) {
	for _, l := range labels {
		m.PutStr(l.Name, l.Value)
	}
}

// End sends what is left, and then ends the series that were not written any
// more. It returns what went wrong in the whole evaluation.
func (w *Writer) End(ctx context.Context) error {
	w.Flush(ctx)
	for key, s := range w.series {
		if s.epoch != w.epoch {
			s.former, s.written = s.written, s.former
			clear(s.written)
			delete(w.series, key)
		}
		for i := range w.slots {
			word, bit := i/64, uint64(1)<<(i%64)
			if s.former[word]&bit != 0 && s.written[word]&bit == 0 {
				w.end(ctx, s, i)
			}
		}
	}
	w.Flush(ctx)
	return w.errs
}

// end writes a point without a value, alone in its Metric: the prometheus
// exporter reads no further in a Metric once it met one.
func (w *Writer) end(ctx context.Context, s *series, i int) {
	if w.batch.count >= batchPoints {
		w.Flush(ctx)
	}
	of := &w.slots[i]
	point := w.batch.append(&w.metrics[of.metric], s.exponential)
	w.describe(s)
	point.SetTimestamp(w.at)
	w.fill(point.Attributes(), of.attributes)
	point.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	w.batch.count++
}

// Flush sends what is written so far. What is written next goes together, in one
// pmetric.Metrics, as far as that holds it.
func (w *Writer) Flush(ctx context.Context) {
	if w.batch.count == 0 {
		return
	}
	w.errs = errors.Join(w.errs, w.options.Next(ctx, w.batch.metrics))
	w.renew()
}

func (w *Writer) renew() {
	b := &w.batch
	b.metrics, b.count = pmetric.NewMetrics(), 0
	clear(b.made)
	rm := b.metrics.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "llmfleet")
	rm.Resource().Attributes().PutStr("service.instance.id", w.options.Instance)
	b.scope = rm.ScopeMetrics().AppendEmpty()
	b.scope.Scope().SetName(w.options.ScopeName)
	b.scope.Scope().SetVersion(w.options.Version)
}

// dataPoints are the points of one metric of numbers in the batch.
func (b *batch) dataPoints(i int, m *Metric) pmetric.NumberDataPointSlice {
	if !b.made[i] {
		b.numbers[i], b.made[i] = numbersOf(b.metric(m)), true
	}
	return b.numbers[i]
}

// metric begins another pmetric.Metric.
func (b *batch) metric(m *Metric) pmetric.Metric {
	metric := b.scope.Metrics().AppendEmpty()
	metric.SetName(m.Name)
	metric.SetUnit(m.Unit)
	metric.SetDescription(m.Description)
	switch m.Kind {
	case fleet.Counter:
		sum := metric.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	case fleet.Gauge:
		metric.SetEmptyGauge()
	default: // a histogram's is known with its first point
	}
	return metric
}

func numbersOf(m pmetric.Metric) pmetric.NumberDataPointSlice {
	if m.Type() == pmetric.MetricTypeSum {
		return m.Sum().DataPoints()
	}
	return m.Gauge().DataPoints()
}
