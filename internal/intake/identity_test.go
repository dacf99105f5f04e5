// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
)

type labels = map[string]any

// speaker is an entry of a dialect with these labels.
func speaker(name string, labels dialect.Labels) *dialect.Entry {
	labels.Model = []string{"model_name"}
	return &dialect.Entry{Dialect: &dialect.Dialect{Name: name, Labels: labels}}
}

// TestIdentity says whose a point is, by its own labels and its resource's.
func TestIdentity(t *testing.T) {
	groupBy := []string{"cluster", "namespace", "model_name", "role", "engine_name", "gpu_model"}
	vllm := speaker("vllm", dialect.Labels{Replica: []string{"ReplicaId", "WorkerId"}})
	sglang := speaker("sglang", dialect.Labels{Role: []string{"engine_type"}})
	for _, c := range []struct {
		name            string
		entry           *dialect.Entry
		point, resource labels
		replica         string
		keys, where     []fleet.Label
		variant         []fleet.Label
		reason          Reason
	}{
		{
			name: "a pod by its uid", entry: vllm,
			point: labels{"model_name": "m", "engine": "0"},
			resource: labels{
				"k8s.pod.uid": "u-1", "k8s.pod.name": "p", "k8s.namespace.name": "ns", "k8s.cluster.name": "c",
				"service.instance.id": "10.0.0.1:8000",
			},
			replica: "u-1",
			keys:    pairs("cluster", "c", "namespace", "ns", "model_name", "m", "engine_name", "vllm"),
			where:   pairs("pod", "p"),
		},
		{
			name: "a pod label that names another pod than the scraped one", entry: vllm,
			point:    labels{"model_name": "m", "namespace": "ns", "pod": "engine-0"},
			resource: labels{"k8s.pod.uid": "u-1", "k8s.pod.name": "prometheus-0", "k8s.namespace.name": "monitoring"},
			replica:  "ns/engine-0",
			keys:     pairs("namespace", "ns", "model_name", "m", "engine_name", "vllm"),
			where:    pairs("pod", "engine-0"),
		},
		{
			name: "a pod by its uid alone", entry: vllm,
			point:    labels{"model_name": "m"},
			resource: labels{"k8s.pod.uid": "u-1", "service.instance.id": "10.0.0.1:8000"},
			replica:  "u-1",
			keys:     pairs("model_name", "m", "engine_name", "vllm"),
		},
		{
			name: "a federation in a pod, which says whom it scraped", entry: vllm,
			point:    labels{"model_name": "m", "exported_instance": "10.0.0.9:8000"},
			resource: labels{"k8s.pod.uid": "u-1", "service.instance.id": "10.0.0.1:9090"},
			replica:  "10.0.0.9:8000",
			keys:     pairs("model_name", "m", "engine_name", "vllm"),
		},
		{
			name: "a replica that fleet_identity knows", entry: vllm,
			point:    labels{"model_name": "m"},
			resource: labels{"replica": "ns/lws-0", "engine_name": "vllm", "k8s.pod.uid": "u-1", "k8s.pod.name": "lws-0-1"},
			replica:  "ns/lws-0",
			keys:     pairs("model_name", "m", "engine_name", "vllm"),
			where:    pairs("pod", "lws-0-1"),
		},
		{
			name: "a replica of somebody else, as of a pair of Prometheus servers", entry: vllm,
			point:    labels{"model_name": "m", "replica": "prometheus-0"},
			resource: labels{"replica": "prometheus-0", "service.instance.id": "i"},
			replica:  "i",
			keys:     pairs("model_name", "m", "engine_name", "vllm"),
		},
		{
			name: "outside Kubernetes", entry: sglang,
			point:    labels{"model_name": "m", "engine_type": "prefill"},
			resource: labels{"service.instance.id": "10.0.0.1:30000"},
			replica:  "10.0.0.1:30000",
			keys:     pairs("model_name", "m", "role", "prefill", "engine_name", "sglang"),
		},
		{
			name: "one of many replicas behind a Ray agent", entry: vllm,
			point:    labels{"model_name": "m", "ReplicaId": "r7", "WorkerId": "w1"},
			resource: labels{"service.instance.id": "10.0.0.1:8080"},
			replica:  "r7",
			keys:     pairs("model_name", "m", "engine_name", "vllm"),
		},
		{
			name: "what a rollout changes", entry: vllm,
			point:    labels{"model_name": "m", "config_hash": "abc", "gpu_model": "H100"},
			resource: labels{"service.instance.id": "i", "engine_version": "0.11.0"},
			replica:  "i",
			keys:     pairs("model_name", "m", "engine_name", "vllm", "gpu_model", "H100"),
			variant:  pairs("engine_version", "0.11.0", "config_hash", "abc"),
		},
		{
			name: "an undefined model, told by the resource", entry: vllm,
			point:    labels{"model_name": "undefined"},
			resource: labels{"service.instance.id": "i", "model_name": "m"},
			replica:  "i",
			keys:     pairs("model_name", "m", "engine_name", "vllm"),
		},
		{
			name: "a model that the resource does not know either", entry: vllm,
			resource: labels{"service.instance.id": "i", "model_name": "undefined"}, reason: NoModel,
		},
		{name: "no model", entry: vllm, point: labels{"model_name": ""}, resource: labels{"service.instance.id": "i"}, reason: NoModel},
		{name: "nobody", entry: vllm, point: labels{"model_name": "m"}, reason: NoIdentity},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := point{attributes: attributes(t, c.point), resource: attributes(t, c.resource), entry: c.entry}
			of := replicas{groupBy: groupBy, variants: newVariants(&Options{GroupBy: groupBy})}
			id, reason := of.identity(&p)
			assert.Equal(t, c.reason, reason)
			if c.reason != 0 {
				return
			}
			assert.Equal(t, fleet.Identity{Replica: c.replica, Engine: c.entry.Dialect.Name, Keys: c.keys, Where: c.where, Variant: c.variant}, id)
		})
	}
}

func pairs(texts ...string) []fleet.Label {
	var made []fleet.Label
	for i := 0; i < len(texts); i += 2 {
		made = append(made, fleet.Label{Name: texts[i], Value: texts[i+1]})
	}
	return made
}

func attributes(t *testing.T, from labels) pcommon.Map {
	t.Helper()
	m := pcommon.NewMap()
	assert.NoError(t, m.FromRaw(from))
	return m
}

// TestNoKeyOfTheFleetIsKnown: a misspelt group_by puts nobody into one fleet with
// everybody.
func TestNoKeyOfTheFleetIsKnown(t *testing.T) {
	p := point{
		attributes: attributes(t, labels{"model_name": "m"}), resource: attributes(t, labels{"service.instance.id": "i"}),
		entry: speaker("vllm", dialect.Labels{}),
	}
	_, reason := (&replicas{groupBy: []string{"model", "rol"}}).identity(&p)
	assert.Equal(t, NoFleet, reason)
}

func everything(*dialect.Entry) bool { return true }

// TestHashesTellLabelsApart: order means nothing, and which value stands under
// which name means all.
func TestHashesTellLabelsApart(t *testing.T) {
	n := names{}
	n.init(dialect.Builtin(), everything, nil)
	hash := func(pairs ...string) fleet.ID {
		m := pcommon.NewMap()
		for i := 0; i < len(pairs); i += 2 {
			m.PutStr(pairs[i], pairs[i+1])
		}
		series, _ := n.labels(m)
		return series
	}
	same := hash("a", "1", "b", "2")
	assert.Equal(t, same, hash("b", "2", "a", "1"))
	for _, other := range [][]string{{"a", "2", "b", "1"}, {"1", "a", "2", "b"}, {"a", "1"}, {"a", "1", "b", "2", "c", ""}, {"a1", "", "b2", ""}} {
		assert.NotEqual(t, same, hash(other...), other)
	}
}

// TestResourcesOfDifferentReplicasAreDifferentTargets, whatever tells them apart.
func TestResourcesOfDifferentReplicasAreDifferentTargets(t *testing.T) {
	n := names{}
	n.init(dialect.Builtin(), everything, []string{"model_name", "gpu_model"})
	target := func(l labels) fleet.ID {
		id, _ := n.target(attributes(t, l))
		return id
	}
	common := target(labels{"service.instance.id": "i"})
	assert.Equal(t, common, target(labels{"service.instance.id": "i", "engine_version": "0.11.0"}), "learned later")
	for _, key := range []string{"pod", "namespace", "model_name", "gpu_model", "k8s.pod.uid", "service.name"} {
		assert.NotEqual(t, common, target(labels{"service.instance.id": "i", key: "x"}), key)
	}
}

// TestReasonsHaveNames: self-telemetry tells each reason by a name of its own.
func TestReasonsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for r := range ReasonCount {
		assert.NotEmpty(t, r.String())
		assert.False(t, seen[r.String()], r.String())
		seen[r.String()] = true
	}
}
