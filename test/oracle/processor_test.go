// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/llmfleet/llmfleet/processor/fleetoutlierprocessor"
)

// settings make fleet_outlier answer the queries of record: the whole fleet as baseline, nothing withheld for being few,
// and a member leaves when Prometheus' lookback has passed.
var settings = map[string]any{
	"interval":         interval.String(),
	"window":           window.String(),
	"lateness":         lateness.String(),
	"quantiles":        []any{0.95},
	"signals":          []any{"ttft"},
	"compare_to":       "fleet",
	"group_by":         []any{"model_name"},
	"min_observations": 1,
	"min_replicas":     1,
	"departed_after":   "5m",
}

// process sends a history through fleet_outlier, every page at its time, and returns what was derived. The processor's
// own clock ticks: the history runs inside a testing/synctest bubble.
func process(t *testing.T, h *history) figures {
	t.Helper()
	derived := &derivations{t: t, figures: figures{}}
	synctest.Test(t, func(t *testing.T) {
		factory := fleetoutlierprocessor.NewFactory()
		cfg := factory.CreateDefaultConfig()
		require.NoError(t, confmap.NewFromStringMap(settings).Unmarshal(cfg))
		proc, err := factory.CreateMetrics(t.Context(), processortest.NewNopSettings(factory.Type()), cfg, derived)
		require.NoError(t, err)
		require.NoError(t, proc.Start(t.Context(), componenttest.NewNopHost()))
		for _, d := range deliveries(h) {
			time.Sleep(time.Until(d.scrape.at.Add(d.scrape.delay)))
			assert.NoError(t, proc.ConsumeMetrics(t.Context(), d.page(h)))
		}
		time.Sleep(time.Until(epoch.Add(h.length + lateness + time.Second)))
		require.NoError(t, proc.Shutdown(t.Context()))
	})
	return derived.figures
}

// delivery is one scrape on its way to the processor.
type delivery struct {
	pod    *pod
	scrape *scrape
	first  time.Time // of the pod's pages
}

// deliveries returns every scrape of a history in order of arrival.
func deliveries(h *history) []delivery {
	var all []delivery
	for i := range h.pods {
		p := &h.pods[i]
		for j := range p.scrapes {
			all = append(all, delivery{pod: p, scrape: &p.scrapes[j], first: p.firstPage()})
		}
	}
	slices.SortStableFunc(all, func(a, b delivery) int {
		return cmp.Compare(a.scrape.at.Add(a.scrape.delay).UnixNano(), b.scrape.at.Add(b.scrape.delay).UnixNano())
	})
	return all
}

// page makes what the prometheus receiver hands on for one scrape: a vLLM page, or NoRecordedValue points for each of
// its series where the scrape failed; and up.
func (d *delivery) page(h *history) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "vllm")
	rm.Resource().Attributes().PutStr("service.instance.id", d.pod.name+":8000")
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
	if d.scrape.outcome != stillFailed {
		if h.form == exponential {
			d.exponential(metrics.AppendEmpty())
		} else {
			d.histogram(metrics.AppendEmpty(), h.bounds)
		}
		d.gauge(metrics.AppendEmpty(), waiting, d.scrape.waiting)
		d.gauge(metrics.AppendEmpty(), running, d.scrape.running)
	}
	up := metrics.AppendEmpty()
	up.SetName("up")
	point := up.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetTimestamp(pcommon.NewTimestampFromTime(d.scrape.at))
	switch d.scrape.outcome {
	case scraped:
		point.SetDoubleValue(1)
	case failed, stillFailed:
		point.SetDoubleValue(0)
	case removed:
		point.SetFlags(noRecordedValue)
	}
	d.targetLabels(point.Attributes())
	return md
}

var noRecordedValue = pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)

func (d *delivery) targetLabels(attributes pcommon.Map) {
	attributes.PutStr("namespace", "default")
	attributes.PutStr("pod", d.pod.name)
}

func (d *delivery) engineLabels(attributes pcommon.Map) {
	d.targetLabels(attributes)
	attributes.PutStr("model_name", d.pod.model)
	attributes.PutStr("engine", "0")
}

func (d *delivery) gauge(m pmetric.Metric, name string, v float64) {
	m.SetName(name)
	point := m.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetTimestamp(pcommon.NewTimestampFromTime(d.scrape.at))
	d.engineLabels(point.Attributes())
	if d.scrape.outcome != scraped {
		point.SetFlags(noRecordedValue)
		return
	}
	point.SetDoubleValue(v)
}

func (d *delivery) histogram(m pmetric.Metric, bounds []float64) {
	m.SetName(ttft)
	m.SetUnit("s")
	histogram := m.SetEmptyHistogram()
	histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	point := histogram.DataPoints().AppendEmpty()
	point.SetTimestamp(pcommon.NewTimestampFromTime(d.scrape.at))
	point.SetStartTimestamp(d.start())
	d.engineLabels(point.Attributes())
	point.ExplicitBounds().FromRaw(bounds)
	counts := make([]uint64, len(bounds)+1)
	if d.scrape.outcome != scraped {
		point.BucketCounts().FromRaw(counts)
		point.SetFlags(noRecordedValue)
		return
	}
	var below uint64
	for i, upTo := range d.scrape.buckets {
		counts[i], below = upTo-below, upTo
	}
	point.BucketCounts().FromRaw(counts)
	point.SetCount(below)
	point.SetSum(d.scrape.sum)
}

// start is a start that the receiver made up from the first page it saw; half of the pods have none.
func (d *delivery) start() pcommon.Timestamp {
	if len(d.pod.name)%2 == 0 {
		return pcommon.NewTimestampFromTime(d.first)
	}
	return 0
}

func (d *delivery) exponential(m pmetric.Metric) {
	m.SetName(ttft)
	histogram := m.SetEmptyExponentialHistogram()
	histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	point := histogram.DataPoints().AppendEmpty()
	point.SetTimestamp(pcommon.NewTimestampFromTime(d.scrape.at))
	d.engineLabels(point.Attributes())
	if d.scrape.outcome != scraped {
		point.SetFlags(noRecordedValue)
		return
	}
	point.SetStartTimestamp(d.start())
	point.SetSum(d.scrape.sum)
	d.scrape.exponential.fill(point)
}

// derivations is the next consumer: it keeps what fleet_outlier says of itself, and lets the pages pass.
type derivations struct {
	t *testing.T
	sync.Mutex
	figures figures
}

func (*derivations) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (d *derivations) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	d.Lock()
	defer d.Unlock()
	for _, rm := range md.ResourceMetrics().All() {
		if name, _ := rm.Resource().Attributes().Get("service.name"); name.AsString() != "llmfleet" {
			continue
		}
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				d.keep(m)
			}
		}
	}
	return nil
}

// keep reads the points of one derived metric; end points carry no figure.
func (d *derivations) keep(m pmetric.Metric) {
	switch m.Name() {
	case replicaLatency, replicaRatio, fleetLatency, fleetSpread, fleetImbalance:
	default:
		return
	}
	for _, point := range m.Gauge().DataPoints().All() {
		if point.Flags().NoRecordedValue() {
			continue
		}
		key := figure{metric: m.Name(), model: label(point, "model_name"), pod: label(point, "pod")}
		at := point.Timestamp().AsTime().UnixMilli()
		v := point.DoubleValue()
		assert.False(d.t, math.IsNaN(v) || math.IsInf(v, 0), "%v is %v", key, v)
		_, twice := d.figures[at][key]
		assert.False(d.t, twice, "%v came twice for %s", key, point.Timestamp().AsTime())
		d.figures.set(at, key, v)
	}
}

func label(point pmetric.NumberDataPoint, name string) string {
	v, ok := point.Attributes().Get(name)
	if !ok {
		return ""
	}
	return v.AsString()
}
