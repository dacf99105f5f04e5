// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

func TestVariant(t *testing.T) {
	vllm := speaker("vllm", dialect.Labels{})
	for name, c := range map[string]struct {
		options         Options
		point, resource labels
		want            []fleet.Label
	}{
		"a label of a raw scrape": {
			Options{VariantLabels: []string{"track"}}, labels{"track": "canary"}, nil, pairs("track", "canary"),
		},
		"as Prometheus flattens it, under its own name": {
			Options{VariantLabels: []string{"app.kubernetes.io/version"}},
			labels{"app_kubernetes_io_version": "7"},
			nil, pairs("app.kubernetes.io/version", "7"),
		},
		"of the resource, as the k8s_attributes processor spells it": {
			Options{VariantLabels: []string{"app.kubernetes.io/version"}},
			nil,
			labels{"k8s.pod.label.app.kubernetes.io/version": "7"},
			pairs("app.kubernetes.io/version", "7"),
		},
		"of the point, so spelled": {
			Options{VariantLabels: []string{"track"}}, labels{"k8s.pod.labels.track": "canary"}, nil, pairs("track", "canary"),
		},
		"the point's counts before the resource's": {
			Options{VariantLabels: []string{"track"}}, labels{"track": "canary"}, labels{"k8s.pod.label.track": "stable"}, pairs("track", "canary"),
		},
		"beside the usual ones": {
			Options{VariantLabels: []string{"track"}},
			labels{"track": "canary", "model_revision": "b"},
			labels{"engine_version": "0.11.0"},
			pairs("model_revision", "b", "engine_version", "0.11.0", "track", "canary"),
		},
		"one of the usual ones": {
			Options{VariantLabels: []string{"model_revision"}}, labels{"model_revision": "b"}, nil, pairs("model_revision", "b"),
		},
		"one that is a key of fleets": {
			Options{VariantLabels: []string{"track"}, GroupBy: []string{"model_name", "track"}}, labels{"track": "canary"}, nil, nil,
		},
		"not asked for": {Options{}, labels{"track": "canary", "pod_template_hash": "5d9"}, nil, nil},

		"the template of a Deployment": {
			Options{Templates: true}, labels{"pod_template_hash": "5d9c7"}, nil, pairs("config_hash", "5d9c7"),
		},
		"of an Argo Rollout": {
			Options{Templates: true}, nil, labels{"k8s.pod.label.rollouts-pod-template-hash": "77f"}, pairs("config_hash", "77f"),
		},
		"of a StatefulSet": {
			Options{Templates: true}, nil, labels{"k8s.pod.label.controller-revision-hash": "engine-6b"}, pairs("config_hash", "engine-6b"),
		},
		"of a LeaderWorkerSet, whose groups are StatefulSets": {
			Options{Templates: true},
			labels{"controller_revision_hash": "lws-0-6b", "leaderworkerset_sigs_k8s_io_template_revision_hash": "9a"},
			nil,
			pairs("config_hash", "9a"),
		},
		"a version that is told counts instead": {
			Options{Templates: true}, labels{"pod_template_hash": "5d9", "engine_version": "0.11.0"}, nil, pairs("engine_version", "0.11.0"),
		},
		"a label of the user's does not": {
			Options{Templates: true, VariantLabels: []string{"track"}},
			labels{"pod_template_hash": "5d9", "track": "canary"},
			nil, pairs("config_hash", "5d9", "track", "canary"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.options.GroupBy == nil {
				c.options.GroupBy = []string{keyModelName}
			}
			if c.resource == nil {
				c.resource = labels{}
			}
			c.resource["service.instance.id"], c.resource[keyModelName] = "i", "m"
			p := point{attributes: attributes(t, c.point), resource: attributes(t, c.resource), entry: vllm}
			of := replicas{groupBy: c.options.GroupBy, variants: newVariants(&c.options)}
			id, reason := of.identity(&p)
			require.Zero(t, reason)
			assert.Equal(t, c.want, id.Variant)
		})
	}
}

// TestVariantThatChanges: the replica's series go on, and it is described anew.
func TestVariantThatChanges(t *testing.T) {
	const name = "track"
	for where, tell := range map[string]func(pmetric.Metrics, pmetric.HistogramDataPoint, string){
		"on the point": func(_ pmetric.Metrics, p pmetric.HistogramDataPoint, v string) { p.Attributes().PutStr(name, v) },
		"on the point, prefixed": func(_ pmetric.Metrics, p pmetric.HistogramDataPoint, v string) {
			p.Attributes().PutStr("k8s.pod.label."+name, v)
		},
		"on the resource": func(md pmetric.Metrics, _ pmetric.HistogramDataPoint, v string) {
			attributesOf(md).PutStr("k8s.pod.label."+name, v)
		},
		"the template's hash": func(_ pmetric.Metrics, p pmetric.HistogramDataPoint, v string) {
			p.Attributes().PutStr("pod_template_hash", v)
		},
		"that of the resource": func(md pmetric.Metrics, _ pmetric.HistogramDataPoint, v string) {
			attributesOf(md).PutStr("k8s.pod.label.pod-template-hash", v)
		},
		"a key": func(_ pmetric.Metrics, p pmetric.HistogramDataPoint, v string) {
			p.Attributes().PutStr("model_revision", v)
		},
		"a key, on the resource": func(md pmetric.Metrics, _ pmetric.HistogramDataPoint, v string) {
			attributesOf(md).PutStr("model_revision", v)
		},
	} {
		t.Run(where, func(t *testing.T) {
			registry := fleet.NewRegistry(fleet.Options{Grids: []window.Grid{window.NewGrid(interval, time.Minute, 5*time.Second)}, MaxReplicas: 10, DepartedAfter: time.Minute})
			registry.Open(noon + 1)
			r := NewReader(Options{
				Dialects: dialect.Builtin(), Signals: []fleet.Signal{fleet.TTFT}, GroupBy: []string{keyModelName},
				VariantLabels: []string{name}, Templates: true,
			}, registry)
			for i, variant := range []string{"", "a", "b"} {
				md, m := pageOf("i", ttftName)
				h := m.SetEmptyHistogram()
				h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
				p := stamp(h.DataPoints().AppendEmpty(), time.Duration(1+i)*time.Second)
				p.ExplicitBounds().FromRaw([]float64{1})
				p.BucketCounts().FromRaw([]uint64{uint64(5 * i), 0})
				if variant != "" {
					tell(md, p, variant)
				}
				r.Read(md)
			}
			registry.Close(noon.Add(interval), fleet.Ask{Signals: []fleet.Signal{fleet.TTFT}}, func(f *fleet.Frame) {
				require.Len(t, f.Members, 1)
				assert.Equal(t, uint64(10), f.Members[0].Told[0].Observations(), "from the first sample on")
				require.Len(t, f.Members[0].Identity.Variant, 1)
				assert.Equal(t, "b", f.Members[0].Identity.Variant[0].Value)
			})
		})
	}
}

// TestReasonOfAnEnd is told in lower case, as far as the dialect knows it.
func TestReasonOfAnEnd(t *testing.T) {
	for name, c := range map[string]struct {
		metric string
		labels []labels // of series that gain 1, 2, …
		want   []fleet.ReasonCount
	}{
		"vLLM": {
			"vllm:request_success_total",
			[]labels{{"finished_reason": "stop"}, {"finished_reason": "length"}, {"finished_reason": "ABORT"}},
			[]fleet.ReasonCount{{Reason: "abort", Count: 3}, {Reason: "length", Count: 2}, {Reason: "stop", Count: 1}},
		},
		"vLLM's ranks": {
			"vllm:request_success_total",
			[]labels{{"finished_reason": "stop", "engine": "0"}, {"finished_reason": "Stop", "engine": "1"}},
			[]fleet.ReasonCount{{Reason: "stop", Count: 3}},
		},
		"SGLang tells none": {"sglang:num_requests_total", []labels{{}}, []fleet.ReasonCount{{Reason: "", Count: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			registry := fleet.NewRegistry(fleet.Options{Grids: []window.Grid{window.NewGrid(interval, time.Minute, 5*time.Second)}, MaxReplicas: 10, DepartedAfter: time.Minute})
			registry.Open(noon + 1)
			signals := []fleet.Signal{fleet.Finished}
			r := NewReader(Options{Dialects: dialect.Builtin(), Signals: signals, GroupBy: []string{keyModelName}}, registry)
			for i := range 2 {
				md, m := pageOf("i", c.metric)
				sum := m.SetEmptySum()
				sum.SetIsMonotonic(true)
				sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
				for n, told := range c.labels {
					p := stamp(sum.DataPoints().AppendEmpty(), time.Duration(1+i)*time.Second)
					for k, v := range told {
						p.Attributes().PutStr(k, v.(string))
					}
					p.SetIntValue(int64(100 + i*(n+1)))
				}
				r.Read(md)
			}
			registry.Close(noon.Add(interval), fleet.Ask{Signals: signals, Reasons: true}, func(f *fleet.Frame) {
				assert.Equal(t, c.want, f.Members[0].Reasons)
			})
		})
	}
}
