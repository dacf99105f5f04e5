// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import "slices"

// release orders the releases of vLLM whose pages differ.
type release int

const (
	v06    release = iota // V0 engine
	v09                   // V1 from here on; old and new names at once
	v011                  // the last of the old names
	latest                // August 2026
)

// span is the releases that have a family by default: what is hidden behind a
// flag is not on the page.
type span struct{ from, to release }

var (
	always    = span{v06, latest}
	onlyV06   = span{v06, v06}
	untilV09  = span{v06, v09}
	untilV011 = span{v06, v011}
	sinceV09  = span{v09, latest}
	onlyV09   = span{v09, v09}
	v09AndV11 = span{v09, v011}
	sinceV011 = span{v011, latest}
	today     = span{latest, latest}
)

// buckets are the bounds of a histogram of vLLM, which V1 has longer than V0.
type buckets struct{ v0, v1 []float64 }

// upTo cuts bounds off behind the last one of V0.
func upTo(last float64, bounds ...float64) buckets {
	return buckets{v0: bounds[:slices.Index(bounds, last)+1], v1: bounds}
}

// Bucket bounds of vLLM's histograms, in seconds but for the steps' (tokens).
// Those of the V0 engine's steps are the batch sizes with a CUDA graph.
var (
	vllmTTFT    = upTo(10, .001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560)
	vllmITL     = upTo(2.5, .01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
	vllmRequest = upTo(60, .3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
	vllmN       = upTo(20, 1, 2, 5, 10, 20)
	vllmTokens  = buckets{} // up to max_model_len
	vllmSteps   = buckets{v0: cudaGraphSizes(), v1: []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}}
)

func cudaGraphSizes() []float64 {
	sizes := []float64{1, 2, 4}
	for size := 8.0; size <= 256; size += 8 {
		sizes = append(sizes, size)
	}
	return sizes
}

// vllmFamily is a family and the releases that have it.
type vllmFamily struct {
	family
	span
	buckets buckets
}

func (s span) scalar(k kind, name, help string, all ...series) vllmFamily {
	return vllmFamily{span: s, family: family{name: "vllm:" + name, help: help, kind: k, labels: engineLabels, series: all}}
}

func (s span) gauge(name, help string, all ...series) vllmFamily {
	return s.scalar(gaugeKind, name, help, all...)
}

func (s span) counter(name, help string, all ...series) vllmFamily {
	return s.scalar(counterKind, name, help, all...)
}

func (s span) histogram(name, help string, of sample, b buckets) vllmFamily {
	f := s.scalar(histogramKind, name, help, series{sample: of})
	f.buckets = b
	return f
}

// labelled gives the family another label set than an engine's.
func (f vllmFamily) labelled(labels string) vllmFamily {
	f.labels = labels
	return f
}

// onUse makes a series appear with the first thing it counts.
func (f vllmFamily) onUse() vllmFamily {
	f.lazy = true
	return f
}

// vllmFamilies lists a release's page from top to bottom.
func vllmFamilies(at release) []family {
	var families []family
	for _, f := range slices.Concat(vllmScalars(), vllmHistograms(), vllmOthers()) {
		if at < f.from || at > f.to {
			continue
		}
		f.bounds = f.buckets.v1
		if at == v06 {
			f.bounds = f.buckets.v0
		}
		families = append(families, f.family)
	}
	return families
}

// vllmScalars lists vLLM's gauges and counters.
func vllmScalars() []vllmFamily {
	stop, length, abort := by(stopped, "finished_reason", "stop"), by(cutOff, "finished_reason", "length"), by(zero, "finished_reason", "abort")
	const ended = "Requests ended, by reason"
	return []vllmFamily{
		today.counter("estimated_flops_per_gpu", "Floating point operations of one GPU, as estimated", at(zero)),
		today.counter("estimated_read_bytes_per_gpu", "Bytes one GPU read from its memory, as estimated", at(zero)),
		today.counter("estimated_write_bytes_per_gpu", "Bytes one GPU wrote to its memory, as estimated", at(zero)),
		always.gauge("num_requests_running", "Requests in the batch", at(running)),
		onlyV06.gauge("num_requests_swapped", "Requests swapped to host memory", at(zero)),
		always.gauge("num_requests_waiting", "Requests waiting for a place in the batch", at(waiting)),
		today.gauge("num_requests_waiting_by_reason", "Requests waiting, by what they wait for",
			by(waiting, "reason", "capacity"), by(zero, "reason", "deferred")),
		today.gauge("engine_sleep_state", "1 for the state the engine is in",
			by(one, "sleep_state", "awake"), by(zero, "sleep_state", "weights_offloaded"), by(zero, "sleep_state", "discard_all")),
		untilV09.gauge("gpu_cache_usage_perc", "Used share of the KV cache, by its old name", at(kvUsage)),
		onlyV06.gauge("cpu_cache_usage_perc", "Used share of the KV cache in host memory", at(zero)),
		onlyV06.gauge("cpu_prefix_cache_hit_rate", "Share of prefix cache blocks found in host memory", at(unset)),
		onlyV06.gauge("gpu_prefix_cache_hit_rate", "Share of prefix cache blocks found", at(hitShare)),
		onlyV09.counter("gpu_prefix_cache_queries", "Tokens looked up in the prefix cache, by its old name", at(cacheQueried)),
		onlyV09.counter("gpu_prefix_cache_hits", "Tokens found in the prefix cache, by its old name", at(cacheFound)),
		sinceV09.gauge("kv_cache_usage_perc", "Used share of the KV cache, 1 when full", at(kvUsage)),
		sinceV09.counter("prefix_cache_queries", "Tokens looked up in the prefix cache", at(cacheQueried)),
		sinceV09.counter("prefix_cache_hits", "Tokens found in the prefix cache", at(cacheFound)),
		today.counter("external_prefix_cache_queries", "Tokens looked up through the KV connector", at(zero)),
		today.counter("external_prefix_cache_hits", "Tokens found through the KV connector", at(zero)),
		today.counter("mm_cache_queries", "Items looked up in the multi-modal cache", at(zero)),
		today.counter("mm_cache_hits", "Items found in the multi-modal cache", at(zero)),
		always.counter("num_preemptions", "Requests put back for lack of KV cache", at(preemptions)),
		always.counter("prompt_tokens", "Prompt tokens, cached ones included", at(promptTokens)),
		today.counter("prompt_tokens_by_source", "Prompt tokens by where they came from",
			by(promptComputed, "source", "local_compute"), by(promptCached, "source", "local_cache_hit"), by(zero, "source", "external_kv_transfer")),
		today.counter("prompt_tokens_cached", "Prompt tokens that needed no prefill", at(promptCached)),
		always.counter("generation_tokens", "Tokens generated", at(generated)),
		onlyV06.counter("tokens", "Prompt tokens and generated ones", at(processed)),
		onlyV06.counter("request_success", ended, stop, length, abort).onUse(),
		v09AndV11.counter("request_success", ended, stop, length, abort),
		today.counter("request_success", ended, stop, length, abort,
			by(failed, "finished_reason", "error"), by(zero, "finished_reason", "repetition")),
	}
}

func vllmHistograms() []vllmFamily {
	return []vllmFamily{
		always.histogram("request_prompt_tokens", "Prompt tokens of a request", promptLength, vllmTokens),
		always.histogram("request_generation_tokens", "Generated tokens of a request", generatedLength, vllmTokens),
		always.histogram("iteration_tokens_total", "Tokens of an engine step", stepTokens, vllmSteps),
		always.histogram("request_max_num_generation_tokens", "Most tokens generated for one output of a request", maxGeneratedLength, vllmTokens),
		always.histogram("request_params_n", "Parameter n of requests", nParam, vllmN),
		always.histogram("request_params_max_tokens", "Parameter max_tokens of requests", maxTokensParam, vllmTokens),
		always.histogram("time_to_first_token_seconds", "Time to first token", ttft, vllmTTFT),
		untilV011.histogram("time_per_output_token_seconds", "Time between two tokens of a request, by its old name", itl, vllmITL),
		sinceV011.histogram("inter_token_latency_seconds", "Time between two tokens of a request", itl, vllmITL),
		sinceV011.histogram("request_time_per_output_token_seconds", "Mean time between tokens of a request", tpot, vllmITL),
		always.histogram("e2e_request_latency_seconds", "Time from arrival to the last token", e2e, vllmRequest),
		always.histogram("request_queue_time_seconds", "Time a request waited", queueTime, vllmRequest),
		onlyV06.histogram("time_in_queue_requests", "Time a request waited, by its old name", queueTime, vllmRequest),
		always.histogram("request_inference_time_seconds", "Time a request ran", inferenceTime, vllmRequest),
		always.histogram("request_prefill_time_seconds", "Time of a request's prefill", prefillTime, vllmRequest),
		always.histogram("request_decode_time_seconds", "Time of a request's decode", decodeTime, vllmRequest),
		today.histogram("request_prefill_kv_computed_tokens", "Prompt tokens computed for a request", computedLength, vllmTokens),
	}
}

// vllmOthers lists the families that do not have an engine's labels.
func vllmOthers() []vllmFamily {
	return []vllmFamily{
		onlyV06.gauge("lora_requests_info", "Unix time of the newest look at the adapters in use", at(clock)).labelled(loraLabels),
		always.gauge("cache_config_info", "Configuration of the KV cache", at(one)).labelled(cacheLabels),
		today.counter("tool_call_parser_invocations", "Calls of the tool call parser").labelled(httpLabels),
	}
}
