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

// lead is how long a fleet runs before anybody looks: by then each replica has done everything once, and the engines that
// show a series with its first count show as many as those that begin with zeros.
const lead = time.Minute

// slow is the replica that takes longer than the others.
const slow = 2

// chat is one fleet in a version of vLLM. Its replicas stay below 10 s to the first token, 2.5 s between two and a minute
// in all: those are the top bounds of v0.6, beyond which the later versions tell more. Under Ray two replicas share a node.
func chat(version fleetsim.Version) fleetsim.Scenario {
	fleet := fleetsim.Fleet{
		Name: "chat", Engine: fleetsim.VLLM, Version: version, ModelName: "test/chat-8b", Replicas: 4,
		Limits: fleetsim.Limits{MaxNumSeqs: 9}, Latency: fleetsim.Latency{Base: 14 * time.Millisecond},
		Prompt: fleetsim.Tokens{Mean: 256}, Output: fleetsim.Tokens{Mean: 64}, PrefixHitRatio: 0.4,
		Arrivals: fleetsim.Arrivals{Rate: 16},
	}
	if version == fleetsim.VLLMRay {
		fleet.ReplicasPerNode = 2
	}
	return fleetsim.Scenario{
		Seed:   7,
		Fleets: []fleetsim.Fleet{fleet},
		Faults: []fleetsim.Fault{{Kind: fleetsim.Slow, Replicas: []int{slow}, Factor: 1.8}},
	}
}

// simulate plays a scenario and scrapes its targets all at once, as configured by their names.
func simulate(t *testing.T, scenario fleetsim.Scenario, configure func(*fleetsim.Target) source) []delivery {
	t.Helper()
	simulation, err := fleetsim.New(scenario, epoch.Add(-lead))
	require.NoError(t, err)
	var all []delivery
	for at := offset; at < length; at += pace {
		simulation.AdvanceTo(lead + at)
		for _, target := range simulation.Targets() {
			page, status := target.AppendPage(nil)
			require.Equal(t, 200, status, target.Name())
			all = append(all, delivery{at, configure(target).receive(t, page, target.ContentType(), epoch.Add(at))})
		}
	}
	return all
}

// onPod is a target that is scraped on its pod.
func onPod(target *fleetsim.Target) source {
	return source{instance: target.Name() + ":8000", labels: map[string]string{"namespace": "default", "pod": target.Name()}}
}

// trimmedOnPod is the same behind a receiver that trims suffixes.
func trimmedOnPod(target *fleetsim.Target) source {
	s := onPod(target)
	s.trimmed = true
	return s
}

// everything asks for all latencies and all metrics, those that are off by default included, but not for what is listed.
func everything(but ...string) map[string]any {
	signals := []any{}
	for _, signal := range []string{"ttft", "itl", "tpot", "e2e", "queue_time"} {
		if !slices.Contains(but, signal) {
			signals = append(signals, signal)
		}
	}
	metrics := map[string]any{}
	for _, metric := range []string{
		replicaHitRatio, fleetHitRatio, "llmfleet.replica.load_ratio", "llmfleet.replica.latency_low_ratio", "llmfleet.replica.latency_high_ratio",
	} {
		metrics[metric] = map[string]any{"enabled": !slices.Contains(but, metric)}
	}
	return map[string]any{"signals": signals, "metrics": metrics}
}

const (
	replicaHitRatio = "llmfleet.replica.prefix_hit_ratio"
	fleetHitRatio   = "llmfleet.fleet.prefix_hit_ratio"
)

// with returns settings with another one.
func with(settings map[string]any, key string, value any) map[string]any {
	settings = maps.Clone(settings)
	settings[key] = value
	return settings
}

// TestVersions: of one fleet the same is derived, whatever the version of vLLM that serves it calls things. What a version
// does not tell is missing, and only that; the rest is given, and withheld, as if nobody had asked for what is missing.
func TestVersions(t *testing.T) {
	current := simulate(t, chat(fleetsim.Current), onPod)
	for _, version := range []struct {
		name      string
		version   fleetsim.Version
		configure func(*fleetsim.Target) source
		missing   []string
	}{
		{"v0.6", fleetsim.VLLMv06, onPod, []string{"tpot", replicaHitRatio, fleetHitRatio}}, // of the cache, V0 has a gauge since its start
		{"v0.9.2", fleetsim.VLLMv09, onPod, []string{"tpot"}},
		{"v0.11", fleetsim.VLLMv011, onPod, nil},
		{"ray", fleetsim.VLLMRay, onPod, nil},
		{"rust", fleetsim.VLLMRust, onPod, nil},
		{"rust, suffixes trimmed", fleetsim.VLLMRust, trimmedOnPod, nil},
	} {
		t.Run(version.name, func(t *testing.T) {
			served := simulate(t, chat(version.version), version.configure)
			want := outlier(t, everything(version.missing...), current)
			told := outlier(t, everything(version.missing...), served)
			assert.Empty(t, want.differences(told))
			assert.Equal(t, want.withheld(), told.withheld())
			requireWhole(t, want, version.missing)
			assertHarmless(t, told)

			// What it does not tell is nothing but withheld, when asked for.
			asked := outlier(t, everything(), served)
			assert.Empty(t, told.differences(asked))
			if len(version.missing) > 0 {
				assert.Greater(t, asked.withheld()["not_reported"], told.withheld()["not_reported"])
			}
		})
	}
}

// requireWhole holds findings against what the scenario must bring about: a comparison of nothing with nothing is none.
func requireWhole(t *testing.T, f *findings, missing []string) {
	t.Helper()
	evaluations := int((length - window) / interval)
	for _, signal := range []string{"ttft", "itl", "tpot", "e2e"} {
		if slices.Contains(missing, signal) {
			continue
		}
		ratios := f.where(of("llmfleet.replica.latency_ratio", "signal="+signal, "quantile=0.95", "replica=chat-2"))
		require.Len(t, ratios, evaluations, signal)
		for p, ratio := range ratios {
			require.Greater(t, ratio, 1.3, p)
		}
	}
	require.Len(t, f.where(of("llmfleet.replica.kv_usage_ratio", "replica=chat-2")), int(length/interval))
	if !slices.Contains(missing, fleetHitRatio) {
		ratios := f.where(of(fleetHitRatio))
		require.GreaterOrEqual(t, len(ratios), evaluations)
		for p, ratio := range ratios {
			require.InDelta(t, 0.4, ratio, 0.05, p) // whole blocks are found: a little less than the scenario says
		}
	}
	require.Contains(t, f.withheld(), "lowest_bucket", "most requests do not wait 0.3 s, the lowest bound of queue_time")
	require.NotContains(t, f.withheld(), "saturated")
}

// assertHarmless: of a healthy fleet nothing is ignored but first samples, times of creation, second names (of a version
// that has two, or of Ray's agent, which says every counter as a gauge once more), and, where failed requests are counted,
// those that went well.
func assertHarmless(t *testing.T, f *findings) {
	t.Helper()
	harmless := []string{"first", "unspoken", "created", "label"}
	for reason, n := range f.ignored() {
		assert.Contains(t, harmless, reason, "%d points", n)
	}
	assert.Zero(t, f.told["resets"])
	assert.Zero(t, f.told["skipped_evaluations"])
}

// TestRollout: of a fleet in the middle of upgrades, each replica in another version, the same is derived as before and
// after: their histograms differ in bounds that nothing reached.
func TestRollout(t *testing.T) {
	missing := []string{"tpot", replicaHitRatio, fleetHitRatio}
	want := outlier(t, everything(missing...), simulate(t, chat(fleetsim.Current), onPod))
	upgrading := chat(fleetsim.Current)
	upgrading.Fleets[0].Versions = []fleetsim.Version{fleetsim.VLLMv06, fleetsim.VLLMv09, fleetsim.VLLMv011, fleetsim.VLLMRust}
	told := outlier(t, everything(missing...), simulate(t, upgrading, onPod))
	assert.Empty(t, want.differences(told))
	assert.Equal(t, want.withheld(), told.withheld())
	assertHarmless(t, told)
}

// TestVersionsControl: were one name of one version not known, or known as something else, the comparison would show it.
func TestVersionsControl(t *testing.T) {
	missing := []string{"tpot", replicaHitRatio, fleetHitRatio}
	want := outlier(t, everything(missing...), simulate(t, chat(fleetsim.Current), onPod))
	served := simulate(t, chat(fleetsim.VLLMv06), onPod)
	said := func(signal string, form map[string]any) *findings {
		dialect := map[string]any{"engine": "vllm", "prefix": "vllm", "signals": map[string]any{signal: form}}
		return outlier(t, with(everything(missing...), "dialects", []any{dialect}), served)
	}
	t.Run("without gpu_cache_usage_perc", func(t *testing.T) {
		told := said("kv_usage", map[string]any{"type": "gauge", "names": []any{"kv_cache_usage_perc"}})
		found := want.differences(told)
		require.NotEmpty(t, found)
		for _, difference := range found {
			assert.Regexp(t, `(kv_usage_ratio|load_ratio)\{.* is missing`, difference)
		}
		assert.NotEqual(t, want.withheld(), told.withheld())
	})
	t.Run("with the decode time for the time between tokens", func(t *testing.T) {
		found := want.differences(said("itl", map[string]any{"type": "histogram", "names": []any{"request_decode_time_seconds"}}))
		require.NotEmpty(t, found)
		for _, difference := range found {
			assert.True(t, strings.Contains(difference, "signal=itl") || strings.Contains(difference, "llmfleet.fleet."), difference)
		}
	})
}
