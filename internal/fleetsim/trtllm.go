// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
)

// Bucket bounds of TensorRT-LLM's histograms where they are not vLLM's: seconds
// of a prefill, cached tokens of a request, prompt tokens of a step.
var (
	trtllmPrefillBounds = []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 40, 80, 160, 640, 2560}
	trtllmCachedBounds  = []float64{0, 64, 128, 256, 512, 1024, 2048, 4096, 8192}
	trtllmStepBounds    = []float64{64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768}
)

// trtllmDialects lists the pages of a TensorRT-LLM of August 2026 with
// return_perf_metrics and enable_iter_perf_stats: by itself (trtllm-serve, which
// does not say the model's name), and as a worker of Dynamo, which gives it one.
// Its processes share the page, so it has neither process families nor _created
// twins, a series appears when it is first used, and gauges carry a process id.
func trtllmDialects() []*dialect {
	page := func(version Version, names func(*engine) []string) *dialect {
		return &dialect{
			version: version, path: "/prometheus/metrics", statsPath: "/metrics", countLast: true, hideEmpty: true,
			labels: map[string]func(*engine) []string{
				engineLabels: names,
				gaugeLabels:  func(e *engine) []string { return append(names(e), "pid", "1") },
			},
			families: slices.Concat(trtllmGauges(), trtllmCounters(), trtllmHistograms()),
		}
	}
	alone := page(Current, func(*engine) []string { return []string{"model_name", "undefined", "engine_type", "undefined"} })
	alone.unnamed = true
	return []*dialect{
		alone,
		page(TensorRTLLMDynamo, func(e *engine) []string { return []string{"model_name", e.fleet.ModelName, "engine_type", "trtllm"} }),
	}
}

func trtllmGauges() []family {
	gauge := func(name, help string, m measure) family {
		return family{name: "trtllm_" + name, help: help, kind: gaugeKind, labels: gaugeLabels, series: []series{at(m)}}
	}
	info := func(name, help string, labels ...string) family {
		return family{name: "trtllm_" + name, help: help, kind: gaugeKind, labels: gaugeLabels, series: []series{{value: one, labels: labels}}}
	}
	return []family{
		gauge("num_requests_running", "Requests in the batch", running),
		gauge("num_requests_waiting", "Requests waiting for a place in the batch", waiting),
		gauge("max_num_active_requests", "Most requests of a batch", maxBatch),
		gauge("iteration_latency_seconds", "Time of the newest step", stepSeconds),
		gauge("gpu_memory_usage_bytes", "Memory of the GPU in use", gpuMemory),
		gauge("cpu_memory_usage_bytes", "Memory of the host in use", processMemory),
		gauge("pinned_memory_usage_bytes", "Pinned memory of the host in use", zero),
		gauge("max_batch_size_static", "Most requests of a batch, as built", maxBatch),
		gauge("max_batch_size_runtime", "Most requests of a batch, as it runs", maxBatch),
		gauge("max_num_tokens_runtime", "Most tokens of a step", maxBatchTokens),
		gauge("kv_cache_hit_rate", "Share of KV blocks found in the prefix cache since the start", pageHitShare),
		gauge("kv_cache_utilization", "Used share of the KV cache, 1 when full", pageUsage),
		gauge("kv_cache_max_blocks", "KV blocks", pages),
		gauge("kv_cache_free_blocks", "KV blocks that are free", pagesFree),
		gauge("kv_cache_used_blocks", "KV blocks in use", pagesUsed),
		gauge("kv_cache_tokens_per_block", "Tokens of one KV block", pageSize),
		gauge("num_context_requests", "Requests of the batch in prefill", prefilling),
		gauge("num_generation_requests", "Requests of the batch in decode", decoding),
		gauge("num_paused_requests", "Requests put back for lack of KV cache", zero),
		gauge("num_scheduled_requests", "Requests of the newest step", running),
		gauge("total_context_tokens", "Prompt tokens of the newest step", prefillTokens),
		gauge("avg_decoded_tokens_per_iter", "Tokens a request decodes in one step", one),
		gauge("prefill_batch_occupancy", "Share of the batch's places in prefill", prefillFill),
		info("model_config_info", "Configuration of the model", "dtype", "bfloat16", "gpu_type", "NVIDIA H100 80GB HBM3", "quantization", "None"),
		info("parallel_config_info", "Configuration of parallelism", "tp_size", "1", "pp_size", "1"),
		info("kv_cache_config_info", "Configuration of the KV cache", "enable_block_reuse", "True", "page_size", strconv.Itoa(kvPageTokens)),
	}
}

// trtllmCounters lists what is counted: of requests at their end.
func trtllmCounters() []family {
	counter := func(name, help string, s ...series) family {
		return family{name: "trtllm_" + name, help: help, kind: counterKind, labels: engineLabels, series: s, lazy: true}
	}
	tier := func(m measure, level, name string) series {
		return series{value: m, labels: []string{"cache_level", level, "cache_tier", name}}
	}
	families := []family{
		counter("prompt_cached_tokens_total", "Cached prompt tokens of finished requests", at(finishedCached)),
		counter("prompt_cache_hit_tokens_total", "Prompt tokens found, by cache level", tier(foundDevice, "0", "gpu"), tier(foundHost, "1", "host")),
		counter("request_success_total", "Requests ended, by reason", by(stopped, "finished_reason", "stop"), by(cutOff, "finished_reason", "length")),
		counter("request_error_total", "Requests that ended in an error, by HTTP status", by(failed, "http_code", "500")),
		counter("num_requests_completed_total", "Requests ended", at(finished)),
		counter("prompt_tokens_total", "Prompt tokens of finished requests", at(finishedPromptTokens)),
		counter("generation_tokens_total", "Generated tokens of finished requests", at(finishedGenerated)),
		counter("kv_cache_reused_blocks_total", "KV blocks found in the prefix cache", at(pagesReused)),
		counter("kv_cache_missed_blocks_total", "KV blocks not found in the prefix cache", at(pagesMissed)),
	}
	families[0].lazy, families[1].lazy = false, false // their series are made at the start
	return families
}

// trtllmHistograms lists what is observed at the end of a request, but for the
// prompt tokens of a step.
func trtllmHistograms() []family {
	histogram := func(name, help string, s sample, bounds []float64) family {
		return family{name: "trtllm_" + name, help: help, kind: histogramKind, labels: engineLabels, series: []series{{sample: s}}, bounds: bounds, lazy: true}
	}
	return []family{
		histogram("e2e_request_latency_seconds", "Time from arrival to the last token", e2e, vllmRequest.v1),
		histogram("time_to_first_token_seconds", "Time to first token", ttftAtEnd, vllmTTFT.v1),
		histogram("time_per_output_token_seconds", "Mean time between tokens of a request", tpotAtEnd, vllmITL.v1),
		histogram("request_queue_time_seconds", "Time a request waited", queueTime, vllmRequest.v1),
		histogram("request_prefill_time_seconds", "Time of a request's prefill", prefillTime, trtllmPrefillBounds),
		histogram("request_decode_time_seconds", "Time of a request's decode", decodeAtEnd, vllmRequest.v1),
		histogram("request_inference_time_seconds", "Time a request ran", inferenceTime, vllmRequest.v1),
		histogram("prompt_cached_tokens_per_request", "Cached prompt tokens of a request", cachedLength, trtllmCachedBounds),
		histogram("prefill_batch_tokens", "Prompt tokens of a step that prefills", prefillLengths, trtllmStepBounds),
	}
}

// iterationStats is what trtllm-serve answers at /metrics, where other engines
// have their page: its newest iteration, in JSON.
func (e *Engine) iterationStats() ([]byte, int) {
	if status := e.sim.answer(); status != http.StatusOK {
		return nil, status
	}
	e.sim.refresh()
	v := &e.sim.values
	return fmt.Appendf(nil, `[{"iter": %g, "iterLatencyMS": %g, "numActiveRequests": %g, "numQueuedRequests": %g, "maxNumActiveRequests": %g, `+
		`"kvCacheStats": {"maxNumBlocks": %g, "freeNumBlocks": %g, "usedNumBlocks": %g, "tokensPerBlock": %g, `+
		`"reusedBlocks": %g, "missedBlocks": %g, "cacheHitRate": %g}}]`,
		v[steps], 1000*v[stepSeconds], v[running], v[waiting], v[maxBatch],
		v[pages], v[pagesFree], v[pagesUsed], v[pageSize], v[pagesReused], v[pagesMissed], v[pageHitShare]), http.StatusOK
}
