// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

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
			match, ok := Builtin().Match(name)
			require.True(t, ok)
			assert.Equal(t, "vllm", match.Entry.Dialect)
			assert.Equal(t, fleet.PromptTokens, match.Entry.Signal)
			assert.Equal(t, Counter, match.Entry.Kind)
		})
	}
}

func TestMatchRefusesLookAlikes(t *testing.T) {
	for _, name := range []string{
		"",
		"vllm:",
		"prompt_tokens_total",              // no engine
		"vllm:prompt_tokens_created",       // a time
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
		"vllm:request_prompt_tokens", // a histogram of tokens per request
		"vllm:gpu_prefix_cache_hit_rate",
		"vllm:cpu_cache_usage_perc",
		"vllm:external_prefix_cache_hits_total", // another cache
		"vllm::prompt_tokens_total",
		"VLLM:prompt_tokens_total",
		"my_vllm:prompt_tokens_total",
		"ray_sglang:prompt_tokens_total", // Ray serves no SGLang metrics
		"vllm:num_queue_reqs",            // SGLang's word
		"sglang:num_requests_waiting",    // vLLM's word
		"sglang:cache_hit_rate",
		"sglang:prompt_tokens_histogram",
		"sglang:num_running_reqs_offline_batch",
		"llmfleet.replica.latency",
	} {
		t.Run(name, func(t *testing.T) {
			match, ok := Builtin().Match(name)
			assert.False(t, ok, "matched %+v", match.Entry)
		})
	}
}

// What the labels of an engine mean, by the catalogue of its sources.
func TestBuiltinLabels(t *testing.T) {
	entry := func(name string) *Entry {
		match, ok := Builtin().Match(name)
		require.True(t, ok, name)
		return match.Entry
	}

	vllm := entry("vllm:num_requests_waiting")
	assert.Equal(t, []string{"ReplicaId", "WorkerId"}, vllm.Replica)
	assert.Equal(t, []string{"server"}, vllm.Reject)
	assert.Equal(t, "model_name", vllm.Unless)
	assert.Empty(t, vllm.Role)
	assert.Empty(t, vllm.First)
	assert.Empty(t, vllm.Keep)

	sglang := entry("sglang:num_queue_reqs")
	assert.Equal(t, "engine_type", sglang.Role)
	assert.Equal(t, []string{"tp_rank", "pp_rank", "moe_ep_rank"}, sglang.First)
	assert.Equal(t, []string{"worker_addr"}, sglang.Reject)
	assert.Equal(t, []LabelFilter{{Label: "priority", Values: []string{""}}}, sglang.Keep)
	assert.Empty(t, sglang.Unless)
	assert.Empty(t, sglang.Replica)

	// A priority's histogram is part of the whole, there is no total to read.
	assert.Empty(t, entry("sglang:time_to_first_token_seconds").Keep)
	decode := []LabelFilter{{Label: "mode", Values: []string{"decode"}}}
	assert.Equal(t, decode, entry("sglang:realtime_tokens_total").Keep)
}

// The canonical unit is the engines' own in every signal there is today.
func TestBuiltinUnits(t *testing.T) {
	for name, match := range Builtin().byName {
		assert.Equal(t, 1.0, match.Entry.Scale, name)
	}
}

func TestAddingAnEngineNeedsOnlyAFile(t *testing.T) {
	set, err := load(fstest.MapFS{
		"one.yaml":  {Data: []byte("{engine: one, prefix: one, signals: {ttft: {type: histogram, names: [ttft]}}}")},
		"two.yaml":  {Data: []byte("{engine: two, prefix: nv_two, signals: {ttft: {type: histogram, names: [first_us], scale: 1e-6}}}")},
		"readme.md": {Data: []byte("not a dialect")},
	})
	require.NoError(t, err)
	one, ok := set.Match("one_ttft")
	require.True(t, ok)
	assert.Equal(t, "one", one.Entry.Dialect)
	two, ok := set.Match("nv_two_first_us")
	require.True(t, ok)
	assert.Equal(t, "two", two.Entry.Dialect)
	assert.Equal(t, 1e-6, two.Entry.Scale)
}

func TestEnginesMayNotShareAName(t *testing.T) {
	_, err := load(fstest.MapFS{
		"a.yaml": {Data: []byte("{engine: a, prefix: x, signals: {ttft: {type: histogram, names: [y_z]}}}")},
		"b.yaml": {Data: []byte("{engine: b, prefix: x_y, signals: {itl: {type: histogram, names: [z]}}}")},
	})
	assert.EqualError(t, err, "b.yaml:1: signals.itl.names: x_y_z is already ttft of a")
}

func TestMatchDoesNotAllocate(t *testing.T) {
	set := Builtin()
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		set.Match("vllm:time_to_first_token_seconds")
		set.Match("python_gc_objects_collected_total")
	}))
}

func TestKindString(t *testing.T) {
	assert.Equal(t, "histogram", Histogram.String())
	assert.Equal(t, "gauge", Gauge.String())
	assert.Equal(t, "counter", Counter.String())
	assert.Equal(t, "unknown", Kind(200).String())
}
