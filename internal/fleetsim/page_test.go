// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"bytes"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 8, 17, 12, 0, 0, 0, time.UTC)

const oneVLLM = `
seed: 1
fleets:
  - {name: qwen, engine: vllm, model_name: qwen3-8b, replicas: 3, prefix_hit_ratio: 0.25, arrivals: {rate: 30}}
`

const oneSGLang = `
seed: 1
fleets:
  - {name: llama, engine: sglang, model_name: llama-3.3-70b, replicas: 2, arrivals: {rate: 10}}
`

func simulate(t *testing.T, scenario string) *Simulation {
	t.Helper()
	s, err := Parse([]byte(scenario))
	require.NoError(t, err)
	sim, err := New(s, start)
	require.NoError(t, err)
	return sim
}

// pageAt returns the page of a replica once the simulation has run for d.
func pageAt(t *testing.T, sim *Simulation, replica int, d time.Duration) string {
	t.Helper()
	sim.AdvanceTo(d)
	body, status := sim.Engines()[replica].AppendPage(nil)
	require.Equal(t, http.StatusOK, status)
	return string(body)
}

func parsePage(t *testing.T, page string) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(page))
	require.NoError(t, err)
	return families
}

func labelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range m.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}

// value sums a family's gauges and counters that carry the given label pairs.
func value(t *testing.T, families map[string]*dto.MetricFamily, name string, pairs ...string) float64 {
	t.Helper()
	require.Contains(t, families, name)
	sum, found := 0.0, false
	for _, m := range families[name].GetMetric() {
		labels, match := labelsOf(m), true
		for i := 0; i < len(pairs); i += 2 {
			match = match && labels[pairs[i]] == pairs[i+1]
		}
		if match {
			found = true
			sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	require.True(t, found, "%s %v", name, pairs)
	return sum
}

func theHistogram(t *testing.T, families map[string]*dto.MetricFamily, name string) *dto.Histogram {
	t.Helper()
	require.Contains(t, families, name)
	require.Len(t, families[name].GetMetric(), 1, name)
	return families[name].GetMetric()[0].GetHistogram()
}

func boundsOf(h *dto.Histogram) []float64 {
	var bounds []float64
	for _, b := range h.GetBucket() {
		if !math.IsInf(b.GetUpperBound(), 1) {
			bounds = append(bounds, b.GetUpperBound())
		}
	}
	return bounds
}

// The tables below are written from the engines' documentation, not from the
// code under test.
var (
	wantTTFT   = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	wantITL    = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	wantREQ    = []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	wantTokens = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000}
	wantStep   = []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
)

var documentedHistograms = map[string][]float64{
	"vllm:request_prompt_tokens":                 wantTokens,
	"vllm:request_generation_tokens":             wantTokens,
	"vllm:request_max_num_generation_tokens":     wantTokens,
	"vllm:request_params_max_tokens":             wantTokens,
	"vllm:request_prefill_kv_computed_tokens":    wantTokens,
	"vllm:request_params_n":                      {1, 2, 5, 10, 20},
	"vllm:iteration_tokens_total":                wantStep,
	"vllm:time_to_first_token_seconds":           wantTTFT,
	"vllm:inter_token_latency_seconds":           wantITL,
	"vllm:request_time_per_output_token_seconds": wantITL,
	"vllm:e2e_request_latency_seconds":           wantREQ,
	"vllm:request_queue_time_seconds":            wantREQ,
	"vllm:request_inference_time_seconds":        wantREQ,
	"vllm:request_prefill_time_seconds":          wantREQ,
	"vllm:request_decode_time_seconds":           wantREQ,
}

// documentedScalars maps the other families to their type and to the label that
// tells their series apart, with its values.
var documentedScalars = map[string][]string{
	"vllm:num_requests_running":                {"gauge"},
	"vllm:num_requests_waiting":                {"gauge"},
	"vllm:num_requests_waiting_by_reason":      {"gauge", "reason", "capacity", "deferred"},
	"vllm:kv_cache_usage_perc":                 {"gauge"},
	"vllm:engine_sleep_state":                  {"gauge", "sleep_state", "awake", "weights_offloaded", "discard_all"},
	"vllm:prefix_cache_queries_total":          {"counter"},
	"vllm:prefix_cache_hits_total":             {"counter"},
	"vllm:external_prefix_cache_queries_total": {"counter"},
	"vllm:external_prefix_cache_hits_total":    {"counter"},
	"vllm:mm_cache_queries_total":              {"counter"},
	"vllm:mm_cache_hits_total":                 {"counter"},
	"vllm:num_preemptions_total":               {"counter"},
	"vllm:prompt_tokens_total":                 {"counter"},
	"vllm:prompt_tokens_by_source_total":       {"counter", "source", "local_compute", "local_cache_hit", "external_kv_transfer"},
	"vllm:prompt_tokens_cached_total":          {"counter"},
	"vllm:generation_tokens_total":             {"counter"},
	"vllm:request_success_total":               {"counter", "finished_reason", "stop", "length", "abort", "error", "repetition"},
	"vllm:estimated_flops_per_gpu_total":       {"counter"},
	"vllm:estimated_read_bytes_per_gpu_total":  {"counter"},
	"vllm:estimated_write_bytes_per_gpu_total": {"counter"},
}

func TestVLLMPage(t *testing.T) {
	families := parsePage(t, pageAt(t, simulate(t, oneVLLM), 0, 30*time.Second))
	for name, bounds := range documentedHistograms {
		h := theHistogram(t, families, name)
		assert.Equal(t, "HISTOGRAM", families[name].GetType().String(), name)
		assert.Equal(t, bounds, boundsOf(h), name)
		assert.Equal(t, map[string]string{"engine": "0", "model_name": "qwen3-8b"}, labelsOf(families[name].GetMetric()[0]), name)
		assert.InDelta(t, float64(start.Unix()), value(t, families, name+"_created"), 3600, name)
		assert.Equal(t, "GAUGE", families[name+"_created"].GetType().String())
	}
	for name, want := range documentedScalars {
		require.Contains(t, families, name)
		assert.Equal(t, want[0], strings.ToLower(families[name].GetType().String()), name)
		var values []string
		for _, m := range families[name].GetMetric() {
			labels := labelsOf(m)
			assert.Equal(t, "0", labels["engine"], name)
			assert.Equal(t, "qwen3-8b", labels["model_name"], name)
			if len(want) > 1 {
				values = append(values, labels[want[1]])
			}
		}
		assert.Equal(t, slices.Clone(want[min(len(want), 2):]), append([]string{}, values...), name)
		if want[0] == "counter" {
			assert.Contains(t, families, strings.TrimSuffix(name, "_total")+"_created")
		}
	}
	assert.Equal(t, "16", labelsOf(families["vllm:cache_config_info"].GetMetric()[0])["block_size"])
}

func TestVLLMPageRuntimeFamilies(t *testing.T) {
	sim := simulate(t, oneVLLM)
	page := pageAt(t, sim, 0, time.Millisecond)
	assert.Contains(t, page, "# TYPE http_requests_total counter\n", "declared, and absent until the first request")
	assert.NotContains(t, page, "\nhttp_requests_total{")

	families := parsePage(t, pageAt(t, sim, 0, 30*time.Second))
	for name, kind := range map[string]string{
		"python_gc_objects_collected_total": "COUNTER", "python_gc_collections_total": "COUNTER", "python_info": "GAUGE",
		"process_virtual_memory_bytes": "GAUGE", "process_resident_memory_bytes": "GAUGE", "process_start_time_seconds": "GAUGE",
		"process_cpu_seconds_total": "COUNTER", "process_open_fds": "GAUGE", "process_max_fds": "GAUGE",
		"http_requests_total": "COUNTER", "http_request_size_bytes": "SUMMARY", "http_response_size_bytes": "SUMMARY",
		"http_request_duration_highr_seconds": "HISTOGRAM", "http_request_duration_seconds": "HISTOGRAM",
	} {
		require.Contains(t, families, name)
		assert.Equal(t, kind, families[name].GetType().String(), name)
	}
	assert.NotContains(t, families, "process_cpu_seconds_created", "the client writes no twin for its own families")
	assert.Equal(t, value(t, families, "vllm:request_success_total"), value(t, families, "http_requests_total", "handler", "/v1/chat/completions", "method", "POST", "status", "2xx"))
	assert.Less(t, value(t, families, "process_start_time_seconds"), value(t, families, "vllm:time_to_first_token_seconds_created"))
}

func TestSGLangPage(t *testing.T) {
	families := parsePage(t, pageAt(t, simulate(t, oneSGLang), 0, 30*time.Second))
	scheduler := map[string]string{"model_name": "llama-3.3-70b", "engine_type": "unified", "tp_rank": "0", "pp_rank": "0", "moe_ep_rank": "0"}
	tokenizer := map[string]string{"model_name": "llama-3.3-70b", "engine_type": "unified"}
	streaming := map[string]string{"model_name": "llama-3.3-70b", "engine_type": "unified", "is_streaming": "true"}
	for name, want := range map[string]map[string]string{
		"sglang:num_running_reqs": scheduler, "sglang:num_queue_reqs": scheduler, "sglang:token_usage": scheduler,
		"sglang:full_token_usage": scheduler, "sglang:kv_used_tokens": scheduler, "sglang:max_total_num_tokens": scheduler,
		"sglang:gen_throughput": scheduler, "sglang:cache_hit_rate": scheduler, "sglang:queue_time_seconds": scheduler,
		"sglang:num_retracted_reqs": scheduler, "sglang:num_paused_reqs": scheduler, "sglang:num_grammar_queue_reqs": scheduler,
		"sglang:inter_token_latency_seconds": tokenizer, "sglang:prompt_tokens_histogram": tokenizer,
		"sglang:prompt_tokens_total": streaming, "sglang:generation_tokens_total": streaming, "sglang:num_requests_total": streaming,
		"sglang:time_to_first_token_seconds": streaming, "sglang:e2e_request_latency_seconds": streaming,
	} {
		require.Contains(t, families, name)
		assert.Equal(t, want, labelsOf(families[name].GetMetric()[0]), name)
	}
	assert.Equal(t, []float64{.1, .2, .4, .6, .8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400},
		boundsOf(theHistogram(t, families, "sglang:time_to_first_token_seconds")))
	assert.Equal(t, []float64{.002, .004, .006, .008, .01, .015, .02, .025, .03, .035, .04, .06, .08, .1, .2, .4, .6, .8, 1, 2, 4, 6, 8},
		boundsOf(theHistogram(t, families, "sglang:inter_token_latency_seconds")))
	assert.Len(t, boundsOf(theHistogram(t, families, "sglang:queue_time_seconds")), 40)
	stages := boundsOf(theHistogram(t, families, "sglang:per_stage_req_latency_seconds"))
	assert.Len(t, stages, 30)
	assert.InEpsilon(t, 0.00162, stages[1], 1e-12)
	for name := range families {
		assert.NotRegexp(t, "_created$|^process_|^python_", name, "several processes share the page")
	}
	assert.NotContains(t, families, "sglang:num_retracted_requests_total", "a counter appears with its first count")
}

func TestSGLangTellsWhereHitsWereFound(t *testing.T) {
	sim := simulate(t, strings.Replace(oneSGLang, "arrivals: {rate: 10}", "prefix_hit_ratio: 0.7, host_hit_share: 0.2, arrivals: {rate: 1}", 1))
	families := parsePage(t, pageAt(t, sim, 0, 2*time.Minute))
	prompt := value(t, families, "sglang:prompt_tokens_total")
	device := value(t, families, "sglang:cached_tokens_total", "cache_source", "device")
	host := value(t, families, "sglang:cached_tokens_total", "cache_source", "host")
	assert.InDelta(t, 0.70, (device+host)/prompt, 0.03)
	assert.InDelta(t, 0.2, host/(device+host), 0.03)
	// The gauge tells of the newest batch alone, and a decode looks nothing up.
	rates := map[bool]int{}
	for at := 2 * time.Minute; at < 3*time.Minute; at += 250 * time.Millisecond {
		rates[value(t, parsePage(t, pageAt(t, sim, 0, at)), "sglang:cache_hit_rate") > 0]++
	}
	assert.Positive(t, rates[true])
	assert.Positive(t, rates[false])

	plain := parsePage(t, pageAt(t, simulate(t, strings.Replace(oneSGLang, "arrivals", "prefix_hit_ratio: 0.7, arrivals", 1)), 0, time.Minute))
	require.Len(t, plain["sglang:cached_tokens_total"].GetMetric(), 1)
	assert.Equal(t, "device", labelsOf(plain["sglang:cached_tokens_total"].GetMetric()[0])["cache_source"])
}

// The page and the engine's own state must tell one story.
func TestPageIsConsistent(t *testing.T) {
	sim := simulate(t, strings.Replace(oneVLLM, "rate: 30", "rate: 120", 1))
	families := parsePage(t, pageAt(t, sim, 1, 60*time.Second))
	for name := range documentedHistograms {
		h := theHistogram(t, families, name)
		below := uint64(0)
		for _, b := range h.GetBucket() {
			assert.GreaterOrEqual(t, b.GetCumulativeCount(), below, name)
			below = b.GetCumulativeCount()
		}
		assert.Equal(t, h.GetSampleCount(), below, name)
	}
	count := func(name string) float64 { return float64(theHistogram(t, families, name).GetSampleCount()) }
	sum := func(name string) float64 { return theHistogram(t, families, name).GetSampleSum() }
	running := value(t, families, "vllm:num_requests_running")
	finished := value(t, families, "vllm:request_success_total")
	assert.Equal(t, finished, count("vllm:e2e_request_latency_seconds"))
	assert.LessOrEqual(t, count("vllm:time_to_first_token_seconds"), finished+running)
	assert.InEpsilon(t, sum("vllm:e2e_request_latency_seconds"), sum("vllm:request_queue_time_seconds")+sum("vllm:request_inference_time_seconds"), 1e-9)
	assert.InEpsilon(t, sum("vllm:request_inference_time_seconds"), sum("vllm:request_prefill_time_seconds")+sum("vllm:request_decode_time_seconds"), 1e-9)
	assert.Equal(t, value(t, families, "vllm:prompt_tokens_total"), value(t, families, "vllm:prompt_tokens_by_source_total"))
	assert.Equal(t, value(t, families, "vllm:prompt_tokens_cached_total"), value(t, families, "vllm:prompt_tokens_by_source_total", "source", "local_cache_hit"))
	assert.Equal(t, value(t, families, "vllm:num_requests_waiting"), value(t, families, "vllm:num_requests_waiting_by_reason"))
	// Every token is a first one or has an inter-token latency.
	assert.Equal(t, value(t, families, "vllm:generation_tokens_total"), count("vllm:time_to_first_token_seconds")+count("vllm:inter_token_latency_seconds"))
	usage := value(t, families, "vllm:kv_cache_usage_perc")
	assert.Positive(t, usage)
	assert.LessOrEqual(t, usage, 1.0)
}

func TestSameSeedSamePages(t *testing.T) {
	for _, scenario := range []string{oneVLLM, oneSGLang, oneTensorRTLLM} {
		first, second := simulate(t, scenario), simulate(t, scenario)
		other := simulate(t, strings.Replace(scenario, "seed: 1", "seed: 2", 1))
		// Another rhythm of looking changes nothing.
		for i := range 20 {
			first.AdvanceTo(time.Duration(i) * time.Second)
		}
		assert.Equal(t, pageAt(t, first, 1, 20*time.Second), pageAt(t, second, 1, 20*time.Second))
		assert.NotEqual(t, pageAt(t, first, 1, 20*time.Second), pageAt(t, other, 1, 20*time.Second))
	}
}

// The texts are lines of real pages that the Python client wrote.
func TestNumbersAreWrittenAsThePythonClientDoes(t *testing.T) {
	for text, v := range map[string]float64{
		"0.0": 0, "1.0": 1, "281600.0": 281600, "999999.0": 999999, "1.902605e+06": 1902605, "7.557572e+06": 7557572,
		"2.7378753536e+010": 27378753536, "1.616867328e+09": 1616867328, "1.7859228935955424e+09": 1785922893.5955424,
		"673.7593033313751": 673.7593033313751, "0.007507552643049313": 0.007507552643049313, "2.3518979474117756e+06": 2351897.9474117756,
		"1e+06": 1e6, "76.22": 76.22, "5e-05": 0.00005, "1e+16": 1e16, "+Inf": math.Inf(1), "-1.0": -1, "NaN": math.NaN(),
	} {
		assert.Equal(t, text, string(appendNumber(nil, v)))
	}
	assert.Equal(t, "le=0.5", string(appendNumber([]byte("le="), .5)))
}

func TestLabelValuesAreEscaped(t *testing.T) {
	quoted := `vllm:x{model_name="a\\b\"c\nd"} `
	assert.Equal(t, quoted, linePrefix("vllm:x", []string{"model_name", "a\\b\"c\nd"}))
	var page bytes.Buffer
	page.WriteString(quoted + "1.0\n")
	assert.Contains(t, parsePage(t, page.String()), "vllm:x")
}
