// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// builtinFiles are the dialect files that come with the product, by name.
func builtinFiles(tb testing.TB) map[string][]byte {
	tb.Helper()
	names, err := fs.Glob(files, "*.yaml")
	require.NoError(tb, err)
	require.NotEmpty(tb, names)
	all := make(map[string][]byte)
	for _, name := range names {
		all[name], err = fs.ReadFile(files, name)
		require.NoError(tb, err)
	}
	return all
}

func TestMatchToleratesHowANameTravels(t *testing.T) {
	for _, name := range []string{
		"vllm:prompt_tokens_total",        // prometheus receiver
		"vllm:prompt_tokens",              // OpenMetrics family
		"vllm_prompt_tokens_total",        // translators that know no colon
		"vllm_prompt_tokens",              //
		"ray_vllm_prompt_tokens_total",    // Ray's agent
		"ray_vllm_prompt_tokens",          //
		"ray_vllm:prompt_tokens_total",    // … before it replaced colons
		"kserve_vllm:prompt_tokens_total", // KServe
		"kserve_vllm_prompt_tokens_total", // … translated
	} {
		t.Run(name, func(t *testing.T) {
			match := meaning(t, Builtin(), name)
			assert.Equal(t, "vllm", match.Entry.Dialect.Name)
			assert.Equal(t, fleet.PromptTokens, match.Entry.Signal)
			assert.Equal(t, fleet.Counter, match.Entry.Kind)
			assert.Equal(t, "prompt_tokens", match.Name)
		})
	}
}

func TestMatchRefusesLookAlikes(t *testing.T) {
	for _, name := range []string{
		"",
		"vllm:",
		"prompt_tokens_total_created",      // a time
		"vllm:prompt_tokens_created",       //
		"vllm:prompt_tokens_total_created", //
		"vllm:time_to_first_token_seconds_created",
		"vllm:time_to_first_token_seconds_total", // only counters have it
		"vllm:num_requests_waiting_total",
		"vllm:time_to_first_token_seconds_bucket", // part of a histogram
		"vllm:time_to_first_token_seconds_count",
		"vllm:prompt_tokens_total_total",
		"vllm:iteration_tokens_total", // a histogram of tokens per step
		"vllm:iteration_tokens",
		"vllm:num_requests_waiting_by_reason", // parts of num_requests_waiting
		"vllm:prompt_tokens_by_source_total",  // parts of prompt_tokens
		"vllm:prompt_tokens_cached_total",
		"vllm:request_max_num_generation_tokens", // a histogram of tokens per request
		"vllm:gpu_prefix_cache_hit_rate",
		"vllm:cpu_cache_usage_perc",
		"vllm:lora_requests_info",               // a clock
		"vllm:external_prefix_cache_hits_total", // another cache
		"vllm::prompt_tokens_total",
		"VLLM:prompt_tokens_total",
		"my_vllm:prompt_tokens_total",
		"ray_sglang:prompt_tokens_total", // Ray serves no SGLang metrics
		"vllm:num_queue_reqs",            // SGLang's word
		"sglang:num_requests_waiting",    // vLLM's word
		"sglang:cache_hit_rate",
		"sglang:uncached_prompt_tokens_histogram",
		"sglang:num_running_reqs_offline_batch",
		"llmfleet.replica.latency",
	} {
		assert.Empty(t, Builtin().Match(name), name)
	}
}

// TestBuiltinFilesSayOneThingOfAName: a name is read, tells facts or is
// ignored, and for one reason; and no two files speak for one source.
func TestBuiltinFilesSayOneThingOfAName(t *testing.T) {
	seen := make(map[string]bool)
	for _, d := range Builtin().Dialects() {
		assert.False(t, seen[d.Name], "two files speak for %s", d.Name)
		seen[d.Name] = true
		said := make(map[string]string)
		for _, info := range d.Infos {
			said[info.Name] = "info"
		}
		for _, ignored := range d.Ignored {
			for _, name := range ignored.Names {
				assert.Empty(t, said[name], "%s: %s is ignored as %q, too", d.Name, name, ignored.Why)
				said[name] = ignored.Why
			}
		}
		for _, f := range d.Forms {
			for _, name := range f.Names {
				assert.Empty(t, said[name], "%s: %s is read as %s, too", d.Name, name, f.Entry.Signal)
			}
		}
	}
	for name := range Builtin().byName {
		why, ignored := Builtin().Ignored(name)
		assert.False(t, ignored, "%s is read, and ignored by another file: %s", name, why)
		assert.Nil(t, Builtin().Info(name), "%s is read, and tells another file's facts", name)
	}
}

// TestNoDialectReadsATime: x_created beside x says since when x is counted, and
// is no signal. Two sources have a measure of that name.
func TestNoDialectReadsATime(t *testing.T) {
	measures := []string{"kube_pod_created", "karpenter_nodes_created"}
	for name := range Builtin().byName {
		if base := strings.TrimSuffix(name, "_total"); strings.HasSuffix(base, "_created") {
			assert.Contains(t, measures, base)
		}
	}
	for _, name := range measures {
		assert.NotEmpty(t, Builtin().Match(name), name)
		assert.Empty(t, Builtin().Match(strings.TrimSuffix(name, "_created")), name)
	}
}

func TestAddingAnEngineNeedsOnlyAFile(t *testing.T) {
	set := compiled(t,
		"{engine: one, prefix: one, signals: {ttft: {type: histogram, names: [ttft]}}}",
		"{engine: two, prefix: nv_two, signals: {ttft: {type: histogram, names: [first_us], unit: us}}}")
	assert.Equal(t, "one", meaning(t, set, "one_ttft").Entry.Dialect.Name)
	two := meaning(t, set, "nv_two_first_us")
	assert.Equal(t, "two", two.Entry.Dialect.Name)
	assert.Equal(t, 1e-6, two.Entry.Scale)
}

// TestDialectsAreInTheOrderOfTheirNames, whatever their files are called.
func TestDialectsAreInTheOrderOfTheirNames(t *testing.T) {
	set := compiled(t,
		"{engine: b, signals: {running: {type: gauge, names: [b_r]}}}",
		"{engine: a, signals: {running: {type: gauge, names: [a_r]}}}")
	var names []string
	for _, d := range set.Dialects() {
		names = append(names, d.Name)
	}
	assert.Equal(t, []string{"a", "b"}, names)
}

func TestInRange(t *testing.T) {
	set := parse(t, complete)
	heat := meaning(t, set, "acme_serve:heat").Entry // range: [10, 90.5]
	for value, want := range map[float64]bool{9.99: false, 10: true, 90.5: true, 90.6: false} {
		assert.Equal(t, want, heat.InRange(value), value)
	}
	wide := meaning(t, compiled(t, "{engine: a, signals: {kv_usage: {type: gauge, names: [x], range: [-5, 5]}}}"), "x").Entry
	for value, want := range map[float64]bool{-1: false, 0: true, 1: true, 1.1: false} {
		assert.Equal(t, want, wide.InRange(value), "a file does not widen what the signal can be: %v", value)
	}
}

func TestComponentsAndPartsHaveNames(t *testing.T) {
	var components []string
	for c := range ComponentCount {
		components = append(components, c.String())
	}
	assert.Equal(t, []string{"engine", "router", "gateway", "gpu", "autoscaler", "kubernetes"}, components)
	assert.Equal(t, "unknown", ComponentCount.String())
	assert.Equal(t, []string{"whole", "sum", "count"}, []string{Whole.String(), Sum.String(), Count.String()})
}

func TestMatchDoesNotAllocate(t *testing.T) {
	set := Builtin()
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		set.Match("vllm:time_to_first_token_seconds")
		set.Match("python_gc_objects_collected_total")
	}))
}

// TestBuiltinLabels: what the labels of an engine mean, by the catalogue of its
// sources.
func TestBuiltinLabels(t *testing.T) {
	vllm := meaning(t, Builtin(), "vllm:time_to_first_token_seconds").Entry
	assert.Equal(t, []string{"engine"}, vllm.Dialect.Labels.Ranks)
	assert.Equal(t, []string{"ReplicaId", "WorkerId"}, vllm.Dialect.Labels.Replica)
	assert.Equal(t, []string{"server"}, vllm.Dialect.Labels.Reject)
	assert.Equal(t, "model_name", vllm.Dialect.Labels.Unless)
	assert.Empty(t, vllm.Dialect.Labels.Role)
	assert.Empty(t, vllm.Dialect.Labels.First)

	sglang := meaning(t, Builtin(), "sglang:token_usage").Entry
	assert.Equal(t, []string{"dp_rank"}, sglang.Dialect.Labels.Ranks)
	assert.Equal(t, []string{"engine_type"}, sglang.Dialect.Labels.Role)
	assert.Equal(t, []string{"worker_addr"}, sglang.Dialect.Labels.Reject)
	assert.Equal(t, []LabelFilter{{[]string{"priority"}, []string{""}}}, sglang.Keep)
	for _, label := range []string{"tp_rank", "pp_rank", "moe_ep_rank"} {
		assert.True(t, slices.Contains(sglang.Dialect.Labels.First, label), label)
	}
	// A priority's histogram is part of the whole, there is no total to read.
	assert.Empty(t, meaning(t, Builtin(), "sglang:time_to_first_token_seconds").Entry.Keep)
}
