// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package scenariotest

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

// Targets is what the last page of each target had: a scraper marks what is
// missing from the next one.
type Targets map[string][]*sample

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

// Scrape makes of a page what the prometheus receiver does: a resource per
// target, histograms with one count a bucket, `up`, and for every series that
// the page before had a point without a value. Start timestamps are unknown
// unless the block says start=.
func (ts Targets) Scrape(p *Page, began time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	id := p.describe(rm.Resource().Attributes())
	w := pageWriter{
		metrics: rm.ScopeMetrics().AppendEmpty().Metrics(), at: pcommon.NewTimestampFromTime(began.Add(p.At + p.Stamp)), delta: p.Delta,
	}
	if start := p.Target["start"]; start != "" {
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
	if !p.Unmarked {
		for _, former := range ts[id] {
			if !slices.ContainsFunc(samples, former.same) {
				w.write(former, true)
			}
		}
	}
	ts[id] = samples
	up := &sample{family: "up", kind: "gauge", value: 1}
	if p.Failed {
		up.value = 0
	}
	w.write(up, p.Gone)
	if p.Twice {
		rm.CopyTo(md.ResourceMetrics().AppendEmpty())
	}
	return md
}

// AddGauge adds a gauge as the prometheus receiver writes it.
func AddGauge(metrics pmetric.MetricSlice, at pcommon.Timestamp, name string, value float64) {
	w := pageWriter{metrics: metrics, at: at}
	w.write(&sample{family: name, kind: "gauge", value: value}, false)
}

// resourceNames are how a block's heading abbreviates the attributes of
// resources; any other key is an attribute by itself.
var resourceNames = map[string]string{
	"pod": "k8s.pod.name", "namespace": "k8s.namespace.name", "uid": "k8s.pod.uid", "container": "k8s.container.name",
	"instance": "service.instance.id", "job": "service.name",
}

// describe writes the target's resource and returns what tells it from others.
func (p *Page) describe(resource pcommon.Map) string {
	full := map[string]string{"job": "engines", "instance": cmp.Or(p.Target["pod"], "localhost") + ":8000"}
	if p.Target["pod"] != "" {
		full["namespace"] = "prod"
	}
	maps.Copy(full, p.Target)
	delete(full, "start")
	PutResource(resource, full)
	return full["job"] + " " + full["instance"] + " " + full["uid"]
}

// PutResource writes the attributes of a resource as a heading has them: without
// the empty ones, and [a,b] as a list.
func PutResource(into pcommon.Map, heading map[string]string) {
	for k, v := range heading {
		if v == "" {
			continue
		}
		key := cmp.Or(resourceNames[k], k)
		list, isList := strings.CutPrefix(v, "[")
		if !isList {
			into.PutStr(key, v)
			continue
		}
		values := into.PutEmptySlice(key)
		for item := range strings.SplitSeq(strings.TrimSuffix(list, "]"), ",") {
			values.AppendEmpty().SetStr(item)
		}
	}
}

// samples puts the lines of a page together.
func (p *Page) samples() []*sample {
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
	for _, l := range p.Lines {
		if l.Typed != "" {
			types[l.Name] = l.Typed
			continue
		}
		family, part := l.Name, ""
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base, ok := strings.CutSuffix(l.Name, suffix); ok && types[base] == "histogram" {
				family, part = base, suffix
			}
		}
		bound, labels := cutBound(l.Labels)
		s := of(family, cmp.Or(types[family], "untyped"), labels)
		switch part {
		case "_bucket":
			s.buckets = append(s.buckets, bucket{bound, l.Value})
		case "_sum":
			s.sum, s.hasSum = l.Value, true
		case "_count":
			s.count = l.Value
		default:
			s.value = l.Value
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
