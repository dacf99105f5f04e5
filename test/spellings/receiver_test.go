// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package spellings

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// plainText is the content type of handwritten pages.
const plainText = "text/plain; version=0.0.4; charset=utf-8"

// source is a scrape target as its scrape configuration describes it.
type source struct {
	instance string            // host:port
	labels   map[string]string // of the target: they win over those of the page
	trimmed  bool              // the receiver has trim_metric_suffixes on: counters lose their _total
	edit     func(page []byte) []byte
}

// receive makes of a page what the prometheus receiver v0.161 hands on for one scrape of it, with the receiver's
// defaults. Pages are read by Prometheus' own parsers; the rest is the receiver's:
//   - a target is one resource, named by its job and instance, and every point has the target's labels;
//   - a family is a metric by its declared name, but a counter by the name of its samples: _total stays, though
//     OpenMetrics declares it without;
//   - what is declared as a gauge is one, also the _created twins that the Python client writes;
//   - cumulative buckets become counts of single buckets, and the last of them has no bound;
//   - a label that the target has too is renamed to exported_…, an empty one is none;
//   - up comes with the page.
func (s source) receive(t *testing.T, page []byte, contentType string, at time.Time) pmetric.Metrics {
	t.Helper()
	if s.edit != nil {
		page = s.edit(page)
	}
	parser, err := textparse.New(page, contentType, labels.NewSymbolTable(), textparse.ParserOptions{})
	require.NoError(t, err)
	r := reception{source: s, types: make(map[string]model.MetricType), families: make(map[string]*family)}
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err, "page of %s", s.instance)
		switch entry {
		case textparse.EntryType:
			name, kind := parser.Type()
			r.types[string(name)] = kind
		case textparse.EntrySeries:
			var of labels.Labels
			parser.Labels(&of)
			_, _, value := parser.Series()
			require.NoError(t, r.sample(of, value))
		default: // help, units and comments say nothing of interest here
		}
	}
	r.types[upName] = model.MetricTypeGauge
	require.NoError(t, r.sample(labels.FromStrings(model.MetricNameLabel, upName), 1))
	return r.metrics(at)
}

const (
	upName = "up"
	job    = "engines"
)

// reception is one page on its way.
type reception struct {
	source
	types    map[string]model.MetricType // as declared
	families map[string]*family
	order    []*family
}

// family is one metric, and group one point of it.
type family struct {
	name   string
	kind   model.MetricType
	groups map[uint64]*group
	order  []*group
}

type group struct {
	labels            labels.Labels
	value, sum, count float64
	hasSum            bool
	parts             []part // buckets, or quantiles
}

// part is a bucket with its upper bound and cumulative count, or a quantile with its value.
type part struct{ boundary, value float64 }

// sample adds one line of the page.
func (r *reception) sample(exposed labels.Labels, value float64) error {
	of := r.relabelled(exposed)
	name := of.Get(model.MetricNameLabel)
	declared, kind := r.declared(name)
	f := r.families[declared]
	if f == nil {
		f = &family{name: declared, kind: kind, groups: make(map[uint64]*group)}
		r.families[declared] = f
		r.order = append(r.order, f)
	}
	g := f.group(of)
	if kind != model.MetricTypeHistogram && kind != model.MetricTypeSummary {
		g.value = value
		return nil
	}
	switch {
	case strings.HasSuffix(name, "_sum"):
		g.sum, g.hasSum = value, true
	case strings.HasSuffix(name, "_count"):
		g.count = value
	default:
		boundary, err := strconv.ParseFloat(cmp.Or(of.Get(model.BucketLabel), of.Get(model.QuantileLabel)), 64)
		if err != nil {
			return err
		}
		g.parts = append(g.parts, part{boundary, value})
	}
	return nil
}

// relabelled adds the labels of the target.
func (r *reception) relabelled(exposed labels.Labels) labels.Labels {
	b := labels.NewBuilder(exposed)
	own := map[string]string{model.InstanceLabel: r.instance, model.JobLabel: job}
	maps.Copy(own, r.labels)
	for name, value := range own {
		if existing := exposed.Get(name); existing != "" {
			b.Set(model.ExportedLabelPrefix+name, existing)
		}
		b.Set(name, value)
	}
	return b.Labels()
}

// declared is the name of the metric that a sample belongs to, and its type.
func (r *reception) declared(sample string) (string, model.MetricType) {
	if kind, ok := r.types[sample]; ok {
		return sample, kind
	}
	for _, suffix := range []string{"_bucket", "_count", "_sum", "_total"} {
		base, ok := strings.CutSuffix(sample, suffix)
		if !ok {
			continue
		}
		switch kind := r.types[base]; kind {
		case "":
		case model.MetricTypeCounter:
			return sample, kind
		default:
			return base, kind
		}
	}
	return sample, model.MetricTypeUnknown
}

// group finds the point that a sample belongs to, or makes it.
func (f *family) group(of labels.Labels) *group {
	of = labels.NewBuilder(of).Del(model.MetricNameLabel).Labels()
	id, _ := of.HashWithoutLabels(nil, model.BucketLabel, model.QuantileLabel)
	g := f.groups[id]
	if g == nil {
		g = &group{labels: of}
		f.groups[id] = g
		f.order = append(f.order, g)
	}
	return g
}

// metrics writes the page as one resource.
func (r *reception) metrics(at time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	host, port, _ := net.SplitHostPort(r.instance)
	for name, value := range map[string]string{
		"service.name": job, "service.instance.id": r.instance, "server.address": host, "server.port": port, "url.scheme": "http",
	} {
		rm.Resource().Attributes().PutStr(name, value)
	}
	into := rm.ScopeMetrics().AppendEmpty().Metrics()
	for _, f := range r.order {
		m := into.AppendEmpty()
		m.SetName(f.name)
		if r.trimmed && f.kind == model.MetricTypeCounter {
			m.SetName(strings.TrimSuffix(f.name, "_total"))
		}
		m.Metadata().PutStr("prometheus.type", string(f.kind))
		f.write(m, pcommon.NewTimestampFromTime(at.Truncate(time.Millisecond)))
	}
	return md
}

func (f *family) write(m pmetric.Metric, at pcommon.Timestamp) {
	switch f.kind {
	case model.MetricTypeHistogram:
		h := m.SetEmptyHistogram()
		h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		for _, g := range f.order {
			g.histogram(h.DataPoints().AppendEmpty(), at)
		}
	case model.MetricTypeSummary:
		s := m.SetEmptySummary()
		for _, g := range f.order {
			g.summary(s.DataPoints().AppendEmpty(), at)
		}
	case model.MetricTypeCounter:
		s := m.SetEmptySum()
		s.SetIsMonotonic(true)
		s.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		f.numbers(s.DataPoints(), at)
	default:
		f.numbers(m.SetEmptyGauge().DataPoints(), at)
	}
}

func (f *family) numbers(into pmetric.NumberDataPointSlice, at pcommon.Timestamp) {
	for _, g := range f.order {
		p := into.AppendEmpty()
		p.SetTimestamp(at)
		p.SetDoubleValue(g.value)
		g.attributes(p.Attributes())
	}
}

func (g *group) histogram(p pmetric.HistogramDataPoint, at pcommon.Timestamp) {
	p.SetTimestamp(at)
	p.SetCount(uint64(g.count))
	if g.hasSum {
		p.SetSum(g.sum)
	}
	g.attributes(p.Attributes())
	slices.SortFunc(g.parts, func(a, b part) int { return cmp.Compare(a.boundary, b.boundary) })
	below := 0.0
	for _, b := range g.parts {
		if math.IsInf(b.boundary, 1) {
			break
		}
		p.ExplicitBounds().Append(b.boundary)
		p.BucketCounts().Append(uint64(b.value - below))
		below = b.value
	}
	p.BucketCounts().Append(uint64(g.count - below))
}

func (g *group) summary(p pmetric.SummaryDataPoint, at pcommon.Timestamp) {
	p.SetTimestamp(at)
	p.SetCount(uint64(g.count))
	p.SetSum(g.sum)
	g.attributes(p.Attributes())
	for _, q := range g.parts {
		quantile := p.QuantileValues().AppendEmpty()
		quantile.SetQuantile(q.boundary)
		quantile.SetValue(q.value)
	}
}

// attributes are the labels that are no part of the point: the receiver leaves out those that made the resource.
func (g *group) attributes(into pcommon.Map) {
	of := g.labels.Map()
	maps.DeleteFunc(of, func(name, value string) bool {
		return value == "" || slices.Contains([]string{model.BucketLabel, model.QuantileLabel, model.InstanceLabel, model.JobLabel}, name)
	})
	for name, value := range of {
		into.PutStr(name, value)
	}
}
