// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
)

// Page is what a clerk saw in one resource's metrics. It may be used again.
type Page struct {
	Desk    *Desk
	Sighted []Sighting
	Created []Sighting // when series of signals began
	// Canonical: its signals stand there in the one spelling already.
	Canonical bool

	infos   []infoSighting
	process float64
	last    Face
	parts   assembler
	wholes  []assembled
}

// Sighting is a metric of a page that a dialect knows.
type Sighting struct {
	Metric   pmetric.Metric
	readings []reading
	unspoken bool // another name on the page tells the same, and counts
	echo     bool // another name on the page repeats it
	part     part // of a histogram that came apart
	told     bool // which was put together
}

type infoSighting struct {
	metric pmetric.Metric
	info   *dialect.Info
}

// Metrics reads the metrics of one resource: it learns from their info series,
// and lists in the page what a dialect knows.
func (c *Clerk) Metrics(rm pmetric.ResourceMetrics, page *Page) {
	page.Desk, page.Sighted, page.infos = c.Desk(rm.Resource().Attributes()), page.Sighted[:0], page.infos[:0]
	page.Created, page.Canonical, page.process, page.last = page.Created[:0], false, 0, Face{}
	page.parts.reset()
	page.wholes = page.wholes[:0]
	c.scan(rm.ScopeMetrics(), page)
	c.retype(page, rm.Resource().Attributes())
	page.prefer()
	page.Desk.inform(page.infos)
}

func (c *Clerk) scan(scopes pmetric.ScopeMetricsSlice, page *Page) {
	c.names.mu.RLock()
	defer c.names.mu.RUnlock()
	for j := range scopes.Len() {
		metrics := scopes.At(j).Metrics()
		for k := range metrics.Len() {
			metric := metrics.At(k)
			switch n := c.names.lookup(metric.Name()); n.meaning {
			case isSignal:
				page.Sighted = append(page.Sighted, Sighting{Metric: metric, readings: n.readings})
				c.hear(metric, n.readings)
			case isPart:
				if isUntyped(metric) {
					page.Sighted = append(page.Sighted, Sighting{Metric: metric, readings: n.readings, part: n.part})
					page.parts.add(metric, n)
				}
			case isInfo:
				page.infos = append(page.infos, infoSighting{metric, n.info})
			case isProcessStart:
				if _, value, ok := single(metric); ok {
					page.process = value
				}
			case isCreated:
				page.Created = append(page.Created, Sighting{Metric: metric, readings: n.readings})
			case isCanonical:
				page.Canonical = true
			case isNothing, isUp, isElse:
			}
		}
	}
}

// retype makes of metrics without types what they were before.
func (c *Clerk) retype(page *Page, resource pcommon.Map) {
	page.parts.assemble(&c.names, instanceOf(resource), func(w assembled) {
		page.wholes = append(page.wholes, w)
		c.hear(w.metric, w.readings)
	})
	for i := range page.Sighted {
		s := &page.Sighted[i]
		if s.part == isWhole {
			s.echo = isUntypedCounter(s.Metric, s.readings[0].Entry) &&
				slices.ContainsFunc(page.Sighted, func(o Sighting) bool { return isTotalOf(o.Metric, s.Metric) })
			continue
		}
		s.told = slices.ContainsFunc(page.wholes, func(w assembled) bool { return w.all && w.metric.Name() == s.name() })
	}
}

// hear notes that a metric tells its signals, if it is the dialect's at all.
func (c *Clerk) hear(m pmetric.Metric, readings []reading) {
	now := c.now.Load()
	for i := range readings {
		e := readings[i].Entry
		heard := &c.heard[e.Dialect.Component][e.Signal]
		spoken := c.spoken[e.Dialect]
		if heard.Load() == now && spoken.Load() || !anyMarked(e, m) {
			continue
		}
		heard.Store(now)
		spoken.Store(true)
	}
}

// Forget lets go of what the page held.
func (p *Page) Forget() {
	clear(p.Sighted[:cap(p.Sighted)])
	clear(p.Created[:cap(p.Created)])
	clear(p.infos[:cap(p.infos)])
	clear(p.wholes[:cap(p.wholes)])
	p.parts.reset()
	p.Desk, p.last = nil, Face{}
}

// Component is whose metric it is.
func (s *Sighting) Component() dialect.Component { return s.readings[0].Entry.Dialect.Component }

// Is tells whether the metric is, or stands beside, one of some signals.
func (s *Sighting) Is(signals func(fleet.Signal) bool) bool {
	return slices.ContainsFunc(s.readings, func(r reading) bool { return signals(r.Entry.Signal) })
}

// Tells tells whether the metric tells one of some signals, so that it can be
// told in the signal's unit.
func (s *Sighting) Tells(signals func(fleet.Signal) bool) bool {
	return slices.ContainsFunc(s.readings, func(r reading) bool {
		return signals(r.Entry.Signal) && (s.told || convertible(r.Entry, s.Metric))
	})
}

// Entry is how a point of the metric is read, as the first of the signals that
// it may tell; nil if it is of somebody else who has a metric of this name.
func (s *Sighting) Entry(attributes pcommon.Map) *dialect.Entry {
	for i := range s.readings {
		if e := s.readings[i].Entry; marked(e, attributes) {
			return e
		}
	}
	return nil
}

// marked tells whether a point has the labels without which it is none of the
// entry's.
func marked(e *dialect.Entry, attributes pcommon.Map) bool {
	for _, f := range e.Only {
		v, ok := first(attributes, f.Spellings)
		if !ok || v.AsString() == "" || len(f.Values) > 0 && !slices.Contains(f.Values, v.AsString()) {
			return false
		}
	}
	return true
}

func anyMarked(e *dialect.Entry, m pmetric.Metric) (found bool) {
	if len(e.Only) == 0 {
		return true
	}
	EachPoint(m, func(attributes pcommon.Map, _ bool) { found = found || marked(e, attributes) })
	return found
}

// prefer finds of several names for one signal those that do not count.
func (p *Page) prefer() {
	for i := range p.Sighted {
		s := &p.Sighted[i]
		m := &s.readings[0].Match
		s.unspoken = m.Alias > 0 && slices.ContainsFunc(p.Sighted, func(o Sighting) bool {
			other := &o.readings[0].Match
			return other.Alias < m.Alias && other.Entry.Signal == m.Entry.Signal && other.Entry.Dialect == m.Entry.Dialect
		})
	}
}

// name is the metric's, or that of the histogram of which it is a part.
func (s *Sighting) name() string {
	if s.part == isWhole {
		return s.Metric.Name()
	}
	name, _ := partOf(s.Metric.Name())
	return name
}

// Speak notes that the resident used the metric's name, if it counts.
func (s *Sighting) Speak(r *fleet.Resident) {
	if s.unspoken {
		return
	}
	m := &s.readings[0].Match
	word := fleet.Word{Dialect: m.Entry.Dialect.Name}
	if m.Alias > 0 {
		word.Alias = s.name()
	}
	r.Speak(word)
}

// Knows tells whether a metric of this name tells signals, or when they began.
func (c *Clerk) Knows(metric string) bool {
	c.names.mu.RLock()
	defer c.names.mu.RUnlock()
	return len(c.names.lookup(metric).readings) > 0
}

// EachPoint calls f with the attributes of each point of a metric, and whether it
// has a value.
func EachPoint(m pmetric.Metric, f func(attributes pcommon.Map, recorded bool)) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		eachPoint(m.Gauge().DataPoints(), f)
	case pmetric.MetricTypeSum:
		eachPoint(m.Sum().DataPoints(), f)
	case pmetric.MetricTypeHistogram:
		eachPoint(m.Histogram().DataPoints(), f)
	case pmetric.MetricTypeExponentialHistogram:
		eachPoint(m.ExponentialHistogram().DataPoints(), f)
	case pmetric.MetricTypeSummary:
		eachPoint(m.Summary().DataPoints(), f)
	case pmetric.MetricTypeEmpty:
	}
}

type dataPoint interface {
	Attributes() pcommon.Map
	Flags() pmetric.DataPointFlags
}

func eachPoint[P dataPoint, S interface {
	Len() int
	At(i int) P
}](points S, f func(attributes pcommon.Map, recorded bool),
) {
	for i := range points.Len() {
		point := points.At(i)
		f(point.Attributes(), !point.Flags().NoRecordedValue())
	}
}

// Accounts tells whether it is accounted for what a point of an engine tells: it
// is of a replica that is known, or a router's copy.
func (p *Page) Accounts(e *dialect.Entry, attributes pcommon.Map) bool {
	if (&point{attributes: attributes, entry: e}).copied() {
		return true
	}
	face, _ := p.Face(e, attributes, false)
	return face.Resident != nil
}
