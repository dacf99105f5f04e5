// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package scrapetest

import (
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Scraper reads one target again and again, and remembers what it showed last.
type Scraper struct {
	Instance string            // host:port
	Resource map[string]string // its other attributes
	former   pmetric.Metrics
	series   map[string]bool // of former
}

// NewScraper makes the scraper of a target.
func NewScraper(instance string, resource map[string]string) *Scraper {
	return &Scraper{Instance: instance, Resource: resource, former: pmetric.NewMetrics()}
}

// Scrape makes of a page, and of the labels of its target, what the receiver
// makes of them without honor_labels: a label of the page that the target has,
// too, is renamed to exported_…. With `up`, and a mark for every series of the
// page before that this one has not.
func (s *Scraper) Scrape(page string, labels map[string]string, at time.Time) (pmetric.Metrics, error) {
	md, err := Metrics(page, Target{Instance: s.Instance, At: at})
	if err != nil {
		return pmetric.Metrics{}, err
	}
	return s.finish(md, labels, at, 1), nil
}

// Fail is a scrape that got no page: every series is marked, and `up` is 0.
func (s *Scraper) Fail(labels map[string]string, at time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", s.Instance)
	rm.ScopeMetrics().AppendEmpty()
	return s.finish(md, labels, at, 0)
}

func (s *Scraper) finish(md pmetric.Metrics, labels map[string]string, at time.Time, up float64) pmetric.Metrics {
	rm := md.ResourceMetrics().At(0)
	for key, value := range s.Resource {
		rm.Resource().Attributes().PutStr(key, value)
	}
	metrics := rm.ScopeMetrics().At(0).Metrics()
	w := writer{metrics: metrics, at: pcommon.NewTimestampFromTime(at)}
	metric := metrics.AppendEmpty()
	metric.SetName("up")
	point := metric.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetTimestamp(w.at)
	point.SetDoubleValue(up)
	for _, attributes := range attributesOf(metrics) {
		relabel(attributes, labels)
	}
	shown, present := pmetric.NewMetrics(), seriesOf(metrics)
	md.CopyTo(shown)
	for series := range s.series {
		if !present[series] {
			w.mark(s.former, present)
			break
		}
	}
	s.former, s.series = shown, present
	return md
}

// relabel gives a point the labels of the target.
func relabel(attributes pcommon.Map, labels map[string]string) {
	for name, value := range labels {
		if own, ok := attributes.Get(name); ok {
			attributes.PutStr("exported_"+name, own.Str())
		}
		attributes.PutStr(name, value)
	}
}

// mark ends the series of a page that are not among those of the next one.
func (w *writer) mark(former pmetric.Metrics, present map[string]bool) {
	for _, rm := range former.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			for i, attributes := range pointsOf(m) {
				if !present[series(m, attributes)] {
					w.end(m, i)
				}
			}
		}
	}
}

// end writes one point of a metric once more, without its value.
func (w *writer) end(m pmetric.Metric, i int) {
	ended := w.metrics.AppendEmpty()
	m.CopyTo(ended)
	flags := pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)
	at := -1
	other := func() bool { at++; return at != i }
	switch m.Type() {
	case pmetric.MetricTypeHistogram:
		points := ended.Histogram().DataPoints()
		points.RemoveIf(func(pmetric.HistogramDataPoint) bool { return other() })
		p := points.At(0)
		p.SetFlags(flags)
		p.SetTimestamp(w.at)
		p.SetCount(0)
		p.RemoveSum()
		p.BucketCounts().FromRaw(make([]uint64, p.BucketCounts().Len()))
	case pmetric.MetricTypeSummary:
		points := ended.Summary().DataPoints()
		points.RemoveIf(func(pmetric.SummaryDataPoint) bool { return other() })
		p := points.At(0)
		p.SetFlags(flags)
		p.SetTimestamp(w.at)
		p.SetCount(0)
		p.SetSum(0)
	default:
		points := numbersOf(ended)
		points.RemoveIf(func(pmetric.NumberDataPoint) bool { return other() })
		p := points.At(0)
		p.SetFlags(flags)
		p.SetTimestamp(w.at)
		p.SetDoubleValue(0)
	}
}

func numbersOf(m pmetric.Metric) pmetric.NumberDataPointSlice {
	if m.Type() == pmetric.MetricTypeSum {
		return m.Sum().DataPoints()
	}
	return m.Gauge().DataPoints()
}

// pointsOf are the attributes of a metric's points.
func pointsOf(m pmetric.Metric) (all []pcommon.Map) {
	switch m.Type() {
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			all = append(all, p.Attributes())
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			all = append(all, p.Attributes())
		}
	default:
		for _, p := range numbersOf(m).All() {
			all = append(all, p.Attributes())
		}
	}
	return all
}

func attributesOf(metrics pmetric.MetricSlice) (all []pcommon.Map) {
	for _, m := range metrics.All() {
		all = append(all, pointsOf(m)...)
	}
	return all
}

func seriesOf(metrics pmetric.MetricSlice) map[string]bool {
	all := make(map[string]bool)
	for _, m := range metrics.All() {
		for _, attributes := range pointsOf(m) {
			all[series(m, attributes)] = true
		}
	}
	return all
}

// series is what tells a series from others.
func series(m pmetric.Metric, attributes pcommon.Map) string {
	parts := make([]string, 0, 8)
	for name, value := range attributes.All() {
		parts = append(parts, name+"="+value.AsString())
	}
	slices.Sort(parts)
	return strings.Join(slices.Insert(parts, 0, m.Name()), "\x00")
}
