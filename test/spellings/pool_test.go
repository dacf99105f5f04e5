// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package spellings

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// poolModel is the one model that all engines of the pool serve.
const poolModel = "test/pool-8b"

var poolEngines = []fleetsim.EngineKind{fleetsim.VLLM, fleetsim.SGLang, fleetsim.TensorRTLLM}

// pool is replicas of three engines behind one name: three of each, one of them slow. SGLang's and TensorRT-LLM's
// latencies are twice those of vLLM's, so that whoever compared them would find something.
func pool() fleetsim.Scenario {
	s := fleetsim.Scenario{Seed: 11}
	for i, engine := range poolEngines {
		base := 14 * time.Millisecond
		if i > 0 {
			base *= 2
		}
		name := strings.ReplaceAll(string(engine), "_", "-")
		s.Fleets = append(s.Fleets, fleetsim.Fleet{
			Name: name, Engine: engine, ModelName: poolModel, Replicas: 3,
			Latency: fleetsim.Latency{Base: base}, Prompt: fleetsim.Tokens{Mean: 256}, Output: fleetsim.Tokens{Mean: 64},
			PrefixHitRatio: 0.4, Arrivals: fleetsim.Arrivals{Rate: 12},
		})
		s.Faults = append(s.Faults, fleetsim.Fault{Kind: fleetsim.Slow, Fleet: name, Replicas: []int{1}, Factor: 1.8})
	}
	return s
}

// labelled is a target of the pool. trtllm-serve does not say what it serves: its pod's label does, which the scrape
// configuration makes a label of the target.
func labelled(target *fleetsim.Target) source {
	s := onPod(target)
	if strings.HasPrefix(target.Name(), "tensorrt") {
		s.labels["model_name"] = poolModel
	}
	return s
}

// TestPool: in a pool of several engines each speaks its own dialect, and each engine's replicas are a fleet of their own,
// which is judged as if the others were not there.
func TestPool(t *testing.T) {
	all := simulate(t, pool(), labelled)
	together := outlier(t, everything(), all)
	apart := &findings{points: make(map[point]float64)}
	for _, engine := range poolEngines {
		prefix := strings.ReplaceAll(string(engine), "_", "-")
		alone := slices.DeleteFunc(slices.Clone(all), func(d delivery) bool {
			instance, _ := d.metrics.ResourceMetrics().At(0).Resource().Attributes().Get("service.instance.id")
			return !strings.HasPrefix(instance.Str(), prefix)
		})
		require.Len(t, alone, len(all)/len(poolEngines))
		found := outlier(t, everything(), alone)
		slowest := found.where(of("llmfleet.replica.latency_ratio", "engine_name="+string(engine), "signal=e2e", "quantile=0.5", "replica="+prefix+"-1"))
		require.Len(t, slowest, int((length-window)/interval))
		for p, ratio := range slowest {
			require.Greater(t, ratio, 1.4, p)
		}
		maps.Copy(apart.points, found.points)
	}
	assert.Empty(t, apart.differences(together))
	assert.NotContains(t, together.withheld(), "mixed_engines")
}

// TestMixedFleet: replicas of several engines in one fleet, because the user says so, share their load. Their latencies
// stand each by itself: none is compared, or added up.
func TestMixedFleet(t *testing.T) {
	all := simulate(t, pool(), labelled)
	byEngine := outlier(t, everything(), all)
	mixed := outlier(t, with(everything(), "group_by", []any{"model_name"}), all)

	compared := []string{
		"llmfleet.replica.latency_ratio", "llmfleet.replica.latency_low_ratio", "llmfleet.replica.latency_high_ratio",
		"llmfleet.fleet.latency", "llmfleet.fleet.latency_spread_ratio",
	}
	for _, metric := range compared {
		assert.NotEmpty(t, byEngine.where(of(metric)), metric)
		assert.Empty(t, mixed.where(of(metric)), metric)
	}
	for _, metric := range []string{
		"llmfleet.replica.latency", "llmfleet.replica.observations", "llmfleet.replica.requests", "llmfleet.replica.kv_usage_ratio",
		replicaHitRatio,
	} {
		assert.NotEmpty(t, mixed.where(of(metric)), metric)
		assert.Equal(t, own(byEngine, metric), own(mixed, metric))
	}
	assertPooledLoad(t, byEngine, mixed)

	// Every own latency has a ratio with two bounds that is withheld, and every evaluation with observations a latency and a
	// spread of the fleet for each of five signals and two quantiles.
	given, evaluations := len(mixed.where(of("llmfleet.replica.latency"))), int(length/interval)
	assert.EqualValues(t, 3*given+evaluations*2*5*2, mixed.withheld()["mixed_engines"])
}

// own are the figures of a metric by replica and time, whatever its fleet.
func own(f *findings, metric string) map[string]float64 {
	all := make(map[string]float64)
	for p, value := range f.where(of(metric)) {
		labels := slices.DeleteFunc(strings.Split(p.labels, ","), func(l string) bool {
			return strings.HasPrefix(l, "engine_name=") || strings.HasPrefix(l, "role=") || strings.HasPrefix(l, "namespace=")
		})
		all[p.at.String()+" "+strings.Join(labels, ",")] = value
	}
	return all
}

// assertPooledLoad: the fleet's requests are the sum over its engines, its use of the KV cache is the mean over replicas,
// of which each engine has three, and each replica's share is of that.
func assertPooledLoad(t *testing.T, byEngine, mixed *findings) {
	t.Helper()
	for _, state := range []string{"state=waiting", "state=running"} {
		requests := mixed.where(of("llmfleet.fleet.requests", state))
		require.Len(t, requests, int(length/interval))
		for p, got := range requests {
			sum := 0.0
			for other, value := range byEngine.where(of("llmfleet.fleet.requests", state)) {
				if other.at == p.at {
					sum += value
				}
			}
			assert.InDelta(t, sum, got, tolerance*sum, p)
		}
	}
	usage := mixed.where(of("llmfleet.fleet.kv_usage_ratio"))
	require.Len(t, usage, int(length/interval))
	for p, got := range usage {
		mean := 0.0
		for other, value := range byEngine.where(of("llmfleet.fleet.kv_usage_ratio")) {
			if other.at == p.at {
				mean += value / float64(len(poolEngines))
			}
		}
		assert.InDelta(t, mean, got, tolerance*mean, p)
	}
	ratios := mixed.where(of("llmfleet.replica.load_ratio", "signal=running"))
	require.Len(t, ratios, 9*int(length/interval))
	sums := make(map[time.Duration]float64)
	for p, ratio := range ratios {
		sums[p.at] += ratio
	}
	for at, sum := range sums {
		assert.InDelta(t, 9, sum, 1e-6, "%s: ratios to the mean of nine replicas", at)
	}
}
