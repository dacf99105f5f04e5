// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"slices"
	"strconv"
)

// Names of the label sets that families carry.
const (
	processLabels   = "process"   // none: the runtime's own families
	httpLabels      = "http"      // none: the HTTP server's families
	engineLabels    = "engine"    // of an engine or of SGLang's scheduler
	tokenizerLabels = "tokenizer" // of SGLang's tokenizer
	streamLabels    = "stream"    // of SGLang's tokenizer, by streaming or not
	cacheLabels     = "cache"     // of vLLM's cache configuration
)

// Bucket bounds of vLLM's histograms, in seconds but for stepBounds (tokens).
var (
	vllmTTFTBounds    = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	vllmITLBounds     = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	vllmRequestBounds = []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	vllmNBounds       = []float64{1, 2, 5, 10, 20}
	vllmStepBounds    = []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
	httpBounds        = []float64{.1, .5, 1}
	httpFineBounds    = []float64{.01, .025, .05, .075, .1, .25, .5, .75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60}
)

// vllmDialect is the page of a vLLM of August 2026 with default flags: one API
// server, one engine, no LoRA, no speculative decoding, no KV connector.
var vllmDialect = dialect{
	created: true,
	labels: map[string]func(*Fleet) []string{
		processLabels: noLabels,
		httpLabels:    noLabels,
		engineLabels:  func(f *Fleet) []string { return []string{"engine", "0", "model_name", f.ModelName} },
		cacheLabels:   vllmCacheLabels,
	},
	families: vllmFamilies(),
}

func noLabels(*Fleet) []string { return nil }

func vllmCacheLabels(f *Fleet) []string {
	l := &f.Limits
	return []string{
		"engine", "0", "block_size", strconv.Itoa(kvPageTokens), "cache_dtype", "auto",
		"calculate_kv_scales", "False", "enable_prefix_caching", "True",
		"gpu_memory_utilization", "0.92", "is_attention_free", "False",
		"kv_cache_dtype_skip_layers", "[]",
		"kv_cache_max_concurrency", string(appendNumber(nil, float64(l.KVCacheTokens)/float64(l.MaxModelLen))),
		"kv_cache_memory_bytes", "None", "kv_cache_size_tokens", strconv.Itoa(l.KVCacheTokens),
		"kv_offloading_backend", "native", "kv_offloading_size", "None",
		"kv_sharing_fast_prefill", "False", "mamba_block_size", "None",
		"mamba_cache_dtype", "auto", "mamba_cache_mode", "none",
		"mamba_page_size_padded", "None", "mamba_ssm_cache_dtype", "auto",
		"num_cpu_blocks", "None", "num_gpu_blocks", strconv.Itoa(l.KVCacheTokens / kvPageTokens),
		"num_gpu_blocks_override", "None", "prefix_caching_hash_algo", "sha256",
		"sliding_window", "None", "user_specified_block_size", "False",
	}
}

// vllmFamilies lists the page from top to bottom.
func vllmFamilies() []family {
	return slices.Concat(pythonFamilies(), vllmScalars(), vllmHistograms(), []family{
		{name: "vllm:cache_config_info", help: "Configuration of the KV cache", kind: gaugeKind, labels: cacheLabels, series: []series{at(one)}},
		{name: "vllm:tool_call_parser_invocations", help: "Calls of the tool call parser", kind: counterKind, labels: httpLabels},
	}, httpFamilies())
}

func vllmScalars() []family {
	gauge := func(name, help string, s ...series) family {
		return family{name: "vllm:" + name, help: help, kind: gaugeKind, labels: engineLabels, series: s}
	}
	counter := func(name, help string, s ...series) family {
		return family{name: "vllm:" + name, help: help, kind: counterKind, labels: engineLabels, series: s}
	}
	return []family{
		counter("estimated_flops_per_gpu", "Floating point operations of one GPU, as estimated", at(zero)),
		counter("estimated_read_bytes_per_gpu", "Bytes one GPU read from its memory, as estimated", at(zero)),
		counter("estimated_write_bytes_per_gpu", "Bytes one GPU wrote to its memory, as estimated", at(zero)),
		gauge("num_requests_running", "Requests in the batch", at(running)),
		gauge("num_requests_waiting", "Requests waiting for a place in the batch", at(waiting)),
		gauge("num_requests_waiting_by_reason", "Requests waiting, by what they wait for",
			by(waiting, "reason", "capacity"), by(zero, "reason", "deferred")),
		gauge("engine_sleep_state", "1 for the state the engine is in",
			by(one, "sleep_state", "awake"), by(zero, "sleep_state", "weights_offloaded"), by(zero, "sleep_state", "discard_all")),
		gauge("kv_cache_usage_perc", "Used share of the KV cache, 1 when full", at(kvUsage)),
		counter("prefix_cache_queries", "Tokens looked up in the prefix cache", at(cacheQueried)),
		counter("prefix_cache_hits", "Tokens found in the prefix cache", at(cacheFound)),
		counter("external_prefix_cache_queries", "Tokens looked up through the KV connector", at(zero)),
		counter("external_prefix_cache_hits", "Tokens found through the KV connector", at(zero)),
		counter("mm_cache_queries", "Items looked up in the multi-modal cache", at(zero)),
		counter("mm_cache_hits", "Items found in the multi-modal cache", at(zero)),
		counter("num_preemptions", "Requests put back for lack of KV cache", at(preemptions)),
		counter("prompt_tokens", "Prompt tokens, cached ones included", at(promptTokens)),
		counter("prompt_tokens_by_source", "Prompt tokens by where they came from",
			by(promptComputed, "source", "local_compute"), by(promptCached, "source", "local_cache_hit"), by(zero, "source", "external_kv_transfer")),
		counter("prompt_tokens_cached", "Prompt tokens that needed no prefill", at(promptCached)),
		counter("generation_tokens", "Tokens generated", at(generated)),
		counter("request_success", "Requests ended, by reason",
			by(stopped, "finished_reason", "stop"), by(cutOff, "finished_reason", "length"), by(zero, "finished_reason", "abort"),
			by(zero, "finished_reason", "error"), by(zero, "finished_reason", "repetition")),
	}
}

func vllmHistograms() []family {
	histogram := func(name, help string, s sample, bounds []float64) family {
		return family{name: "vllm:" + name, help: help, kind: histogramKind, labels: engineLabels, series: []series{{sample: s}}, bounds: bounds}
	}
	return []family{
		histogram("request_prompt_tokens", "Prompt tokens of a request", promptLength, nil),
		histogram("request_generation_tokens", "Generated tokens of a request", generatedLength, nil),
		histogram("iteration_tokens_total", "Tokens of an engine step", stepTokens, vllmStepBounds),
		histogram("request_max_num_generation_tokens", "Most tokens generated for one output of a request", maxGeneratedLength, nil),
		histogram("request_params_n", "Parameter n of requests", nParam, vllmNBounds),
		histogram("request_params_max_tokens", "Parameter max_tokens of requests", maxTokensParam, nil),
		histogram("time_to_first_token_seconds", "Time to first token", ttft, vllmTTFTBounds),
		histogram("inter_token_latency_seconds", "Time between two tokens of a request", itl, vllmITLBounds),
		histogram("request_time_per_output_token_seconds", "Mean time between tokens of a request", tpot, vllmITLBounds),
		histogram("e2e_request_latency_seconds", "Time from arrival to the last token", e2e, vllmRequestBounds),
		histogram("request_queue_time_seconds", "Time a request waited", queueTime, vllmRequestBounds),
		histogram("request_inference_time_seconds", "Time a request ran", inferenceTime, vllmRequestBounds),
		histogram("request_prefill_time_seconds", "Time of a request's prefill", prefillTime, vllmRequestBounds),
		histogram("request_decode_time_seconds", "Time of a request's decode", decodeTime, vllmRequestBounds),
		histogram("request_prefill_kv_computed_tokens", "Prompt tokens computed for a request", computedLength, nil),
	}
}

func at(m measure) series { return series{value: m} }

func by(m measure, label, value string) series {
	return series{value: m, labels: []string{label, value}}
}

// pythonFamilies are those that the Python client adds by itself.
func pythonFamilies() []family {
	generations := func(young, middle, old measure) []series {
		return []series{by(young, "generation", "0"), by(middle, "generation", "1"), by(old, "generation", "2")}
	}
	process := func(name, help string, k kind, m measure) family {
		return family{name: name, help: help, kind: k, labels: processLabels, series: []series{at(m)}}
	}
	return []family{
		{name: "python_gc_objects_collected", help: "Objects that garbage collection freed", kind: counterKind, labels: processLabels, series: generations(gcYoungObjects, gcMiddleObjects, gcOldObjects)},
		{name: "python_gc_objects_uncollectable", help: "Objects that garbage collection could not free", kind: counterKind, labels: processLabels, series: generations(zero, zero, zero)},
		{name: "python_gc_collections", help: "Garbage collections", kind: counterKind, labels: processLabels, series: generations(gcYoung, gcMiddle, gcOld)},
		{name: "python_info", help: "Version of the interpreter", kind: gaugeKind, labels: processLabels, series: []series{
			{value: one, labels: []string{"implementation", "CPython", "major", "3", "minor", "12", "patchlevel", "11", "version", "3.12.11"}},
		}},
		process("process_virtual_memory_bytes", "Virtual memory", gaugeKind, virtualMemory),
		process("process_resident_memory_bytes", "Resident memory", gaugeKind, processMemory),
		process("process_start_time_seconds", "Start of the process, seconds since the Unix epoch", gaugeKind, processStart),
		process("process_cpu_seconds", "Processor time, user and system", counterKind, processCPU),
		process("process_open_fds", "Open file descriptors", gaugeKind, openFiles),
		process("process_max_fds", "Most file descriptors", gaugeKind, maxFiles),
	}
}

// httpFamilies are those of the HTTP server in front of vLLM's engine.
func httpFamilies() []family {
	const route = "/v1/chat/completions"
	handler := []string{"handler", route}
	call := []string{"handler", route, "method", "POST"}
	http := func(name, help string, k kind, s series) family {
		return family{name: "http_" + name, help: help, kind: k, labels: httpLabels, series: []series{s}, lazy: true}
	}
	families := []family{
		http("requests", "Requests by method, status and handler", counterKind, series{value: finished, labels: []string{"handler", route, "method", "POST", "status", "2xx"}}),
		http("request_size_bytes", "Content length of requests", summaryKind, series{sample: requestSize, labels: handler}),
		http("response_size_bytes", "Content length of responses", summaryKind, series{sample: responseSize, labels: handler}),
		http("request_duration_highr_seconds", "Duration of requests, in many buckets", histogramKind, series{sample: httpDurationFine}),
		http("request_duration_seconds", "Duration of requests by handler, in few buckets", histogramKind, series{sample: httpDuration, labels: call}),
	}
	fine, coarse := &families[3], &families[4]
	fine.bounds, fine.lazy = httpFineBounds, false
	coarse.bounds = httpBounds
	return families
}
