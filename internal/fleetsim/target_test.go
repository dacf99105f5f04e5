// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"net/http"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestATargetIsAReplica(t *testing.T) {
	sim := simulate(t, oneVLLM)
	require.Len(t, sim.Targets(), 3)
	for i, target := range sim.Targets() {
		assert.Equal(t, sim.Engines()[i].Name(), target.Name())
		assert.Equal(t, []*Engine{sim.Engines()[i]}, target.Engines())
		assert.Equal(t, "/metrics", target.Path())
		page, status := target.AppendPage(nil)
		assert.Equal(t, http.StatusOK, status)
		assert.Equal(t, pageAt(t, sim, i, 0), string(page))
	}
}

// node returns the families that a target shows.
func node(t *testing.T, target *Target) map[string]*dto.MetricFamily {
	t.Helper()
	page, status := target.AppendPage(nil)
	require.Equal(t, http.StatusOK, status)
	return parsePage(t, string(page))
}

// replicasOf lists the ReplicaId of a family's series.
func replicasOf(family *dto.MetricFamily) []string {
	var ids []string
	for _, m := range family.GetMetric() {
		ids = append(ids, labelsOf(m)["ReplicaId"])
	}
	return ids
}

func TestRaysAgentShowsTheReplicasOfItsNode(t *testing.T) {
	sim := simulate(t, vllmOf(VLLMRay))
	require.Len(t, sim.Targets(), 1)
	sim.AdvanceTo(30 * time.Second)
	families := node(t, sim.Targets()[0])
	ids := []string{"qwen-0", "qwen-1", "qwen-2"}
	for _, name := range []string{"ray_vllm_num_requests_running", "ray_vllm_time_to_first_token_seconds", "ray_vllm_generation_tokens_total"} {
		require.Contains(t, families, name)
		assert.Equal(t, ids, replicasOf(families[name]), name)
		labels := labelsOf(families[name].GetMetric()[0])
		for label, want := range map[string]string{
			"Component": "^core_worker$", "SessionName": "^session_2026-08-17_", "Version": `^2\.\d+\.\d+$`, "WorkerId": "^[0-9a-f]{56}$",
			"engine": "^0$", "model_name": "^qwen3-8b$",
		} {
			assert.Regexp(t, want, labels[label], label)
		}
		assert.Len(t, labels, 7)
	}
	for name := range families {
		assert.Regexp(t, "^ray_vllm_[a-z0-9_]+$", name)
	}
	assert.NotContains(t, families, "ray_vllm_num_preemptions_total", "Ray drops what was never counted")
	assert.Equal(t, "GAUGE", families["ray_vllm_generation_tokens"].GetType().String(), "Ray repeats counters")
	assert.Equal(t, value(t, families, "ray_vllm_generation_tokens_total"), value(t, families, "ray_vllm_generation_tokens"))
}

func TestReplicasPerNode(t *testing.T) {
	sim := simulate(t, strings.Replace(vllmOf(VLLMRay), "version: ray", "version: ray, replicas_per_node: 2", 1))
	sim.AdvanceTo(10 * time.Second)
	var names []string
	var ids [][]string
	for _, target := range sim.Targets() {
		names = append(names, target.Name())
		ids = append(ids, replicasOf(node(t, target)["ray_vllm_num_requests_running"]))
	}
	assert.Equal(t, []string{"qwen-node-0", "qwen-node-1"}, names)
	assert.Equal(t, [][]string{{"qwen-0", "qwen-1"}, {"qwen-2"}}, ids)
}

func TestAReplicaThatDoesNotAnswerIsMissingOnItsNode(t *testing.T) {
	sim := simulate(t, vllmOf(VLLMRay)+`
faults:
  - {kind: restart, replicas: [1], from: 10s, to: 20s}
  - {kind: gap, replicas: [2], from: 10s, to: 20s, status: 503}
`)
	running := func(at time.Duration) (ids []string, worker string) {
		sim.AdvanceTo(at)
		family := node(t, sim.Targets()[0])["ray_vllm_num_requests_running"]
		return replicasOf(family), labelsOf(family.GetMetric()[min(1, len(family.GetMetric())-1)])["WorkerId"]
	}
	ids, before := running(9 * time.Second)
	assert.Equal(t, []string{"qwen-0", "qwen-1", "qwen-2"}, ids)
	ids, _ = running(15 * time.Second)
	assert.Equal(t, []string{"qwen-0"}, ids)
	ids, after := running(25 * time.Second)
	assert.Equal(t, []string{"qwen-0", "qwen-1", "qwen-2"}, ids)
	assert.NotEqual(t, before, after, "a new process is another worker")
}

func TestAStaleFamilyIsOneReplicasOwnOnANode(t *testing.T) {
	const family = "ray_vllm_num_requests_running"
	sim := simulate(t, vllmOf(VLLMRay)+"faults: [{kind: stale_series, replicas: [0], series: "+family+", from: 10s}]\n")
	sim.AdvanceTo(15 * time.Second)
	assert.Equal(t, []string{"qwen-1", "qwen-2"}, replicasOf(node(t, sim.Targets()[0])[family]))
}

func TestLabelsSayWhereAReplicaRunsAndWhatItServes(t *testing.T) {
	sim := simulate(t, `
fleets:
  - {name: a, engine: vllm, model_name: m, replicas: 3, nodes: [n0, n1], gpu_models: [H100], revisions: [r1, r2, r3], engine_versions: [v1], arrivals: {rate: 1}}
  - {name: b, engine: tensorrt_llm, model_name: m, arrivals: {rate: 1}}
  - {name: c, engine: vllm, version: ray, model_name: m, replicas: 2, gpu_models: [H100], revisions: [r1, r2], arrivals: {rate: 1}}
`)
	want := []map[string]string{
		{"namespace": Namespace, "pod": "a-0", "node": "n0", "gpu_model": "H100", "model_revision": "r1", "engine_version": "v1"},
		{"namespace": Namespace, "pod": "a-1", "node": "n1", "gpu_model": "H100", "model_revision": "r2", "engine_version": "v1"},
		{"namespace": Namespace, "pod": "a-2", "node": "n0", "gpu_model": "H100", "model_revision": "r3", "engine_version": "v1"},
		{"namespace": Namespace, "pod": "b-0", "model_name": "m"},
		{"namespace": Namespace, "pod": "c-node-0", "gpu_model": "H100"},
		{"namespace": Namespace, "pod": "dcgm-exporter-n0", "node": "n0"},
		{"namespace": Namespace, "pod": "dcgm-exporter-n1", "node": "n1"},
	}
	require.Len(t, sim.Targets(), len(want))
	for i, target := range sim.Targets() {
		assert.Equal(t, want[i], target.Labels())
	}
}
