// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

const (
	manyModels       = 40
	replicasOfEach   = 3
	slowOfMany       = "model-00-2" // the one replica that is slow
	everythingTold   = `{__name__=~"llmfleet_.+|up|vllm:num_requests_running|DCGM_FI_DEV_GPU_UTIL"}`
	saidOfAllInOne   = "llmfleet_component_signals" // of each gateway by itself: it is no series of a fleet
	settledAfter     = 22 * time.Second             // a window, departed_after, and some evaluations
	handedOver       = departedAfter + 8*time.Second
	betweenEachCheck = time.Second
)

// manyFleets are fleets of three replicas, which stand on two nodes; one replica of all is slow.
func manyFleets() fleetsim.Scenario {
	s := fleetsim.Scenario{Seed: 3}
	for i := range manyModels {
		name := fmt.Sprintf("model-%02d", i)
		s.Fleets = append(s.Fleets, fleetsim.Fleet{
			Name: name, Engine: fleetsim.VLLM, ModelName: "test/" + name, Replicas: replicasOfEach,
			Nodes: []string{"gpu-0", "gpu-1"}, GPUModels: []string{"NVIDIA H100 80GB HBM3"},
			Prompt: fleetsim.Tokens{Mean: 256}, Output: fleetsim.Tokens{Mean: 8},
			Arrivals: fleetsim.Arrivals{Process: fleetsim.GammaSpaced, Burstiness: 50, Rate: 15},
		})
	}
	s.Faults = []fleetsim.Fault{{Kind: fleetsim.Slow, Fleet: "model-00", Replicas: []int{2}, Factor: 3}}
	return s
}

// TestScaleOut: two tiers as examples/scaleout has them judge each fleet in one gateway, while one of three dies and
// another is added. What moves is silent until it is known.
func TestScaleOut(t *testing.T) {
	s := &tiers{t: t, prometheus: startPrometheus(t, ""), gateways: map[string]*gatewayTier{}}
	for _, name := range []string{"a", "b", "c"} {
		s.startGateway(name)
	}
	for range 2 {
		s.routers = append(s.routers, &routerTier{grpc: freeAddress(t), http: freeAddress(t)})
	}
	s.route("a", "b", "c")
	nodes := [2][]target{}
	for _, page := range startFleet(t, manyFleets()) {
		node := 0
		if strings.HasSuffix(page.Pod, "-1") { // of each fleet the second replica, and the exporter of the second node
			node = 1
		}
		nodes[node] = append(nodes[node], page)
	}
	for node, targets := range nodes {
		startAgent(t, targets, 2*time.Second, s.routers[node].grpc)
	}

	began := time.Now()
	first := s.settle(began, "a", "b", "c")
	s.assertOneWriter(began)
	s.assertFollows(began.Add(settledAfter/2), first) // by then the routers have seen every engine once
	assertShares(t, first, 3)
	require.Eventually(t, func() bool { return slices.Contains(s.told(), slowOfMany) }, time.Minute, betweenEachCheck, "the alarm works")

	died := time.Now()
	s.gateways["c"].process.Kill(t)
	s.route("a", "b")
	second := s.settle(time.Now(), "a", "b")
	s.assertOneWriter(died)
	assertMoved(t, first, second, func(from, _ string) bool { return from == "c" })

	s.startGateway("d")
	added := time.Now()
	s.route("a", "b", "d")
	third := s.settle(time.Now(), "a", "b", "d")
	s.assertOneWriter(added.Add(handedOver))
	moved := assertMoved(t, second, third, func(_, to string) bool { return to == "d" })
	assertShares(t, third, 3)
	s.assertHandedOver(added, moved, second)
	s.assertCovered(added, moved)
	for _, replica := range s.told() {
		assert.Equal(t, slowOfMany, replica, "nothing is told of a healthy replica")
	}
}

// settle waits until every fleet is judged as a whole by one of the gateways, some time after they were chosen, and returns
// by which.
func (s *tiers) settle(chosen time.Time, gateways ...string) map[string]string {
	s.t.Helper()
	var found map[string]string
	require.Eventually(s.t, func() bool {
		owners, at := s.prometheus.owners(replicasOfEach, gateways)
		found = map[string]string{}
		for name, of := range owners {
			if len(of) == 1 {
				found[name] = of[0]
			}
		}
		return at.Sub(chosen) >= settledAfter && len(found) == manyModels
	}, 2*time.Minute, betweenEachCheck, "not every fleet is judged in one place")
	return found
}

// told are the replicas that the gateways told an event of.
func (s *tiers) told() (replicas []string) {
	s.t.Helper()
	for _, e := range s.events() {
		pod, _ := e.attributes["pod"].(string)
		replicas = append(replicas, pod)
	}
	return replicas
}

// assertOneWriter: no series has two values at one time from then on.
func (s *tiers) assertOneWriter(from time.Time) {
	s.t.Helper()
	w := s.prometheus.writers(everythingTold, from, time.Now())
	require.Greater(s.t, len(w.labels), 10*manyModels*replicasOfEach)
	doubles := w.doubles()
	delete(doubles, saidOfAllInOne)
	assert.Empty(s.t, doubles, "two gateways tell one thing")
}

// assertFollows: what an engine tells, whether it answers, and what the exporter of its node tells of its GPU, come to who
// judges its model.
func (s *tiers) assertFollows(from time.Time, owners map[string]string) {
	s.t.Helper()
	w := s.prometheus.writers(everythingTold, from, time.Now())
	told := map[model.LabelValue]int{}
	for key, values := range w.values {
		labels := w.labels[key.series]
		pod := cmp.Or(labels["exported_pod"], labels["pod"]) // the exporter's own pod tells of another
		fleet, _, found := strings.Cut(strings.TrimPrefix(string(pod), "model-"), "-")
		if owner := owners["test/model-"+fleet]; found && owner != "" {
			told[labels[model.MetricNameLabel]]++
			assert.Equal(s.t, []string{owner}, slices.Collect(maps.Keys(values)), "%v", labels)
		}
	}
	for _, metric := range []model.LabelValue{"up", "vllm:num_requests_running", "DCGM_FI_DEV_GPU_UTIL", "llmfleet_replica_requests"} {
		assert.GreaterOrEqual(s.t, told[metric], manyModels*replicasOfEach, metric)
	}
}

// assertShares: each gateway has models, and none has most of them.
func assertShares(t *testing.T, owners map[string]string, gateways int) {
	t.Helper()
	share := map[string]int{}
	for _, gateway := range owners {
		share[gateway]++
	}
	t.Logf("models by gateway: %v", share)
	assert.Len(t, share, gateways)
	assert.Less(t, slices.Max(slices.Collect(maps.Values(share))), 3*manyModels/4)
}

// assertMoved: exactly those models have another owner for which there is a reason. It returns them.
func assertMoved(t *testing.T, before, after map[string]string, may func(from, to string) bool) (moved []string) {
	t.Helper()
	for name, from := range before {
		if to := after[name]; to != from {
			moved = append(moved, name)
			assert.True(t, may(from, to), "%s went from %s to %s", name, from, to)
		}
	}
	t.Logf("%d of %d models moved", len(moved), len(before))
	assert.NotEmpty(t, moved)
	assert.Less(t, len(moved), 3*len(before)/4)
	return moved
}

// assertHandedOver: the former owner of a model that moved tells nothing of it any more once its replicas have departed.
// Until then both may tell who is there, and never both how they do.
func (s *tiers) assertHandedOver(from time.Time, moved []string, before map[string]string) {
	s.t.Helper()
	w := s.prometheus.writers(everythingTold, from, time.Now())
	for _, name := range moved {
		assert.Less(s.t, w.last(name)[before[name]].Sub(from), handedOver, "%s by its former owner", name)
	}
	doubles := w.doubles()
	for metric, span := range doubles {
		s.t.Logf("told by two from %s to %s after the change: %s", span[0].Sub(from), span[1].Sub(from), metric)
	}
	for _, verdict := range []string{
		"llmfleet_replica_outlier", "llmfleet_replica_outlier_cause", "llmfleet_replica_latency_seconds",
		"llmfleet_replica_latency_ratio", "llmfleet_fleet_latency_spread_ratio",
	} {
		assert.NotContains(s.t, doubles, verdict)
	}
}

// assertCovered: while a fleet that moved warms, its new owner says that it does not judge all of it.
func (s *tiers) assertCovered(from time.Time, moved []string) {
	s.t.Helper()
	w := s.prometheus.writers("llmfleet_fleet_coverage_ratio", from, time.Now())
	least := map[string]float64{}
	for key, values := range w.values {
		name := string(w.labels[key.series]["model_name"])
		if ratio, told := values["d"]; told {
			if known, ok := least[name]; !ok || ratio < known {
				least[name] = ratio
			}
		}
	}
	for _, name := range moved {
		assert.Less(s.t, least[name], 1.0, name)
	}
}
