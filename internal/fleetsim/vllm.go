// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Names of the label sets that families carry.
const (
	processLabels   = "process"   // none: the runtime's own families
	httpLabels      = "http"      // none: the HTTP server's families
	engineLabels    = "engine"    // of an engine or of SGLang's scheduler
	tokenizerLabels = "tokenizer" // of SGLang's tokenizer
	streamLabels    = "stream"    // of SGLang's tokenizer, by streaming or not
	gaugeLabels     = "gauge"     // of TensorRT-LLM's gauges
	cacheLabels     = "cache"     // of vLLM's cache configuration
	loraLabels      = "lora"      // of vLLM's LoRA adapters
)

// vllmDialects lists vLLM's pages: those of a default installation with one API
// server, one engine, no LoRA, no speculative decoding, no KV connector.
func vllmDialects() []*dialect {
	python := func(version Version, at release) *dialect {
		return &dialect{
			version: version, path: "/metrics", created: true, labels: vllmLabels(at),
			families: slices.Concat(pythonFamilies(), vllmFamilies(at), httpFamilies()),
		}
	}
	return []*dialect{
		python(Current, latest),
		python(VLLMv011, v011),
		python(VLLMv09, v09),
		vllmV0Dialect(),
		rayDialect(),
		rustDialect(),
	}
}

// vllmV0Dialect is the page of the V0 engine, whose frontend is a process of
// its own: what several processes share has no process families, no twins, and
// a histogram appears with its first observation.
func vllmV0Dialect() *dialect {
	families := slices.Concat(vllmFamilies(v06), httpFamilies())
	for i := range families {
		f := &families[i]
		f.lazy = f.lazy || f.kind == histogramKind
	}
	return &dialect{version: VLLMv06, path: "/metrics", countLast: true, hideEmpty: true, labels: vllmLabels(v06), families: families}
}

// rayDialect is the page of Ray's agent on a node, which shows what the current
// vLLM of every replica there tells it: names without a colon behind a prefix,
// and a counter twice, for agents of Ray 2.10 on repeat it as a gauge. A series
// appears with its first count.
func rayDialect() *dialect {
	labels := vllmLabels(latest)
	for name, own := range labels {
		labels[name] = func(e *engine) []string { return slices.Concat(own(e), rayLabels(e)) }
	}
	var families []family
	for _, f := range vllmFamilies(latest) {
		f.name = "ray_" + strings.ReplaceAll(f.name, ":", "_")
		f.lazy = f.kind != gaugeKind
		families = append(families, f)
		if f.kind == counterKind {
			f.kind = gaugeKind
			families = append(families, f)
		}
	}
	return &dialect{version: VLLMRay, path: "/metrics", hideEmpty: true, shared: true, labels: labels, families: families}
}

// rayLabels are those of Ray's agent. Ray draws a replica's id; here it is the
// replica's name. The worker is the process, another one after a restart.
func rayLabels(e *engine) []string {
	worker := sha256.Sum224([]byte(e.name + "/" + strconv.Itoa(e.boots)))
	session := time.Unix(int64(e.epoch), 0).UTC().Format("session_2006-01-02_15-04-05_000000_1")
	return []string{
		"Component", "core_worker", "ReplicaId", e.name, "SessionName", session,
		"Version", "2.48.0", "WorkerId", hex.EncodeToString(worker[:]),
	}
}

// rustDialect is the page of the frontend in Rust, which has no families of the
// Python runtime, not all of the engine's, and the same token bounds for every
// model.
func rustDialect() *dialect {
	missing := []string{
		"vllm:engine_sleep_state", "vllm:mm_cache_queries", "vllm:mm_cache_hits", "vllm:iteration_tokens_total",
		"vllm:cache_config_info", "vllm:tool_call_parser_invocations", "http_request_size_bytes", "http_response_size_bytes",
	}
	const longest = 131_072
	families := slices.DeleteFunc(slices.Concat(vllmFamilies(latest), httpFamilies()), func(f family) bool { return slices.Contains(missing, f.name) })
	for i := range families {
		if f := &families[i]; f.kind == histogramKind && f.bounds == nil {
			f.bounds = append(tokenBounds(longest), longest)
		}
	}
	return &dialect{version: VLLMRust, path: "/metrics", openMetrics: true, labels: vllmLabels(latest), families: families}
}

func vllmLabels(at release) map[string]func(*engine) []string {
	labels := map[string]func(*engine) []string{
		processLabels: noLabels,
		httpLabels:    noLabels,
		engineLabels:  func(e *engine) []string { return []string{"engine", "0", "model_name", e.fleet.ModelName} },
		cacheLabels:   vllmCacheLabels,
	}
	if at < latest {
		labels[cacheLabels] = func(e *engine) []string { return append(vllmOldCacheLabels(e), "engine", "0") }
	}
	if at == v06 {
		labels[engineLabels] = func(e *engine) []string { return []string{"model_name", e.fleet.ModelName} }
		labels[cacheLabels] = vllmOldCacheLabels
		labels[loraLabels] = func(*engine) []string {
			return []string{"max_lora", "0", "running_lora_adapters", "", "waiting_lora_adapters", ""}
		}
	}
	return labels
}

func noLabels(*engine) []string { return nil }

func vllmOldCacheLabels(e *engine) []string {
	return []string{
		"block_size", strconv.Itoa(kvPageTokens), "cache_dtype", "auto", "calculate_kv_scales", "False",
		"cpu_offload_gb", "0", "enable_prefix_caching", "True", "gpu_memory_utilization", "0.9",
		"is_attention_free", "False", "num_cpu_blocks", "9362",
		"num_gpu_blocks", strconv.Itoa(e.fleet.Limits.KVCacheTokens / kvPageTokens),
		"num_gpu_blocks_override", "None", "sliding_window", "None", "swap_space_bytes", "4294967296",
	}
}

func vllmCacheLabels(e *engine) []string {
	l := &e.fleet.Limits
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
