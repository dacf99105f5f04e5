// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetidentityprocessor

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/intake"
)

// canonicalSignals are the metrics that a configuration asks for; nil where it
// does not.
type canonicalSignals [fleet.SignalCount]*emit.Metric

func newCanonicalSignals(c *Config) *canonicalSignals {
	var signals canonicalSignals
	if !c.EmitCanonical {
		return &signals
	}
	for s := range fleet.SignalCount {
		if m := emit.Canonical(s); m != nil && c.Metrics.Enabled(m) {
			signals[s] = m
		}
	}
	return &signals
}

// canonicalPage is the canonical series of one resource in the making. All
// series of one signal and replica on the page are added up: ranks, sources of
// a cache, streaming or not. Of several names for one signal the preferred
// counts.
type canonicalPage struct {
	read   []intake.Reading
	names  map[told]int // the alias that tells it
	series map[canonicalSeries]*canonicalPoint
	points []*canonicalPoint // the same, in the order of the page
}

// told is one signal of one replica and model.
type told struct {
	signal   fleet.Signal
	resident *fleet.Resident
	model    string
}

// canonicalSeries is one series of it: by why a request ended, or by the stage
// of a start.
type canonicalSeries struct {
	told
	reason string
	rank   string // of histograms whose buckets are others than those of the rest
	at     pcommon.Timestamp
	form   form
}

// form is what one metric has in common.
type form struct{ exponential, delta bool }

// collect reads the page's signals.
func (c *canonicalPage) collect(page *intake.Page, wanted *canonicalSignals) {
	if *wanted == (canonicalSignals{}) || page.Canonical {
		return
	}
	if c.names == nil {
		c.names = make(map[told]int)
		c.series = make(map[canonicalSeries]*canonicalPoint)
	}
	c.read = page.Readings(c.read[:0], dialect.Engine)
	slices.SortStableFunc(c.read, func(a, b intake.Reading) int { return cmp.Compare(a.Preference(), b.Preference()) })
	for i := range c.read {
		reading := &c.read[i]
		definition := wanted[reading.Entry.Signal]
		if definition == nil {
			continue
		}
		page.Points(reading, func(point intake.Point) {
			// Another port may tell of the same process.
			if point.Of.Original(page.Process(), page.Desk.Sender()) {
				c.add(definition, reading, &point)
			}
		})
	}
}

// write adds the canonical series to the resource, and lets go of the page.
func (c *canonicalPage) write(rm pmetric.ResourceMetrics) {
	if len(c.points) > 0 {
		write(rm, c.points)
	}
	clear(c.read)
	clear(c.names)
	clear(c.series)
	clear(c.points)
	c.points = c.points[:0]
}

// add adds one point of an engine to its canonical series.
func (c *canonicalPage) add(definition *emit.Metric, reading *intake.Reading, point *intake.Point) {
	of := told{reading.Entry.Signal, point.Of, point.Serves}
	if place, ok := c.names[of]; ok && place < reading.Preference() {
		return
	}
	if point.Recorded {
		c.names[of] = reading.Preference()
	}
	key := canonicalSeries{told: of, at: point.At, form: form{delta: point.Delta}}
	if len(definition.Attributes) > 0 {
		key.reason = point.Reason
	}
	key.form.exponential = point.Exponential != nil && definition.Kind == fleet.Histogram
	if at := c.point(definition, &key, point); point.Recorded && !at.add(reading, point) {
		key.rank = point.Rank
		c.point(definition, &key, point).add(reading, point)
	}
}

// point is the point of a series, which is made if there is none.
func (c *canonicalPage) point(definition *emit.Metric, key *canonicalSeries, from *intake.Point) *canonicalPoint {
	at := c.series[*key]
	if at == nil {
		at = newCanonicalPoint(definition, key, from)
		c.series[*key] = at
		c.points = append(c.points, at)
	}
	return at
}

// drops tells whether an engine's metric is dropped: it tells a signal that is
// told in the one spelling.
func (p *metricsProcessor) drops(s *intake.Sighting) bool {
	return p.config.DropRaw && s.Component() == dialect.Engine && s.Tells(p.isCanonical)
}

func (p *metricsProcessor) isCanonical(s fleet.Signal) bool { return p.canonicals[s] != nil }

// dropRaw removes the metrics of which all points were dropped, and what stands
// beside them.
func (p *metricsProcessor) dropRaw(rm pmetric.ResourceMetrics, r *reading) {
	for i := range r.page.Created {
		s := &r.page.Created[i]
		if s.Component() == dialect.Engine && s.Is(p.isCanonical) {
			removePoints(s.Metric, func(attributes pcommon.Map, _ bool) bool {
				entry := s.Entry(attributes)
				return entry != nil && r.page.Accounts(entry, attributes)
			})
		}
	}
	rm.ScopeMetrics().RemoveIf(func(scope pmetric.ScopeMetrics) bool {
		before := scope.Metrics().Len()
		scope.Metrics().RemoveIf(func(m pmetric.Metric) bool { return pointCount(m) == 0 && p.clerk.Knows(m.Name()) })
		return before > 0 && scope.Metrics().Len() == 0
	})
}

func pointCount(m pmetric.Metric) (n int) {
	intake.EachPoint(m, func(pcommon.Map, bool) { n++ })
	return n
}

// removePoints removes some points of a metric.
func removePoints(m pmetric.Metric, f func(attributes pcommon.Map, recorded bool) bool) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		m.Gauge().DataPoints().RemoveIf(func(p pmetric.NumberDataPoint) bool { return f(p.Attributes(), !p.Flags().NoRecordedValue()) })
	case pmetric.MetricTypeSum:
		m.Sum().DataPoints().RemoveIf(func(p pmetric.NumberDataPoint) bool { return f(p.Attributes(), !p.Flags().NoRecordedValue()) })
	case pmetric.MetricTypeHistogram:
		m.Histogram().DataPoints().RemoveIf(func(p pmetric.HistogramDataPoint) bool {
			return f(p.Attributes(), !p.Flags().NoRecordedValue())
		})
	case pmetric.MetricTypeExponentialHistogram:
		m.ExponentialHistogram().DataPoints().RemoveIf(func(p pmetric.ExponentialHistogramDataPoint) bool {
			return f(p.Attributes(), !p.Flags().NoRecordedValue())
		})
	case pmetric.MetricTypeSummary, pmetric.MetricTypeEmpty: // no signal is told so
	}
}
