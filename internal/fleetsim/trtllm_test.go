// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const oneTensorRTLLM = `
seed: 1
fleets:
  - {name: llama, engine: tensorrt_llm, model_name: llama-3.3-70b, replicas: 2, prefix_hit_ratio: 0.5, host_hit_share: 0.3, arrivals: {rate: 10}}
`

// The tables are written from TensorRT-LLM's collector, not from the code under
// test.
var documentedTRTLLM = map[string][]float64{
	"trtllm_e2e_request_latency_seconds":      wantREQ,
	"trtllm_time_to_first_token_seconds":      wantTTFT,
	"trtllm_time_per_output_token_seconds":    wantITL,
	"trtllm_request_queue_time_seconds":       wantREQ,
	"trtllm_request_prefill_time_seconds":     {.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 40, 80, 160, 640, 2560},
	"trtllm_request_decode_time_seconds":      wantREQ,
	"trtllm_request_inference_time_seconds":   wantREQ,
	"trtllm_prompt_cached_tokens_per_request": {0, 64, 128, 256, 512, 1024, 2048, 4096, 8192},
}

func TestTensorRTLLMPage(t *testing.T) {
	families := parsePage(t, pageAt(t, simulate(t, oneTensorRTLLM), 0, 30*time.Second))
	names := map[string]string{"model_name": "undefined", "engine_type": "undefined"}
	for name, bounds := range documentedTRTLLM {
		assert.Equal(t, bounds, boundsOf(theHistogram(t, families, name)), name)
		assert.Equal(t, names, labelsOf(families[name].GetMetric()[0]), name)
	}
	for _, name := range []string{
		"request_success", "prompt_tokens", "generation_tokens", "prompt_cached_tokens", "prompt_cache_hit_tokens",
		"num_requests_completed", "kv_cache_reused_blocks", "kv_cache_missed_blocks",
	} {
		require.Contains(t, families, "trtllm_"+name+"_total")
		assert.Equal(t, "COUNTER", families["trtllm_"+name+"_total"].GetType().String(), name)
	}
	for _, name := range []string{
		"num_requests_running", "num_requests_waiting", "max_num_active_requests", "iteration_latency_seconds",
		"kv_cache_hit_rate", "kv_cache_utilization", "kv_cache_max_blocks", "kv_cache_free_blocks", "kv_cache_used_blocks",
		"kv_cache_tokens_per_block", "num_context_requests", "num_generation_requests", "num_paused_requests",
		"num_scheduled_requests", "gpu_memory_usage_bytes", "model_config_info", "parallel_config_info", "kv_cache_config_info",
	} {
		require.Contains(t, families, "trtllm_"+name)
		assert.Equal(t, "GAUGE", families["trtllm_"+name].GetType().String(), name)
	}
	for name := range families {
		assert.Regexp(t, "^trtllm_", name)
		assert.NotRegexp(t, "_created$|inter_token", name, "it does not measure inter-token latency")
	}
}

func TestTensorRTLLMCountsAtTheEndOfARequest(t *testing.T) {
	families := parsePage(t, pageAt(t, simulate(t, oneTensorRTLLM), 0, 30*time.Second))
	finished := value(t, families, "trtllm_request_success_total")
	assert.Positive(t, value(t, families, "trtllm_num_requests_running"), "some are on their way")
	for _, name := range []string{"e2e_request_latency_seconds", "time_to_first_token_seconds", "request_queue_time_seconds"} {
		assert.Equal(t, finished, float64(theHistogram(t, families, "trtllm_"+name).GetSampleCount()), name)
	}
	cached := theHistogram(t, families, "trtllm_prompt_cached_tokens_per_request")
	assert.Equal(t, value(t, families, "trtllm_prompt_cached_tokens_total"), cached.GetSampleSum())
	found := value(t, families, "trtllm_prompt_cache_hit_tokens_total")
	host := value(t, families, "trtllm_prompt_cache_hit_tokens_total", "cache_level", "1", "cache_tier", "host")
	assert.InDelta(t, 0.3, host/found, 0.05)
	assert.Equal(t, found, 16*value(t, families, "trtllm_kv_cache_reused_blocks_total"))
	assert.InDelta(t, value(t, families, "trtllm_kv_cache_utilization"),
		value(t, families, "trtllm_kv_cache_used_blocks")/value(t, families, "trtllm_kv_cache_max_blocks"), 1e-12)
}

func TestTensorRTLLMLeavesZerosOut(t *testing.T) {
	const one = "output_tokens: {mean: 1, cv: 0, max: 1}, arrivals"
	families := parsePage(t, pageAt(t, simulate(t, strings.Replace(oneTensorRTLLM, "arrivals", one, 1)), 0, 30*time.Second))
	assert.Contains(t, families, "trtllm_time_to_first_token_seconds")
	assert.NotContains(t, families, "trtllm_time_per_output_token_seconds", "one token has no time between tokens")
	assert.NotContains(t, families, "trtllm_request_decode_time_seconds")
}

func TestDynamoNamesTheModel(t *testing.T) {
	sim := simulate(t, strings.Replace(oneTensorRTLLM, "tensorrt_llm", "tensorrt_llm, version: dynamo", 1))
	families := parsePage(t, pageAt(t, sim, 0, 30*time.Second))
	assert.Equal(t, map[string]string{"model_name": "llama-3.3-70b", "engine_type": "trtllm"},
		labelsOf(families["trtllm_time_to_first_token_seconds"].GetMetric()[0]))
}

func TestTensorRTLLMServesItsPageBesideJSON(t *testing.T) {
	sim := simulate(t, oneTensorRTLLM)
	server, err := Listen(sim, "127.0.0.1", 0)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, func() time.Duration { return 10 * time.Second }) }()
	url := server.URLs()[0]
	require.True(t, strings.HasSuffix(url, "/prometheus/metrics"), url)
	assert.Contains(t, parsePage(t, get(t, url).body), "trtllm_num_requests_running")

	stats := get(t, strings.Replace(url, "/prometheus/metrics", "/metrics", 1))
	assert.Equal(t, http.StatusOK, stats.status)
	assert.Equal(t, "application/json", stats.contentType)
	var iterations []struct {
		NumActiveRequests float64
		KvCacheStats      struct{ UsedNumBlocks, MaxNumBlocks float64 }
	}
	require.NoError(t, json.Unmarshal([]byte(stats.body), &iterations))
	require.Len(t, iterations, 1)
	assert.Equal(t, float64(sim.Engines()[0].Snapshot().Running), iterations[0].NumActiveRequests)
	assert.Equal(t, 25_000.0, iterations[0].KvCacheStats.MaxNumBlocks, "400000 tokens of 16 a block")
	cancel()
	require.NoError(t, <-served)
}
