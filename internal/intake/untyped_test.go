// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// federate makes of pages what the prometheus receiver makes of them when it
// scrapes them off another Prometheus, which tells no types.
func federate(md pmetric.Metrics) pmetric.Metrics {
	federated := pmetric.NewMetrics()
	for _, rm := range md.ResourceMetrics().All() {
		to := federated.ResourceMetrics().AppendEmpty()
		rm.Resource().CopyTo(to.Resource())
		f := federation{to.ScopeMetrics().AppendEmpty().Metrics(), map[string]pmetric.Metric{}}
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				f.untype(m)
			}
		}
	}
	return federated
}

type federation struct {
	metrics pmetric.MetricSlice
	byName  map[string]pmetric.Metric
}

func (f *federation) untype(m pmetric.Metric) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		f.numbers(m.Name(), m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		f.numbers(m.Name(), m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			f.histogram(m.Name(), p)
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			f.sample(m.Name()+"_sum", p.Attributes(), p.Timestamp(), p.Flags(), p.Sum())
			f.sample(m.Name()+"_count", p.Attributes(), p.Timestamp(), p.Flags(), float64(p.Count()))
		}
	default:
		panic("Prometheus has no " + m.Type().String())
	}
}

func (f *federation) numbers(name string, points pmetric.NumberDataPointSlice) {
	for _, p := range points.All() {
		f.sample(name, p.Attributes(), p.Timestamp(), p.Flags(), number(p))
	}
}

// histogram writes buckets in the order in which Prometheus does, of the text of
// their bounds.
func (f *federation) histogram(name string, p pmetric.HistogramDataPoint) {
	bucket := func(le string, value uint64) {
		f.sample(name+"_bucket", p.Attributes(), p.Timestamp(), p.Flags(), float64(value)).PutStr("le", le)
	}
	bucket("+Inf", p.Count())
	below := uint64(0)
	for i := range p.ExplicitBounds().Len() {
		below += p.BucketCounts().At(i)
		bucket(strconv.FormatFloat(p.ExplicitBounds().At(i), 'g', -1, 64), below)
	}
	f.sample(name+"_count", p.Attributes(), p.Timestamp(), p.Flags(), float64(p.Count()))
	f.sample(name+"_sum", p.Attributes(), p.Timestamp(), p.Flags(), p.Sum())
}

func (f *federation) sample(name string, labels pcommon.Map, at pcommon.Timestamp, flags pmetric.DataPointFlags, value float64) pcommon.Map {
	m, ok := f.byName[name]
	if !ok {
		m = f.metrics.AppendEmpty()
		m.SetName(name)
		if m.SetEmptyGauge(); name != "up" { // which the receiver knows by itself
			m.Metadata().PutStr("prometheus.type", "unknown")
		}
		f.byName[name] = m
	}
	p := m.Gauge().DataPoints().AppendEmpty()
	labels.CopyTo(p.Attributes())
	p.SetTimestamp(at)
	p.SetFlags(flags)
	if !flags.NoRecordedValue() {
		p.SetDoubleValue(value)
	}
	return p.Attributes()
}

// TestFederatedPages: what is told of every source's page is told of it as
// federated, too.
func TestFederatedPages(t *testing.T) {
	paths, err := filepath.Glob(pageFolder + "*.prom")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".prom"), func(t *testing.T) {
			options := pageOptions(path)
			page := scraped(t, readFile(t, path), time.Second)
			direct := tabulate(Explain(options, page))
			require.Equal(t, filepath.Base(path) == "runtime.prom", len(direct) == 0, "it has facts alone")
			assert.Equal(t, direct, tabulate(Explain(options, federate(page))))
		})
	}
}

// samples are lines of a federated page of TTFT: name, labels, value, and seconds
// after noon.
func samples(lines ...string) pmetric.Metrics {
	md, first := pageOf("10.0.0.1:8000", "")
	metrics := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	f := federation{metrics, map[string]pmetric.Metric{}}
	for _, line := range lines {
		fields := strings.Fields(line)
		labels := pcommon.NewMap()
		labels.PutStr("model_name", "m")
		for _, pair := range fields[1 : len(fields)-2] {
			key, value, _ := strings.Cut(pair, "=")
			labels.PutStr(key, value)
		}
		value, _ := strconv.ParseFloat(fields[len(fields)-2], 64)
		after, _ := strconv.Atoi(fields[len(fields)-1])
		flags := pmetric.DefaultDataPointFlags.WithNoRecordedValue(fields[len(fields)-2] == "stale")
		f.sample("vllm:time_to_first_token_seconds"+fields[0], labels, pcommon.Timestamp(noon.Add(time.Duration(after)*time.Second)), flags, value)
	}
	first.SetName("vllm:cache_config_info") // of no signal
	return md
}

// empty is the page before: nothing was counted yet.
var empty = []string{"_bucket le=+Inf 0 1", "_bucket le=0.1 0 1", "_bucket le=1.0 0 1", "_count 0 1", "_sum 0 1"}

// TestPartsOfHistograms puts them together by their labels and times, in any
// order; what is missing or wrong is refused, and counted with a reason.
func TestPartsOfHistograms(t *testing.T) {
	for _, c := range []struct {
		name   string
		lines  string // separated by commas
		counts []uint64
		reason Reason
	}{
		{name: "in Prometheus' order", lines: "_bucket le=+Inf 5 11,_bucket le=0.1 2 11,_bucket le=1.0 4 11,_count 5 11,_sum 3 11", counts: []uint64{2, 2, 1}},
		{name: "in another", lines: "_sum 3 11,_count 5 11,_bucket le=1.0 4 11,_bucket le=+Inf 5 11,_bucket le=0.1 2 11", counts: []uint64{2, 2, 1}},
		{name: "bounds as other versions write them", lines: "_bucket le=+Inf 5 11,_bucket le=1e-1 2 11,_bucket le=1 4 11,_count 5 11,_sum 3 11", counts: []uint64{2, 2, 1}},
		{name: "no +Inf", lines: "_bucket le=0.1 2 11,_bucket le=1.0 4 11,_count 5 11,_sum 3 11", reason: Incomplete},
		{name: "no buckets", lines: "_count 5 11,_sum 3 11", reason: Incomplete},
		{name: "no count", lines: "_bucket le=+Inf 5 11,_bucket le=0.1 2 11,_bucket le=1.0 4 11,_sum 3 11", reason: Incomplete},
		{name: "no sum", lines: "_bucket le=+Inf 5 11,_bucket le=0.1 2 11,_bucket le=1.0 4 11,_count 5 11", reason: Incomplete},
		{name: "of two scrapes", lines: "_bucket le=+Inf 5 11,_bucket le=0.1 2 11,_bucket le=1.0 4 11,_count 5 12,_sum 3 12", reason: Incomplete},
		{name: "falling buckets", lines: "_bucket le=+Inf 5 11,_bucket le=0.1 4 11,_bucket le=1.0 2 11,_count 5 11,_sum 3 11", reason: Reason(window.BadBuckets)},
		{name: "two of one bound", lines: "_bucket le=+Inf 5 11,_bucket le=1 2 11,_bucket le=1.0 4 11,_count 5 11,_sum 3 11", reason: Reason(window.BadBuckets)},
		{name: "two counts", lines: "_bucket le=+Inf 5 11,_bucket le=0.1 2 11,_bucket le=1.0 4 11,_count 5 11,_count 5 11,_sum 3 11", reason: Reason(window.BadBuckets)},
		{name: "a count that is not that of the buckets", lines: "_bucket le=+Inf 5 11,_bucket le=0.1 2 11,_bucket le=1.0 4 11,_count 6 11,_sum 3 11", reason: Reason(window.BadBuckets)},
		{name: "half an observation", lines: "_bucket le=+Inf 5 11,_bucket le=0.1 2.5 11,_bucket le=1.0 4 11,_count 5 11,_sum 3 11", reason: Reason(window.BadBuckets)},
		{name: "fewer than none", lines: "_bucket le=+Inf 5 11,_bucket le=0.1 -2 11,_bucket le=1.0 4 11,_count 5 11,_sum 3 11", reason: Reason(window.BadBuckets)},
		{name: "no number", lines: "_bucket le=+Inf NaN 11,_bucket le=0.1 2 11,_bucket le=1.0 4 11,_count NaN 11,_sum 3 11", reason: Reason(window.BadBuckets)},
		{name: "infinitely many", lines: "_bucket le=+Inf +Inf 11,_bucket le=0.1 2 11,_bucket le=1.0 4 11,_count +Inf 11,_sum 3 11", reason: Reason(window.BadBuckets)},
		{name: "a bound that is none", lines: "_bucket le=+Inf 5 11,_bucket le=fast 2 11,_bucket le=1.0 4 11,_count 5 11,_sum 3 11", reason: Reason(window.BadBuckets)},
		{name: "a bucket without a bound", lines: "_bucket le=+Inf 5 11,_bucket 2 11,_bucket le=1.0 4 11,_count 5 11,_sum 3 11", reason: Reason(window.BadBuckets)},
		{name: "a bound below zero", lines: "_bucket le=+Inf 5 11,_bucket le=-1 0 11,_bucket le=1.0 4 11,_count 5 11,_sum 3 11", reason: Reason(window.BadBuckets)},
		{name: "ended", lines: "_bucket le=+Inf stale 11,_bucket le=0.1 stale 11,_bucket le=1.0 stale 11,_count stale 11,_sum stale 11", reason: Unrecorded},
		{name: "some buckets ended", lines: "_bucket le=+Inf 5 11,_bucket le=0.1 stale 11,_bucket le=1.0 4 11,_count 5 11,_sum 3 11", reason: Reason(window.BadBuckets)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReader()
			r.Read(samples(empty...))
			r.Read(samples(strings.Split(c.lines, ",")...))
			_, counts := observed(t, r)
			if c.reason != 0 {
				assert.Equal(t, []uint64{0, 0, 0}, counts)
				assert.NotZero(t, r.Tally().Ignored(c.reason))
			} else {
				assert.Equal(t, c.counts, counts)
			}
			for reason := range ReasonCount {
				if reason != c.reason && reason != Reason(window.First) {
					assert.Zero(t, r.Tally().Ignored(reason), reason)
				}
			}
		})
	}
}

// TestHistogramsOfOnePageStayApart: what differs by any label but the bucket's is
// another.
func TestHistogramsOfOnePageStayApart(t *testing.T) {
	r := newReader()
	for i := range 2 {
		var lines []string
		for engine, faster := range []int{1, 3} {
			for _, line := range []string{"_bucket engine=%d le=+Inf %d %d", "_count engine=%d %d %d", "_sum engine=%d %d %d"} {
				lines = append(lines, fmt.Sprintf(line, engine, 10*i, 10*i+1))
			}
			lines = append(lines, fmt.Sprintf("_bucket le=0.5 engine=%d %d %d", engine, faster*i, 10*i+1))
		}
		r.Read(samples(lines...))
	}
	_, counts := observed(t, r)
	assert.Equal(t, []uint64{4, 16}, counts, "two ranks of one replica, added up")
}

// TestGaugesByThatName are gauges, if somebody says so.
func TestGaugesByThatName(t *testing.T) {
	r := newReader()
	for range 2 {
		md := samples(empty...)
		for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			m.Metadata().PutStr("prometheus.type", "gauge")
		}
		r.Read(md)
	}
	for reason := range ReasonCount {
		assert.Zero(t, r.Tally().Ignored(reason), reason)
	}
	r.Tally().Observed(func(_ string, signal fleet.Signal, points uint64) { assert.Zero(t, points, signal) })
}
