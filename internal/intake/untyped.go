// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
)

// A page of Prometheus' /federate declares no types: every series arrives as a
// gauge by its own name, those of a classic histogram apart from each other. What
// type they have the dialect knows.

// isUntyped tells whether a metric has lost its type on the way. The prometheus
// receiver says so.
func isUntyped(m pmetric.Metric) bool {
	if m.Type() != pmetric.MetricTypeGauge {
		return false
	}
	declared, ok := m.Metadata().Get("prometheus.type")
	return ok && declared.Str() == "unknown"
}

// isUntypedCounter tells whether a metric without a type is a counter.
func isUntypedCounter(m pmetric.Metric, e *dialect.Entry) bool {
	return e.Kind == fleet.Counter && isUntyped(m)
}

// isTotalOf tells whether a metric is the counter that another one of the page,
// which may be taken for it, repeats under its name without _total.
func isTotalOf(m, echo pmetric.Metric) bool {
	name, total := strings.CutSuffix(m.Name(), "_total")
	return total && name == echo.Name()
}

// tellsOfOthers tells whether the labels of a metric are not those of the scraped
// target: a server that federates was scraped without honor_labels.
func tellsOfOthers(m pmetric.Metric) (of bool) {
	EachPoint(m, func(attributes pcommon.Map, _ bool) {
		if !of {
			_, of = attributes.Get(exportedInstance)
		}
	})
	return of
}

// part is which series of a classic histogram a metric holds.
type part uint8

const (
	isWhole part = iota // none: it is a metric by itself
	isBucket
	isSum
	isCount
)

// partOf splits the name of a series of a classic histogram.
func partOf(metric string) (whole string, p part) {
	for p, suffix := range [...]string{isBucket: "_bucket", isSum: "_sum", isCount: "_count"} {
		if whole, ok := strings.CutSuffix(metric, suffix); ok && suffix != "" {
			return whole, part(p)
		}
	}
	return metric, isWhole
}

// assembler makes histograms of the untyped series of one page. Its memory may be
// used again.
type assembler struct {
	parts []partial
	rows  []row
}

// partial is a metric that holds one kind of series of a histogram.
type partial struct {
	metric pmetric.Metric
	*name
}

// row is one sample of a series of a histogram.
type row struct {
	series     fleet.ID // of all labels but the bucket's
	at         pcommon.Timestamp
	part       part
	bound      float64 // of a bucket
	value      float64
	ended      bool // it says that there is no value
	attributes pcommon.Map
}

// assembled is a histogram that was put together.
type assembled struct {
	metric   pmetric.Metric
	readings []reading
	all      bool // of every series something could be made
}

// add takes a metric that is part of a histogram.
func (a *assembler) add(m pmetric.Metric, n *name) { a.parts = append(a.parts, partial{m, n}) }

func (a *assembler) reset() {
	clear(a.parts[:cap(a.parts)])
	clear(a.rows[:cap(a.rows)])
	a.parts, a.rows = a.parts[:0], a.rows[:0]
}

// assemble calls each with every histogram of the page, in the order of their
// names. Which points are whole is told by labels and time: what Prometheus took in
// one scrape has one time. What is none, or not whole, is counted.
func (a *assembler) assemble(names *names, instance string, each func(assembled)) {
	if len(a.parts) == 0 {
		return
	}
	made := pmetric.NewMetricSlice()
	slices.SortStableFunc(a.parts, func(p, q partial) int { return strings.Compare(p.whole, q.whole) })
	for from, to := 0, 0; from < len(a.parts); from = to {
		a.rows = a.rows[:0]
		for to = from; to < len(a.parts) && a.parts[to].whole == a.parts[from].whole; to++ {
			a.take(names, a.parts[to])
		}
		name := a.parts[from].whole
		w := assembled{metric: made.AppendEmpty(), readings: a.parts[from].readings, all: true}
		w.metric.SetName(name)
		points := w.metric.SetEmptyHistogram()
		points.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		a.points(points.DataPoints(), func(why Reason) {
			w.all = false
			names.tally.ignore(why, name, instance)
		})
		if points.DataPoints().Len() > 0 {
			each(w)
		}
	}
}

// take reads the samples of one metric.
func (a *assembler) take(names *names, p partial) {
	points := p.metric.Gauge().DataPoints()
	for i := range points.Len() {
		point := points.At(i)
		own, notes := names.labels(point.Attributes())
		r := row{
			series: own + notes, at: point.Timestamp(), part: p.part, value: number(point),
			ended: point.Flags().NoRecordedValue(), attributes: point.Attributes(),
		}
		if p.part == isBucket {
			r.bound = math.NaN()
			if le, ok := point.Attributes().Get("le"); ok {
				r.series -= fleet.ID(names.pair("le", le))
				if bound, err := strconv.ParseFloat(le.AsString(), 64); err == nil {
					r.bound = bound
				}
			}
		}
		a.rows = append(a.rows, r)
	}
}

// points makes the points of one histogram.
func (a *assembler) points(into pmetric.HistogramDataPointSlice, refuse func(Reason)) {
	slices.SortFunc(a.rows, func(r, s row) int {
		return cmp.Or(cmp.Compare(r.series, s.series), cmp.Compare(r.at, s.at), cmp.Compare(r.part, s.part), cmp.Compare(r.bound, s.bound))
	})
	for rest := classic(a.rows); len(rest) > 0; {
		n := rest.together()
		if why := rest[:n].point(into); why != 0 {
			refuse(why)
		}
		rest = rest[n:]
	}
}
