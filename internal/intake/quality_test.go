// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// measures are what is read here, in the order of their signals.
var measures = []Quality{
	{Metric: "eval.score", Type: fleet.Gauge, Attributes: map[string]string{"eval.name": "faithful"}, Signal: fleet.Quality(0)},
	{Metric: "eval.score", Type: fleet.Gauge, Attributes: map[string]string{"eval.name": "toxic"}, Signal: fleet.Quality(1)},
	{Metric: "answer_rating", Type: fleet.Histogram, Signal: fleet.Quality(7)},
}

var measured = []fleet.Signal{fleet.Quality(0), fleet.Quality(1), fleet.Quality(7)}

func newQualityReader(o Options) *Reader {
	registry := fleet.NewRegistry(fleet.Options{
		Grids: []window.Grid{window.NewGrid(interval, interval, 5*time.Second)}, MaxReplicas: 10, CopiesByProcess: true, DepartedAfter: window.MaxGap,
	})
	registry.Open(noon + 1)
	o.Quality = measures
	o.GroupBy = []string{"cluster", "namespace", "model_name", "role", "engine_name", "gpu_model"}
	return NewReader(o, registry)
}

func attributesOf(md pmetric.Metrics) pcommon.Map {
	return md.ResourceMetrics().At(0).Resource().Attributes()
}

// score is one point of a gauge.
type score struct {
	metric   string
	labels   labels
	resource labels
	value    float64
}

func (s score) page(t *testing.T, at time.Duration) pmetric.Metrics {
	t.Helper()
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	if s.resource == nil {
		s.resource = labels{"service.instance.id": "judge:1"}
	}
	require.NoError(t, rm.Resource().Attributes().FromRaw(s.resource))
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(s.metric)
	p := m.SetEmptyGauge().DataPoints().AppendEmpty()
	require.NoError(t, p.Attributes().FromRaw(s.labels))
	p.SetTimestamp(pcommon.Timestamp(noon.Add(at)))
	p.SetDoubleValue(s.value)
	return md
}

// judgements are what the frames say, by "replica signal", with the keys of fleets.
func judgements(r *Reader) (observations map[string]uint64, variants map[string][]fleet.Label, keys [][]fleet.Label) {
	observations, variants = map[string]uint64{}, map[string][]fleet.Label{}
	r.registry.Close(noon.Add(interval), fleet.Ask{Signals: measured}, func(f *fleet.Frame) {
		keys = append(keys, f.Fleet.Keys)
		for i := range f.Members {
			m := &f.Members[i]
			variants[m.Identity.Replica] = m.Identity.Variant
			for s := range measured {
				if n := m.Told[s].Observations(); n > 0 {
					observations[fmt.Sprint(m.Identity.Replica, " ", measured[s])] = n
				}
			}
		}
	})
	return observations, variants, keys
}

func TestWhoseQualityItIs(t *testing.T) {
	faithful := func(more labels) labels {
		all := labels{"eval.name": "faithful", "model_name": "m"}
		maps.Copy(all, more)
		return all
	}
	ofModel := [][]fleet.Label{pairs("model_name", "m")}
	for name, c := range map[string]struct {
		options      Options
		scores       []score
		observations map[string]uint64
		variants     map[string][]fleet.Label
		keys         [][]fleet.Label
	}{
		"two variants by one teller": {
			scores: []score{
				{metric: "eval.score", labels: faithful(labels{"model_revision": "a"}), value: 0.9},
				{metric: "eval.score", labels: faithful(labels{"model_revision": "b"}), value: 0.7},
				{metric: "eval_score", labels: labels{"eval_name": "toxic", "model_name": "m", "model_revision": "b"}, value: 0.1},
			},
			observations: map[string]uint64{
				"judge:1 model_revision=a quality_1": 1, "judge:1 model_revision=b quality_1": 1, "judge:1 model_revision=b quality_2": 1,
			},
			variants: map[string][]fleet.Label{
				"judge:1 model_revision=a": pairs("model_revision", "a"), "judge:1 model_revision=b": pairs("model_revision", "b"),
			},
			keys: ofModel,
		},
		"one variant by two tellers": {
			scores: []score{
				{metric: "eval.score", labels: faithful(labels{"model_revision": "a"}), value: 0.9},
				{
					metric: "eval.score", labels: faithful(labels{"model_revision": "a"}), value: 0.9,
					resource: labels{"service.name": "judges", "k8s.namespace.name": "elsewhere", "k8s.cluster.name": "c"},
				},
			},
			observations: map[string]uint64{"judge:1 model_revision=a quality_1": 1, "judges model_revision=a quality_1": 1},
			variants: map[string][]fleet.Label{
				"judge:1 model_revision=a": pairs("model_revision", "a"), "judges model_revision=a": pairs("model_revision", "a"),
			},
			keys: ofModel, // where a teller runs is no key
		},
		"keys that the teller names": {
			scores: []score{{
				metric: "eval.score", value: 0.9,
				labels: faithful(labels{"config_hash": "x", "namespace": "prod", "engine_name": "vllm", "gpu_model": "H100"}),
			}},
			observations: map[string]uint64{"judge:1 config_hash=x quality_1": 1},
			variants:     map[string][]fleet.Label{"judge:1 config_hash=x": pairs("config_hash", "x")},
			keys:         [][]fleet.Label{pairs("namespace", "prod", "model_name", "m", "engine_name", "vllm", "gpu_model", "H100")},
		},
		"labels of the user's": {
			options: Options{VariantLabels: []string{"track"}, Templates: true},
			scores: []score{
				{metric: "eval.score", labels: faithful(labels{"track": "canary"}), value: 0.9},
				{metric: "eval.score", labels: faithful(labels{"pod_template_hash": "5d9"}), value: 0.9},
				{ // its own template is none that it judges
					metric: "eval.score", labels: faithful(labels{"track": "stable"}), value: 0.9,
					resource: labels{"service.instance.id": "judge:2", "k8s.pod.label.pod-template-hash": "judges", "k8s.pod.label.track": "canary"},
				},
			},
			observations: map[string]uint64{
				"judge:1 track=canary quality_1": 1, "judge:1 config_hash=5d9 quality_1": 1, "judge:2 track=stable quality_1": 1,
			},
			variants: map[string][]fleet.Label{
				"judge:1 track=canary": pairs("track", "canary"), "judge:1 config_hash=5d9": pairs("config_hash", "5d9"),
				"judge:2 track=stable": pairs("track", "stable"),
			},
			keys: ofModel,
		},
		"a variant of the resource, one after the other": {
			scores: []score{
				{metric: "eval.score", labels: faithful(nil), value: 0.9, resource: labels{"service.instance.id": "judge:1", "engine_version": "1"}},
				{metric: "eval.score", labels: faithful(nil), value: 0.8, resource: labels{"service.instance.id": "judge:1", "engine_version": "2"}},
			},
			observations: map[string]uint64{"judge:1 engine_version=1 quality_1": 1, "judge:1 engine_version=2 quality_1": 1},
			variants: map[string][]fleet.Label{
				"judge:1 engine_version=1": pairs("engine_version", "1"), "judge:1 engine_version=2": pairs("engine_version", "2"),
			},
			keys: ofModel,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newQualityReader(c.options)
			for i, s := range c.scores {
				r.Read(s.page(t, time.Duration(i+1)*time.Second))
			}
			observations, variants, keys := judgements(r)
			assert.Equal(t, c.observations, observations)
			assert.Equal(t, c.variants, variants)
			assert.Equal(t, c.keys, keys)
		})
	}
}

func TestQualityThatIsNotRead(t *testing.T) {
	good := labels{"eval.name": "faithful", "model_name": "m", "model_revision": "a"}
	without := func(key string) labels {
		less := maps.Clone(good)
		delete(less, key)
		return less
	}
	for name, c := range map[string]struct {
		score  score
		reason Reason
	}{
		"below zero":               {score{metric: "eval.score", labels: good, value: -0.1}, Range},
		"no attribute":             {score{metric: "eval.score", labels: without("eval.name"), value: 1}, Label},
		"no model":                 {score{metric: "eval.score", labels: without("model_name"), value: 1}, NoModel},
		"no variant":               {score{metric: "eval.score", labels: without("model_revision"), value: 1}, NoIdentity},
		"a gauge, for a histogram": {score{metric: "answer_rating", labels: good, value: 1}, Type},
	} {
		t.Run(name, func(t *testing.T) {
			r := newQualityReader(Options{})
			r.Read(c.score.page(t, time.Second))
			assert.Positive(t, r.Tally().Ignored(c.reason))
			observations, _, _ := judgements(r)
			assert.Empty(t, observations)
		})
	}
}

// TestNewValuesOfAGauge are an observation each: 0.9, 0.8, 0.9, of two series.
func TestNewValuesOfAGauge(t *testing.T) {
	r := newQualityReader(Options{})
	of := labels{"eval.name": "faithful", "model_name": "m", "model_revision": "a"}
	other := labels{"eval.name": "faithful", "model_name": "m", "model_revision": "a", "set": "2"}
	for i, v := range []float64{0.9, 0.9, 0.8, 0.8, 0.9} {
		at := time.Duration(i+1) * time.Second
		r.Read(score{metric: "eval.score", labels: of, value: v}.page(t, at))
		r.Read(score{metric: "eval.score", labels: other, value: 0}.page(t, at))
	}
	r.registry.Close(noon.Add(interval), fleet.Ask{Signals: measured}, func(f *fleet.Frame) {
		d := &f.Members[0].Told[0]
		e, ok := d.Layout.Exponential()
		assert.True(t, ok)
		assert.Equal(t, 4, e.Scale)
		assert.Equal(t, uint64(1), d.Counts[0], "the other's zero, once")
		assert.Equal(t, uint64(2), d.Counts[1-3-e.First], "0.9 in (0.878, 0.917]")
		assert.Equal(t, uint64(1), d.Counts[1-6-e.First], "0.8 in (0.771, 0.805]")
		assert.Equal(t, uint64(4), d.Observations())
		assert.InDelta(t, 2.6, d.Sum, 1e-12)
		assert.True(t, d.SumKnown)
	})
}

// TestHistogramsOfQuality, explicit or exponential, cumulative or differences, of
// which 2 and then 3 more observations count; of cumulative ones the first is what
// was there before.
func TestHistogramsOfQuality(t *testing.T) {
	for name, c := range map[string]struct {
		temporality pmetric.AggregationTemporality
		exponential bool
		want        uint64
	}{
		"cumulative":                           {pmetric.AggregationTemporalityCumulative, false, 3},
		"differences":                          {pmetric.AggregationTemporalityDelta, false, 7},
		"exponential buckets":                  {pmetric.AggregationTemporalityCumulative, true, 3},
		"differences with exponential buckets": {pmetric.AggregationTemporalityDelta, true, 7},
	} {
		t.Run(name, func(t *testing.T) {
			r := newQualityReader(Options{})
			for i, n := range []uint64{2, 5} {
				md, m := pageOf("judge:1", "answer_rating")
				at := time.Duration(i+1) * time.Second
				if c.exponential {
					h := m.SetEmptyExponentialHistogram()
					h.SetAggregationTemporality(c.temporality)
					p := stamp(h.DataPoints().AppendEmpty(), at)
					p.Attributes().PutStr("model_revision", "a")
					p.Positive().BucketCounts().FromRaw([]uint64{n})
					p.SetCount(n)
				} else {
					h := m.SetEmptyHistogram()
					h.SetAggregationTemporality(c.temporality)
					p := stamp(h.DataPoints().AppendEmpty(), at)
					p.Attributes().PutStr("model_revision", "a")
					p.ExplicitBounds().FromRaw([]float64{1, 2, 3, 4})
					p.BucketCounts().FromRaw([]uint64{0, 0, n, 0, 0})
				}
				r.Read(md)
			}
			observations, _, _ := judgements(r)
			assert.Equal(t, map[string]uint64{"judge:1 model_revision=a quality_8": c.want}, observations)
		})
	}
}

// TestPagesOfEnginesAreNobodysJudgement: a target that tells of no quality is none
// that should.
func TestPagesOfEnginesAreNobodysJudgement(t *testing.T) {
	r := newQualityReader(Options{})
	md, m := pageOf("i", "up")
	p := stamp(m.SetEmptyGauge().DataPoints().AppendEmpty(), time.Second)
	p.SetDoubleValue(1)
	waiting := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
	waiting.SetName("vllm:num_requests_waiting")
	stamp(waiting.SetEmptyGauge().DataPoints().AppendEmpty(), time.Second)
	r.Read(md)
	for reason := range ReasonCount {
		assert.Zero(t, r.Tally().Ignored(reason), reason)
	}
}

// TestQualityIsNoSignalOfADialect, by whatever name.
func TestQualityIsNoSignalOfADialect(t *testing.T) {
	for i := range fleet.Qualities {
		s := fleet.Quality(i)
		assert.True(t, s.IsQuality())
		_, ok := fleet.ParseSignal(s.String())
		assert.False(t, ok, s)
	}
	assert.False(t, fleet.BudgetLimit.IsQuality())
	assert.False(t, fleet.SignalCount.IsQuality())
}
