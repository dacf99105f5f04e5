// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// targets is what the last page of each target had: a scraper marks what is
// missing from the next one.
type targets map[string][]*sample

// sample is one point of a page: a series with one value, or a histogram.
type sample struct {
	family, kind string // kind as in # TYPE
	labels       string
	value        float64
	sum, count   float64
	hasSum       bool
	buckets      []bucket
}

type bucket struct{ bound, cumulative float64 }

func (s *sample) same(o *sample) bool { return s.family == o.family && s.labels == o.labels }

// scrape makes of a page what the prometheus receiver does: a resource per
// target, histograms with one count a bucket, `up`, and for every series that
// the page before had a point without a value. Start timestamps are unknown
// unless the block says start=.
func (ts targets) scrape(p *page, began time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	id := p.describe(rm.Resource().Attributes())
	at := pcommon.NewTimestampFromTime(began.Add(p.at + p.stamp))
	w := pageWriter{metrics: rm.ScopeMetrics().AppendEmpty().Metrics(), at: at, delta: p.flags["delta"]}
	if start := p.target["start"]; start != "" {
		d, err := time.ParseDuration(start)
		if err != nil {
			panic(err)
		}
		w.start = pcommon.NewTimestampFromTime(began.Add(d))
	}
	samples := p.samples()
	for _, s := range samples {
		w.write(s, false)
	}
	if !p.flags["unmarked"] {
		for _, former := range ts[id] {
			if !slices.ContainsFunc(samples, former.same) {
				w.write(former, true)
			}
		}
	}
	ts[id] = samples
	up := &sample{family: "up", kind: "gauge", value: 1}
	if p.flags["failed"] {
		up.value = 0
	}
	w.write(up, p.flags["gone"])
	if p.flags["twice"] {
		rm.CopyTo(md.ResourceMetrics().AppendEmpty())
	}
	return md
}

// resourceNames are how a block's heading abbreviates the receiver's resource
// attributes; any other key is an attribute by itself.
var resourceNames = map[string]string{
	"pod": "k8s.pod.name", "namespace": "k8s.namespace.name", "uid": "k8s.pod.uid", "container": "k8s.container.name",
	"instance": "service.instance.id", "job": "service.name",
}

// describe writes the target's resource and returns what tells it from others.
func (p *page) describe(resource pcommon.Map) string {
	full := map[string]string{"job": "engines", "instance": cmp.Or(p.target["pod"], "localhost") + ":8000"}
	if p.target["pod"] != "" {
		full["namespace"] = "prod"
	}
	maps.Copy(full, p.target)
	delete(full, "start")
	for k, v := range full {
		if v != "" {
			resource.PutStr(cmp.Or(resourceNames[k], k), v)
		}
	}
	return full["job"] + " " + full["instance"] + " " + full["uid"]
}

// samples puts the lines of a page together.
func (p *page) samples() []*sample {
	types := map[string]string{}
	var samples []*sample
	of := func(family, kind, labels string) *sample {
		s := &sample{family: family, kind: kind, labels: labels}
		if i := slices.IndexFunc(samples, s.same); i >= 0 {
			return samples[i]
		}
		samples = append(samples, s)
		return s
	}
	for _, l := range p.lines {
		if l.typed != "" {
			types[l.name] = l.typed
			continue
		}
		family, part := l.name, ""
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base, ok := strings.CutSuffix(l.name, suffix); ok && types[base] == "histogram" {
				family, part = base, suffix
			}
		}
		bound, labels := cutBound(l.labels)
		s := of(family, cmp.Or(types[family], "untyped"), labels)
		switch part {
		case "_bucket":
			s.buckets = append(s.buckets, bucket{bound, l.value})
		case "_sum":
			s.sum, s.hasSum = l.value, true
		case "_count":
			s.count = l.value
		default:
			s.value = l.value
		}
	}
	return samples
}

// cutBound takes the label le out of labels.
func cutBound(labels string) (bound float64, rest string) {
	bound = math.Inf(1)
	var others []string
	for pair := range strings.SplitSeq(labels, ",") {
		text, ok := strings.CutPrefix(pair, `le="`)
		if !ok {
			others = append(others, pair)
			continue
		}
		var err error
		if bound, err = strconv.ParseFloat(strings.TrimSuffix(text, `"`), 64); err != nil {
			panic(err)
		}
	}
	return bound, strings.Join(others, ",")
}

// pageWriter writes samples as metrics.
type pageWriter struct {
	metrics   pmetric.MetricSlice
	at, start pcommon.Timestamp
	delta     bool
}

// write adds one sample, or the mark that there is none any more.
func (w *pageWriter) write(s *sample, gone bool) {
	flags := pmetric.DefaultDataPointFlags.WithNoRecordedValue(gone)
	if s.kind == "histogram" {
		point := w.metric(s).Histogram().DataPoints().AppendEmpty()
		w.fillHistogram(s, point, gone)
		point.SetFlags(flags)
		point.SetTimestamp(w.at)
		point.SetStartTimestamp(w.start)
		putLabels(point.Attributes(), s.labels)
		return
	}
	metric := w.metric(s)
	points := metric.Gauge().DataPoints
	if s.kind == "counter" {
		points = metric.Sum().DataPoints
	}
	point := points().AppendEmpty()
	if !gone {
		point.SetDoubleValue(s.value)
	}
	point.SetFlags(flags)
	point.SetTimestamp(w.at)
	putLabels(point.Attributes(), s.labels)
}

// fillHistogram writes counts; all are zero in a mark.
func (w *pageWriter) fillHistogram(s *sample, point pmetric.HistogramDataPoint, gone bool) {
	below := 0.0
	for _, b := range s.buckets {
		if !math.IsInf(b.bound, 1) {
			point.ExplicitBounds().Append(b.bound)
			point.BucketCounts().Append(uint64(int64(b.cumulative - below)))
			below = b.cumulative
		}
	}
	point.BucketCounts().Append(uint64(int64(s.count - below)))
	if gone {
		point.BucketCounts().FromRaw(make([]uint64, point.BucketCounts().Len()))
		return
	}
	point.SetCount(uint64(s.count))
	if s.hasSum {
		point.SetSum(s.sum)
	}
}

// metric finds the sample's metric or makes it.
func (w *pageWriter) metric(s *sample) pmetric.Metric {
	for _, m := range w.metrics.All() {
		if m.Name() == s.family {
			return m
		}
	}
	m := w.metrics.AppendEmpty()
	m.SetName(s.family)
	switch s.kind {
	case "histogram":
		h := m.SetEmptyHistogram()
		h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		if w.delta {
			h.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		}
	case "counter":
		sum := m.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	default:
		m.SetEmptyGauge()
	}
	return m
}

func putLabels(into pcommon.Map, labels string) {
	for pair := range strings.SplitSeq(labels, ",") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			into.PutStr(strings.TrimSpace(name), strings.Trim(value, `"`))
		}
	}
}
