// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"math"
	"slices"
)

// Bucket bounds of SGLang's histograms, in seconds but for those of tokens.
var (
	sglangTTFTBounds  = []float64{.1, .2, .4, .6, .8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400}
	sglangITLBounds   = []float64{.002, .004, .006, .008, .01, .015, .02, .025, .03, .035, .04, .06, .08, .1, .2, .4, .6, .8, 1, 2, 4, 6, 8}
	sglangE2EBounds   = append(slices.Clone(sglangTTFTBounds), 600, 1200, 1800, 2400)
	sglangQueueBounds = []float64{
		0, .001, .005, .01, .05, .1, .2, .5, 1, 2, 3, 4, 5, 10, 15, 20, 30, 40, 50, 60, 70, 80, 90,
		100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1200, 1400, 1600, 1800, 2000, 2500, 3000,
	}
	sglangTokenBounds = []float64{
		100, 300, 500, 700, 1000, 1500, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10000, 12000, 15000, 20000,
		22000, 25000, 30000, 35000, 40000, 66000, 99000, 132000, 300000, 600000, 900000, 1.1e6,
	}
)

// sglangStageBounds are 30 bounds from 1 ms, each 1.62 times the one before.
func sglangStageBounds() []float64 {
	bounds := make([]float64, 30)
	for i := range bounds {
		bounds[i] = 0.001 * math.Pow(1.62, float64(i))
	}
	return bounds
}

// sglangDialect is the page of an SGLang v0.5.18 with --enable-metrics and
// --collect-tokens-histogram, serving unified, on one rank. Its processes share
// the page, so it has neither process families nor _created twins, and a series
// appears when it is first used.
var sglangDialect = dialect{
	version:   Current,
	path:      "/metrics",
	countLast: true,
	hideEmpty: true,
	labels: map[string]func(*engine) []string{
		engineLabels: func(e *engine) []string {
			return []string{"model_name", e.fleet.ModelName, "engine_type", "unified", "tp_rank", "0", "pp_rank", "0", "moe_ep_rank", "0"}
		},
		tokenizerLabels: func(e *engine) []string {
			return []string{"model_name", e.fleet.ModelName, "engine_type", "unified"}
		},
		streamLabels: func(e *engine) []string {
			return []string{"model_name", e.fleet.ModelName, "engine_type", "unified", "is_streaming", "true"}
		},
		processLabels: noLabels,
	},
	families: slices.Concat(sglangGauges(), sglangScheduler(), sglangTokenizer()),
}

// sglangGauges lists the gauges of the scheduler, which carry its ranks.
func sglangGauges() []family {
	gauge := func(name, help string, m measure) family {
		return family{name: "sglang:" + name, help: help, kind: gaugeKind, labels: engineLabels, series: []series{at(m)}}
	}
	return []family{
		gauge("num_running_reqs", "Requests in the batch", running),
		gauge("num_used_tokens", "Tokens in the KV cache", kvUsed),
		gauge("token_usage", "Used share of the fullest token pool", kvUsage),
		gauge("full_token_usage", "Used share of the KV cache", kvUsage),
		gauge("swa_token_usage", "Used share of the sliding-window pool", zero),
		gauge("mamba_usage", "Used share of the state pool", zero),
		gauge("pending_prealloc_token_usage", "Share of tokens waiting for a place on the decode side", zero),
		gauge("kv_used_tokens", "KV cache tokens in use", kvUsed),
		gauge("kv_available_tokens", "KV cache tokens free", kvFree),
		gauge("kv_evictable_tokens", "KV cache tokens that may be evicted", zero),
		gauge("decode_sum_seq_lens", "Tokens of all requests in decode", decodeLengths),
		gauge("gen_throughput", "Tokens generated a second", throughput),
		gauge("num_queue_reqs", "Requests waiting for a place in the batch", waiting),
		gauge("num_grammar_queue_reqs", "Requests waiting for a grammar", zero),
		gauge("cache_hit_rate", "Cached share of the newest batch, 0 when it was a decode", hitRate),
		gauge("max_total_num_tokens", "Tokens the KV cache can hold", kvCapacity),
		gauge("context_len", "Most tokens of one request", contextLength),
		gauge("page_size", "Tokens of one KV page", pageSize),
		gauge("num_pages", "KV pages", pages),
		gauge("new_token_ratio", "Share of a request's output that the scheduler reserves", newTokenRatio),
		gauge("spec_accept_length", "Mean tokens accepted a draft", zero),
		gauge("spec_accept_rate", "Accepted share of draft tokens", zero),
		gauge("num_retracted_reqs", "Requests put back in the newest step", zero),
		gauge("num_paused_reqs", "Requests paused by a weight update", zero),
		gauge("num_prefill_bootstrap_queue_reqs", "Requests that wait for a peer, prefill side", zero),
		gauge("num_prefill_inflight_queue_reqs", "Requests that wait for their transfer, prefill side", zero),
		gauge("num_decode_prealloc_queue_reqs", "Requests that wait for a place, decode side", zero),
		gauge("num_decode_transfer_queue_reqs", "Requests that wait for their transfer, decode side", zero),
		gauge("utilization", "Running requests over the most a batch may hold", batchFill),
		gauge("is_cuda_graph", "1 when the newest batch ran as a CUDA graph", one),
		gauge("num_unique_running_routing_keys", "Routing keys in the batch", zero),
		gauge("weight_memory_usage_gb", "Memory of the weights", weightsGB),
		gauge("kv_cache_memory_usage_gb", "Memory of the KV cache", cacheGB),
		gauge("graph_memory_usage_gb", "Memory of the CUDA graphs", graphGB),
		gauge("startup_available_gpu_memory_gb", "GPU memory left after start-up", spareGB),
	}
}

// sglangScheduler lists what else the scheduler shows.
func sglangScheduler() []family {
	counter := func(name, help string, s ...series) family {
		return family{name: "sglang:" + name, help: help, kind: counterKind, labels: engineLabels, series: s, lazy: true}
	}
	stage := func(s sample, name string) series { return series{sample: s, labels: []string{"stage", name}} }
	return []family{
		counter("num_retracted_requests_total", "Requests put back for lack of KV cache", at(preemptions)),
		counter("num_retracted_input_tokens_total", "Prompt tokens of requests put back", at(preemptedPrompt)),
		counter("num_retracted_output_tokens_total", "Generated tokens of requests put back", at(preemptedGenerated)),
		counter("realtime_tokens_total", "Tokens as they are processed",
			by(promptComputed, "mode", "prefill_compute"), by(promptCached, "mode", "prefill_cache"), by(generated, "mode", "decode")),
		counter("forward_execution_seconds_total", "Time of forward passes",
			by(prefillSeconds, "category", "extend"), by(decodeSeconds, "category", "decode")),
		counter("cuda_graph_passes_total", "Forward passes by CUDA graph mode", by(steps, "mode", "decode_cuda_graph")),
		{
			name: "sglang:queue_time_seconds", help: "Time a request waited", kind: histogramKind,
			labels: engineLabels, series: []series{{sample: waitTime}}, bounds: sglangQueueBounds, lazy: true,
		},
		{
			name: "sglang:per_stage_req_latency_seconds", help: "Time of a request's stages", kind: histogramKind,
			labels: engineLabels, series: []series{stage(prefillStageTime, "prefill_forward")}, bounds: sglangStageBounds(), lazy: true,
		},
	}
}

// sglangTokenizer lists the families of the tokenizer process.
func sglangTokenizer() []family {
	counter := func(name, help, labels string, s ...series) family {
		return family{name: "sglang:" + name, help: help, kind: counterKind, labels: labels, series: s, lazy: true}
	}
	histogram := func(name, help, labels string, s sample, bounds []float64) family {
		return family{name: "sglang:" + name, help: help, kind: histogramKind, labels: labels, series: []series{{sample: s}}, bounds: bounds, lazy: true}
	}
	gauge := func(name, help string, s ...series) family {
		return family{name: "sglang:" + name, help: help, kind: gaugeKind, labels: tokenizerLabels, series: s}
	}
	return []family{
		counter("prompt_tokens_total", "Prompt tokens of finished requests", streamLabels, at(finishedPromptTokens)),
		counter("generation_tokens_total", "Generated tokens of finished requests", streamLabels, at(finishedGenerated)),
		counter("cached_tokens_total", "Cached prompt tokens of finished requests", tokenizerLabels,
			by(finishedCachedDevice, "cache_source", "device"), by(finishedCachedHost, "cache_source", "host")),
		counter("num_requests_total", "Requests finished", streamLabels, at(finished)),
		counter("num_aborted_requests_total", "Requests aborted", tokenizerLabels, at(failed)),
		histogram("prompt_tokens_histogram", "Prompt tokens of a request", tokenizerLabels, promptLength, sglangTokenBounds),
		histogram("uncached_prompt_tokens_histogram", "Prompt tokens computed for a request", tokenizerLabels, computedLength, sglangTokenBounds),
		histogram("generation_tokens_histogram", "Generated tokens of a request", tokenizerLabels, generatedLength, sglangTokenBounds),
		histogram("time_to_first_token_seconds", "Time to first token", streamLabels, ttft, sglangTTFTBounds),
		histogram("inter_token_latency_seconds", "Time between two tokens, weighted by token", tokenizerLabels, itl, sglangITLBounds),
		histogram("e2e_request_latency_seconds", "Time from arrival to the last token", streamLabels, e2e, sglangE2EBounds),
		gauge("startup_time_seconds", "Time of start-up by phase",
			by(weightsSeconds, "phase", "load_weight"), by(cacheSeconds, "phase", "kv_cache_allocation"),
			by(schedulerSeconds, "phase", "scheduler_e2e"), by(tokenizerSeconds, "phase", "tokenizer_e2e")),
		gauge("startup_cuda_graph_time_seconds", "Time of CUDA graph capture by phase", by(graphSeconds, "phase", "decode")),
		{
			name: "sglang:process_cpu_seconds_total", help: "Processor time by component", kind: counterKind,
			labels: processLabels, series: []series{by(processCPU, "component", "tokenizer")},
		},
	}
}
