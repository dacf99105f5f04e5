// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package spellings

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// jump is when the counters of handwritten pages move, once: every window of an evaluation from judgedFrom on has the
// whole move in it, up to judgedTo.
const (
	jump       = 45 * time.Second
	judgedFrom = 50 * time.Second
	judgedTo   = 70 * time.Second
)

// moved is a counter that goes from one value to another at the jump.
func moved(at time.Duration, before, by int) int {
	if at < jump {
		return before
	}
	return before + by
}

// pod is a handwritten target.
func pod(name string) source {
	return source{instance: name + ":8000", labels: map[string]string{"namespace": "default", "pod": name}}
}

// sglangPage is an SGLang whose newest batch is a decode, so that its gauge says that nothing was found.
func sglangPage(at time.Duration) []byte {
	return fmt.Appendf(nil, `# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{engine_type="unified",model_name="test/cache-8b",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 3.0
# TYPE sglang:cache_hit_rate gauge
sglang:cache_hit_rate{engine_type="unified",model_name="test/cache-8b",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 0.0
# TYPE sglang:prompt_tokens_total counter
sglang:prompt_tokens_total{engine_type="unified",is_streaming="true",model_name="test/cache-8b"} %d
sglang:prompt_tokens_total{engine_type="unified",is_streaming="false",model_name="test/cache-8b"} %d
# TYPE sglang:cached_tokens_total counter
sglang:cached_tokens_total{cache_source="device",engine_type="unified",model_name="test/cache-8b"} %d
sglang:cached_tokens_total{cache_source="host",engine_type="unified",model_name="test/cache-8b"} %d
`, moved(at, 40_000, 900), moved(at, 5_000, 100), moved(at, 12_000, 600), moved(at, 3_000, 100))
}

// vllmCachePage is a vLLM that looked up 1,000 tokens and found some, or blocks before v0.9.
func vllmCachePage(at time.Duration, prefix string, looked, found int) []byte {
	return fmt.Appendf(nil, `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="test/cache-8b"} 3.0
# TYPE vllm:%[1]sprefix_cache_queries_total counter
vllm:%[1]sprefix_cache_queries_total{engine="0",model_name="test/cache-8b"} %[2]d
# TYPE vllm:%[1]sprefix_cache_hits_total counter
vllm:%[1]sprefix_cache_hits_total{engine="0",model_name="test/cache-8b"} %[3]d
`, prefix, moved(at, 9_000, looked), moved(at, 2_000, found))
}

// trtllmPage is a worker of Dynamo that tells its cache in tokens, without how many were looked up, and in blocks.
func trtllmPage(at time.Duration) []byte {
	return fmt.Appendf(nil, `# TYPE trtllm_num_requests_running gauge
trtllm_num_requests_running{engine_type="trtllm",model_name="test/cache-8b",pid="1"} 3.0
# TYPE trtllm_prompt_tokens_total counter
trtllm_prompt_tokens_total{engine_type="trtllm",model_name="test/cache-8b"} %d
# TYPE trtllm_prompt_cached_tokens_total counter
trtllm_prompt_cached_tokens_total{engine_type="trtllm",model_name="test/cache-8b"} %d
# TYPE trtllm_kv_cache_reused_blocks_total counter
trtllm_kv_cache_reused_blocks_total{engine_type="trtllm",model_name="test/cache-8b"} %d
# TYPE trtllm_kv_cache_missed_blocks_total counter
trtllm_kv_cache_missed_blocks_total{engine_type="trtllm",model_name="test/cache-8b"} %d
`, moved(at, 50_000, 1_000), moved(at, 10_000, 640), moved(at, 700, 40), moved(at, 900, 22))
}

// cached runs pages with the hit ratios switched on.
func cached(t *testing.T, deliveries ...[]delivery) *findings {
	t.Helper()
	return outlier(t, everything(), deliveries...)
}

// assertRatio holds a hit ratio, of a replica or of the only fleet, against what it must be at every judged evaluation.
func assertRatio(t *testing.T, f *findings, want float64, metric string, labels ...string) {
	t.Helper()
	for at := judgedFrom; at <= judgedTo; at += interval {
		found := f.where(func(p point) bool { return p.at == at && of(metric, labels...)(p) })
		if assert.Len(t, found, 1, "%s of %v at %s", metric, labels, at) {
			for p, got := range found {
				assert.InDelta(t, want, got, tolerance, p)
			}
		}
	}
}

// TestCacheOfSGLang: 600 tokens on the device and 100 in the host's memory, of 1,000, is 0.70, whatever the gauge of the
// newest batch says.
func TestCacheOfSGLang(t *testing.T) {
	f := cached(t, pod("cache-0").scrape(t, sglangPage))
	assertRatio(t, f, 0.70, replicaHitRatio, "replica=cache-0", "engine_name=sglang")
	assertRatio(t, f, 0.70, fleetHitRatio, "engine_name=sglang")
}

// TestCacheOfTensorRTLLM: 640 cached tokens of 1,000.
func TestCacheOfTensorRTLLM(t *testing.T) {
	f := cached(t, pod("cache-0").scrape(t, trtllmPage))
	assertRatio(t, f, 0.64, replicaHitRatio, "replica=cache-0", "engine_name=tensorrt_llm")
	assertRatio(t, f, 0.64, fleetHitRatio, "engine_name=tensorrt_llm")
}

// TestCacheInBlocks: vLLM before v0.9 counts blocks. A ratio of blocks holds for the replica, and for a fleet that has no
// other; with tokens it is not added up.
func TestCacheInBlocks(t *testing.T) {
	blocks := func(at time.Duration) []byte { return vllmCachePage(at, "gpu_", 50, 10) }
	tokens := func(at time.Duration) []byte { return vllmCachePage(at, "", 1_000, 600) }
	old, another, current := pod("cache-0").scrape(t, blocks), pod("cache-1").scrape(t, blocks), pod("cache-1").scrape(t, tokens)

	alike := cached(t, old, another)
	assertRatio(t, alike, 0.20, replicaHitRatio, "replica=cache-0")
	assertRatio(t, alike, 0.20, fleetHitRatio)
	assert.NotContains(t, alike.withheld(), "mixed_units")

	mixed := cached(t, old, current)
	assertRatio(t, mixed, 0.20, replicaHitRatio, "replica=cache-0")
	assertRatio(t, mixed, 0.60, replicaHitRatio, "replica=cache-1")
	assert.Empty(t, mixed.where(of(fleetHitRatio)))
	require.GreaterOrEqual(t, mixed.withheld()["mixed_units"], int64((judgedTo-judgedFrom)/interval+1))
}
