// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// assertDerived holds what fleet_outlier derives behind fleet_identity against what it derives of the very same pages by
// itself: the same, with the identity beside it.
func assertDerived(t *testing.T, metrics, bare file) {
	t.Helper()
	behind, alone := derived(t, metrics), derived(t, bare)
	compared := 0
	for key, want := range alone {
		got, ok := behind[key]
		if !ok {
			continue // one pipeline may have been stopped before the other had its last evaluation
		}
		compared++
		assert.InDelta(t, want, got, 1e-9*want, "%v", key)
	}
	assert.Greater(t, compared, len(alone)*2/3)
	assert.Greater(t, compared, len(behind)*2/3)

	for _, p := range metrics.numbers(t, "llmfleet.replica.latency_ratio", "pod", "chat-2") {
		assert.Greater(t, p.value, 1.3)
		for key, want := range map[string]string{
			"model_name": "test/chat-8b", "engine_name": "vllm", "role": "decode", "config_hash": templateHash["chat"],
			"namespace": "serving", "replica": "serving/chat-2",
		} {
			assert.Equal(t, want, p.attributes[key], key)
		}
	}
}

// assertExplained: which dialect a replica speaks is told, that no variant changed, and that the engines are heard.
func assertExplained(t *testing.T, metrics file) {
	t.Helper()
	for pod, dialect := range map[string]string{"chat-0": "vllm", "talk-0": "sglang"} {
		assert.NotEmpty(t, metrics.numbers(t, "llmfleet.identity.sources", "pod", pod, "dialect", dialect), pod)
		changes := metrics.numbers(t, "llmfleet.replica.variant_changes", "pod", pod)
		assert.NotEmpty(t, changes, pod)
		for _, p := range changes {
			assert.Zero(t, p.value, pod)
		}
	}
	seen := metrics.numbers(t, "llmfleet.component.signals", "component", "engine", "state", "seen")
	require.NotEmpty(t, seen)
	assert.Greater(t, seen[len(seen)-1].value, 10.0)
}

// figure is one derived series at one time, whatever identity stands beside it.
type figure struct {
	at                                               time.Time
	metric, engine, replica, signal, quantile, state string
}

func derived(t *testing.T, f file) map[figure]float64 {
	t.Helper()
	all := make(map[figure]float64)
	for _, p := range f.metrics(t) {
		if !strings.HasPrefix(p.metric, "llmfleet.replica.") && !strings.HasPrefix(p.metric, "llmfleet.fleet.") || p.metric == "llmfleet.replica.variant_changes" {
			continue
		}
		a := p.attributes
		all[figure{p.at, p.metric, a["engine_name"], a["replica"], a["signal"], a["quantile"], a["state"]}] = p.value
	}
	return all
}

// canonicalOf are canonical metrics, and of each engine the raw ones whose points are summed into it.
var canonicalOf = map[string]map[string][]string{
	"llmfleet.engine.running":           {"chat": {"vllm:num_requests_running"}, "talk": {"sglang:num_running_reqs"}},
	"llmfleet.engine.kv_usage_ratio":    {"chat": {"vllm:kv_cache_usage_perc"}, "talk": {"sglang:full_token_usage"}},
	"llmfleet.engine.prefix_hits":       {"chat": {"vllm:prefix_cache_hits_total"}, "talk": {"sglang:cached_tokens_total"}},
	"llmfleet.engine.prompt_tokens":     {"chat": {"vllm:prompt_tokens_total"}, "talk": {"sglang:prompt_tokens_total"}},
	"llmfleet.engine.finished":          {"chat": {"vllm:request_success_total"}, "talk": {"sglang:num_requests_total"}},
	"llmfleet.engine.prompt_length":     {"chat": {"vllm:request_prompt_tokens"}, "talk": {"sglang:prompt_tokens_histogram"}},
	"llmfleet.engine.output_length":     {"chat": {"vllm:request_generation_tokens"}, "talk": {"sglang:generation_tokens_histogram"}},
	"llmfleet.engine.ttft":              {"chat": {"vllm:time_to_first_token_seconds"}, "talk": {"sglang:time_to_first_token_seconds"}},
	"llmfleet.engine.itl":               {"chat": {"vllm:inter_token_latency_seconds"}, "talk": {"sglang:inter_token_latency_seconds"}},
	"llmfleet.engine.queue_time":        {"chat": {"vllm:request_queue_time_seconds"}, "talk": {"sglang:queue_time_seconds"}},
	"llmfleet.engine.generation_tokens": {"chat": {"vllm:generation_tokens_total"}},
}

// page is one scrape of one pod.
type page struct {
	pod string
	at  time.Time
}

// sums adds up the points of metrics by the page that they stand on.
func sums(all []numberOut, metrics ...string) map[page]float64 {
	found := make(map[page]float64)
	for _, p := range all {
		for _, metric := range metrics {
			if p.metric == metric {
				found[page{p.attributes["pod"], p.at}] += p.value
			}
		}
	}
	return found
}

// Families of the engines, by what becomes of them: those that canonical series tell, with the twins of creation beside
// them, and those that they tell in part, of which it is open.
var (
	toldCanonically = regexp.MustCompile(`^(vllm|sglang):(num_requests_(running|waiting)|num_(running|queue)_reqs|num_(prefill_bootstrap|decode_prealloc|decode_transfer)_queue_reqs|` +
		`kv_cache_usage_perc|(full_)?token_usage|prefix_cache_\w+|cached_tokens\w*|(request_)?(prompt|generation)_tokens(_histogram)?(_total|_created)?|` +
		`request_success\w*|num_requests_total|num_preemptions\w*|time_to_first_token_seconds\w*|inter_token_latency_seconds\w*|(request_)?queue_time_seconds\w*|` +
		`e2e_request_latency_seconds\w*|request_time_per_output_token_seconds\w*)$`)
	toldInPart = regexp.MustCompile(`^sglang:(realtime_tokens_total|per_stage_req_latency_seconds|startup_time_seconds)$`)
)

// assertCanonical holds canonical series against the raw ones of the same pages.
func assertCanonical(t *testing.T, metrics, bare file) {
	t.Helper()
	out, raw := metrics.metrics(t), bare.metrics(t)
	for metric, of := range canonicalOf {
		canonical := sums(out, metric)
		for fleet, names := range of {
			want, compared := sums(raw, names...), 0
			for at, value := range canonical {
				if expected, ok := want[at]; ok && strings.HasPrefix(at.pod, fleet) {
					compared++
					assert.InDelta(t, expected, value, 1e-9*expected, "%s of %v", metric, at)
				}
			}
			assert.Greater(t, compared, 5, "%s of %s", metric, fleet)
		}
	}
	scraped, kept := make(map[string]bool), make(map[string]bool)
	for _, p := range raw {
		scraped[p.metric] = true
	}
	for _, p := range out {
		kept[p.metric] = true
		if strings.HasPrefix(p.metric, "llmfleet.engine.") {
			assertDescribed(t, &p)
		}
	}
	for metric := range scraped {
		if !toldInPart.MatchString(metric) && !strings.HasPrefix(metric, "llmfleet.") {
			assert.Equal(t, toldCanonically.MatchString(metric), !kept[metric], "%s is gone if and only if canonical series tell it", metric)
		}
	}
	require.Subset(t, slices.Collect(maps.Keys(scraped)), []string{"vllm:kv_cache_usage_perc", "sglang:full_token_usage", "vllm:cache_config_info"})
}

// assertDescribed: a canonical point says whose it is, and so does its resource.
func assertDescribed(t *testing.T, p *numberOut) {
	t.Helper()
	pod := p.attributes["pod"]
	require.NotEmpty(t, pod, p.metric)
	engine, fleet := "vllm", pod[:len("chat")]
	if fleet == "talk" {
		engine = "sglang"
	}
	for key, want := range map[string]string{
		"model_name": "test/chat-8b", "engine_name": engine, "role": "decode", "config_hash": templateHash[fleet],
		"namespace": "serving", "replica": "serving/" + pod,
	} {
		assert.Equal(t, want, p.attributes[key], "%s of %s", key, p.metric)
		if key != "namespace" {
			assert.Equal(t, want, p.resource[key], "%s of the resource", key)
		}
	}
}
