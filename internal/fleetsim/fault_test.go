// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const ttftFamily = "vllm:time_to_first_token_seconds"

// withFault is oneVLLM with a fault at replica 1.
func withFault(t *testing.T, fault string) *Simulation {
	t.Helper()
	return simulate(t, oneVLLM+"faults: [{replicas: [1], "+fault+"}]\n")
}

func TestAFaultLeavesOtherReplicasAlone(t *testing.T) {
	clean := simulate(t, oneVLLM)
	want0, want2 := pageAt(t, clean, 0, time.Minute), pageAt(t, clean, 2, time.Minute)
	for _, fault := range []string{
		"kind: slow, factor: 1.8", "kind: hung, from: 10s, to: 20s", "kind: restart, from: 10s, to: 20s",
		"kind: stale_series, series: " + ttftFamily, "kind: new_bounds, series: " + ttftFamily + ", bounds: [1, 2]",
	} {
		sim := withFault(t, fault)
		assert.Equal(t, want0, pageAt(t, sim, 0, time.Minute), fault)
		assert.Equal(t, want2, pageAt(t, sim, 2, time.Minute), fault)
		assert.NotEqual(t, pageAt(t, clean, 1, time.Minute), pageAt(t, sim, 1, time.Minute), fault)
	}
}

// itlMean is the mean inter-token latency of what happened between two pages.
func itlMean(t *testing.T, before, after string) float64 {
	t.Helper()
	a := theHistogram(t, parsePage(t, before), "vllm:inter_token_latency_seconds")
	b := theHistogram(t, parsePage(t, after), "vllm:inter_token_latency_seconds")
	return (b.GetSampleSum() - a.GetSampleSum()) / float64(b.GetSampleCount()-a.GetSampleCount())
}

func TestSlow(t *testing.T) {
	sim, clean := withFault(t, "kind: slow, factor: 1.8, from: 60s, to: 120s"), simulate(t, oneVLLM)
	ratio := func(from, to time.Duration) float64 {
		return itlMean(t, pageAt(t, sim, 1, from), pageAt(t, sim, 1, to)) / itlMean(t, pageAt(t, clean, 1, from), pageAt(t, clean, 1, to))
	}
	assert.InDelta(t, 1, ratio(0, 60*time.Second), 1e-9)
	assert.Greater(t, ratio(61*time.Second, 120*time.Second), 1.75, "1.8, and more for the batch that builds up")
	assert.InDelta(t, 1, ratio(130*time.Second, 180*time.Second), 0.05)
}

func TestHung(t *testing.T) {
	sim := withFault(t, "kind: hung, from: 30s, to: 60s")
	before := parsePage(t, pageAt(t, sim, 1, 31*time.Second))
	hung := parsePage(t, pageAt(t, sim, 1, 59*time.Second))
	assert.Equal(t, value(t, before, "vllm:generation_tokens_total"), value(t, hung, "vllm:generation_tokens_total"), "no tokens")
	assert.Greater(t, value(t, hung, "vllm:num_requests_waiting"), value(t, before, "vllm:num_requests_waiting")+100, "requests are accepted")
	after := parsePage(t, pageAt(t, sim, 1, 120*time.Second))
	assert.Greater(t, value(t, after, "vllm:generation_tokens_total"), value(t, hung, "vllm:generation_tokens_total"))
	itls := theHistogram(t, after, "vllm:inter_token_latency_seconds").GetBucket()
	assert.Greater(t, itls[len(itls)-1].GetCumulativeCount(), itls[16].GetCumulativeCount(), "tokens that waited more than 20 s")
}

func TestRestart(t *testing.T) {
	sim := withFault(t, "kind: restart, from: 30s, to: 45s")
	before := parsePage(t, pageAt(t, sim, 1, 29*time.Second))
	sim.AdvanceTo(40 * time.Second)
	_, status := sim.Engines()[1].AppendPage(nil)
	assert.Equal(t, NoAnswer, status, "down")
	after := parsePage(t, pageAt(t, sim, 1, 50*time.Second))
	const began = "process_start_time_seconds"
	assert.Less(t, value(t, before, began), float64(start.Unix()))
	assert.Equal(t, float64(start.Unix()+30), value(t, after, began))
	assert.Equal(t, float64(start.Unix()+45), value(t, after, ttftFamily+"_created"))
	count := theHistogram(t, after, ttftFamily).GetSampleCount()
	assert.Positive(t, count)
	assert.Less(t, count, theHistogram(t, before, ttftFamily).GetSampleCount())
}

func TestRestartWithoutDowntime(t *testing.T) {
	sim := withFault(t, "kind: restart, from: 30s")
	families := parsePage(t, pageAt(t, sim, 1, 30*time.Second))
	assert.Zero(t, value(t, families, "vllm:generation_tokens_total"))
	assert.Zero(t, value(t, families, "vllm:num_requests_running"))
}

func TestGap(t *testing.T) {
	for fault, want := range map[string]int{"kind: gap, from: 10s, to: 20s": NoAnswer, "kind: gap, from: 10s, to: 20s, status: 503": http.StatusServiceUnavailable} {
		sim, clean := withFault(t, fault), simulate(t, oneVLLM)
		pageAt(t, sim, 1, 9*time.Second)
		sim.AdvanceTo(15 * time.Second)
		body, status := sim.Engines()[1].AppendPage(nil)
		assert.Equal(t, want, status)
		assert.Empty(t, body)
		assert.Equal(t, pageAt(t, clean, 1, 21*time.Second), pageAt(t, sim, 1, 21*time.Second), "the engine worked on")
	}
}

func TestEverySecondScrapeTimesOut(t *testing.T) {
	sim, clean := withFault(t, "kind: gap, mode: timeout, every: 2, from: 10s, to: 20s"), simulate(t, oneVLLM)
	scrape := func(at time.Duration) int {
		sim.AdvanceTo(at)
		_, status := sim.Targets()[1].AppendPage(nil)
		return status
	}
	var statuses []int
	for at := 5 * time.Second; at < 25*time.Second; at += 2 * time.Second {
		statuses = append(statuses, scrape(at))
	}
	assert.Equal(t, []int{200, 200, 200, 200, TimedOut, 200, TimedOut, 200, 200, 200}, statuses)
	assert.Equal(t, pageAt(t, clean, 1, 25*time.Second), pageAt(t, sim, 1, 25*time.Second))
}

func TestErrors(t *testing.T) {
	sim := withFault(t, "kind: errors, share: 0.3, from: 60s, to: 360s")
	const ended, reason = "vllm:request_success_total", "finished_reason"
	before := parsePage(t, pageAt(t, sim, 1, 59*time.Second))
	assert.Zero(t, value(t, before, ended, reason, "error"))
	after := parsePage(t, pageAt(t, sim, 1, 380*time.Second))
	failed := value(t, after, ended, reason, "error")
	assert.InEpsilon(t, .3*3000, failed, .08, "of ten requests a second for five minutes")
	assert.Equal(t, failed, value(t, after, "http_requests_total", "status", "5xx"))
	firsts := float64(theHistogram(t, after, ttftFamily).GetSampleCount())
	running := value(t, after, "vllm:num_requests_running")
	assert.InDelta(t, value(t, after, ended)-failed+running, firsts, 1, "no first token of those that fail")
	assert.Equal(t, value(t, after, ended), float64(theHistogram(t, after, "vllm:e2e_request_latency_seconds").GetSampleCount()))
	last := parsePage(t, pageAt(t, sim, 1, 500*time.Second))
	assert.Equal(t, failed, value(t, last, ended, reason, "error"), "it is over")
}

func TestErrorsOfOtherEngines(t *testing.T) {
	for scenario, family := range map[string]string{oneSGLang: "sglang:num_aborted_requests_total", oneTensorRTLLM: "trtllm_request_error_total"} {
		assert.NotContains(t, parsePage(t, pageAt(t, simulate(t, scenario), 0, time.Minute)), family, "appears with its first count")
		families := parsePage(t, pageAt(t, simulate(t, scenario+"faults: [{kind: errors}]\n"), 0, time.Minute))
		assert.InEpsilon(t, 300, value(t, families, family), .2, "five a second")
	}
}

func TestColdCacheFillsAgain(t *testing.T) {
	for mode, restarts := range map[string]bool{"restart": true, "flush": false} {
		sim := withFault(t, "kind: cold_cache, from: 60s, mode: "+mode)
		hits := func(from, to time.Duration) float64 {
			sim.AdvanceTo(from)
			a := sim.Engines()[1].Snapshot()
			sim.AdvanceTo(to)
			b := sim.Engines()[1].Snapshot()
			return (b.PrefixHits - a.PrefixHits) / (b.PrefixQueries - a.PrefixQueries)
		}
		const full = .25 - 8/512. // pages of 16 tokens are found whole or not at all
		assert.InDelta(t, full, hits(0, 59*time.Second), .01)
		assert.InDelta(t, .25*150/600-8/512., hits(60*time.Second, 360*time.Second), .25*.5, mode)
		assert.Less(t, hits(361*time.Second, 420*time.Second), full-.05, "still filling")
		assert.InDelta(t, full, hits(660*time.Second, 720*time.Second), .01, mode)
		began := value(t, parsePage(t, pageAt(t, sim, 1, 720*time.Second)), "process_start_time_seconds")
		assert.Equal(t, restarts, began == float64(start.Unix()+60), mode)
	}
}

func TestNewRevision(t *testing.T) {
	quiet := strings.Replace(oneVLLM, "rate: 30", "rate: 3", 1) // a busy batch would grow when steps get longer
	sim := simulate(t, strings.Replace(quiet, "replicas: 3", "replicas: 3, revisions: [old]", 1)+
		"faults: [{kind: new_revision, replicas: [1], revision: new, factor: 1.6, from: 60s, to: 120s}]\n")
	revisions := func(at time.Duration) (all []string) {
		sim.AdvanceTo(at)
		for _, target := range sim.Targets() {
			all = append(all, target.Labels()["model_revision"])
		}
		return all
	}
	began := func(at time.Duration) float64 {
		return value(t, parsePage(t, pageAt(t, sim, 1, at)), "process_start_time_seconds")
	}
	assert.Equal(t, []string{"old", "old", "old"}, revisions(59*time.Second))
	assert.Equal(t, []string{"old", "new", "old"}, revisions(61*time.Second))
	assert.Equal(t, float64(start.Unix()+60), began(62*time.Second))
	slow := itlMean(t, pageAt(t, sim, 1, 62*time.Second), pageAt(t, sim, 1, 119*time.Second))
	assert.Equal(t, []string{"old", "old", "old"}, revisions(121*time.Second))
	assert.Equal(t, float64(start.Unix()+120), began(122*time.Second))
	assert.InDelta(t, 1.6, slow/itlMean(t, pageAt(t, sim, 1, 122*time.Second), pageAt(t, sim, 1, 180*time.Second)), .1)
}

func TestANodesFaultStrikesAllFleets(t *testing.T) {
	sim := simulate(t, twoNodes+"faults: [{kind: hung, node: gpu-1, from: 60s}]\n")
	var struck []string
	for _, fault := range sim.keyFaults() {
		struck = append(struck, fault.Fleet+" "+fault.Replica)
	}
	assert.Equal(t, []string{"chat chat-1", "code code-0"}, struck)
	sim.AdvanceTo(90 * time.Second)
	for _, e := range sim.Engines() {
		assert.Equal(t, e.Node() == "gpu-1", e.sim.hung > 0, e.Name())
	}
}

func TestStaleSeries(t *testing.T) {
	vanish := withFault(t, "kind: stale_series, series: "+ttftFamily+", from: 10s, to: 20s")
	assert.NotContains(t, parsePage(t, pageAt(t, vanish, 1, 15*time.Second)), ttftFamily)
	assert.Contains(t, parsePage(t, pageAt(t, vanish, 1, 15*time.Second)), "vllm:inter_token_latency_seconds")
	assert.Equal(t, pageAt(t, simulate(t, oneVLLM), 1, 25*time.Second), pageAt(t, vanish, 1, 25*time.Second))

	freeze := withFault(t, "kind: stale_series, mode: freeze, series: "+ttftFamily+", from: 10s")
	frozen := theHistogram(t, parsePage(t, pageAt(t, freeze, 1, 10*time.Second)), ttftFamily)
	later := parsePage(t, pageAt(t, freeze, 1, 40*time.Second))
	assert.Positive(t, frozen.GetSampleCount())
	assert.Equal(t, frozen.GetSampleCount(), theHistogram(t, later, ttftFamily).GetSampleCount())
	assert.Greater(t, theHistogram(t, later, "vllm:e2e_request_latency_seconds").GetSampleCount(), frozen.GetSampleCount())
}

func TestNewBounds(t *testing.T) {
	sim := withFault(t, "kind: new_bounds, series: "+ttftFamily+", bounds: [0.01, 0.1, 1, 10], from: 10s")
	assert.Equal(t, wantTTFT, boundsOf(theHistogram(t, parsePage(t, pageAt(t, sim, 1, 9*time.Second)), ttftFamily)))
	families := parsePage(t, pageAt(t, sim, 1, 30*time.Second))
	h := theHistogram(t, families, ttftFamily)
	assert.Equal(t, []float64{.01, .1, 1, 10}, boundsOf(h))
	assert.Positive(t, h.GetSampleCount())
	assert.Equal(t, wantITL, boundsOf(theHistogram(t, families, "vllm:inter_token_latency_seconds")))
	assert.Equal(t, float64(start.Unix()+10), value(t, families, "process_start_time_seconds"), "an upgrade restarts")
}

func TestFaultsOverlap(t *testing.T) {
	sim := simulate(t, oneVLLM+`
faults:
  - {kind: slow, replicas: [1], factor: 2, from: 10s, to: 60s}
  - {kind: slow, replicas: [1], factor: 1.5, from: 20s, to: 40s}
  - {kind: hung, replicas: [1], from: 61s, to: 70s}
  - {kind: hung, replicas: [1], from: 65s, to: 75s}
  - {kind: restart, replicas: [1], from: 66s, to: 68s}
`)
	sim.AdvanceTo(30 * time.Second)
	assert.Equal(t, []float64{2, 1.5}, sim.engines[1].sim.factors)
	sim.AdvanceTo(50 * time.Second)
	assert.Equal(t, []float64{2}, sim.engines[1].sim.factors)
	at72 := parsePage(t, pageAt(t, sim, 1, 72*time.Second))
	assert.Zero(t, value(t, at72, "vllm:generation_tokens_total"), "restarted, and still hung")
	assert.Positive(t, value(t, at72, "vllm:num_requests_waiting"))
	assert.Positive(t, value(t, parsePage(t, pageAt(t, sim, 1, 90*time.Second)), "vllm:generation_tokens_total"))
}

func TestAnswerKey(t *testing.T) {
	sim := simulate(t, oneVLLM+`
faults:
  - {kind: hung, replicas: [2], from: 60s, to: 90s}
  - {kind: slow, replicas: [0, 1], factor: 1.8, from: 30s}
`)
	var out bytes.Buffer
	require.NoError(t, sim.WriteAnswerKey(&out))
	lines := bufio.NewScanner(&out)
	next := func(v any) {
		require.True(t, lines.Scan())
		require.NoError(t, json.Unmarshal(lines.Bytes(), v))
	}
	var fleets KeyFleets
	next(&fleets)
	assert.Equal(t, KeyFleets{Seed: 1, Start: start, Fleets: []KeyFleet{
		{Name: "qwen", Engine: "vllm", ModelName: "qwen3-8b", Replicas: []string{"qwen-0", "qwen-1", "qwen-2"}},
	}}, fleets)
	until := start.Add(90 * time.Second)
	for _, want := range []KeyFault{
		{Time: start.Add(30 * time.Second), Fleet: "qwen", Replica: "qwen-0", Kind: Slow, Factor: 1.8},
		{Time: start.Add(30 * time.Second), Fleet: "qwen", Replica: "qwen-1", Kind: Slow, Factor: 1.8},
		{Time: start.Add(60 * time.Second), Fleet: "qwen", Replica: "qwen-2", Kind: Hung, Until: &until},
	} {
		var got KeyFault
		next(&got)
		assert.Equal(t, want, got)
	}
	assert.False(t, lines.Scan())
}

func TestScenarioMistakesNameKeyAndRemedy(t *testing.T) {
	fleet := func(s string) string {
		return "fleets: [{name: q, engine: vllm, model_name: m, arrivals: {rate: 1}, " + s + "}]"
	}
	fault := func(s string) string { return fleet("replicas: 2") + "\nfaults: [{" + s + "}]" }
	for scenario, want := range map[string]string{
		"":                    "fleets: is empty: name at least one",
		fleet("replica: 3"):   "fleets[0].replica: there is no such key",
		fleet("replicas: -1"): "fleets[0].replicas: is -1: write 1 or more",
		fleet("router: wise"): `fleets[0].router: is "wise": write one of round_robin, random, least_loaded`,
		"fleets: [{engine: gpt, model_name: m, arrivals: {rate: 1}}]":                                  `fleets[0].engine: is "gpt": write one of vllm, sglang, tensorrt_llm`,
		"fleets: [{engine: vllm, arrivals: {rate: 1}}]":                                                "fleets[0].model_name: is missing",
		"fleets: [{engine: vllm, model_name: m}]":                                                      "fleets[0].arrivals.rate: is 0: write the requests a second",
		"fleets: [{engine: vllm, model_name: m, arrivals: {rate: .inf}}]":                              "fleets[0].arrivals.rate: is +Inf",
		"fleets: [{engine: vllm, model_name: m, arrivals: {rate: .nan}}]":                              "fleets[0].arrivals.rate: is NaN",
		"fleets: [{engine: vllm, model_name: m, arrivals: {process: trace, format: azure}}]":           "fleets[0].arrivals.file: is missing",
		"fleets: [{engine: vllm, model_name: m, arrivals: {process: trace, file: x}}]":                 "fleets[0].arrivals.format: is",
		"fleets: [{engine: vllm, model_name: m, arrivals: {rate: 1, file: x}}]":                        "only read with process: trace",
		"fleets: [{engine: vllm, model_name: m, arrivals: {rate: 1, process: gamma, burstiness: -1}}]": "fleets[0].arrivals.burstiness: is -1",
		fleet("latency: {itl_base: 300}"):                                                              "a duration with its unit",
		fleet("latency: {itl_base: -5ms}"):                                                             "must not be negative",
		fleet("latency: {jitter: -1}"):                                                                 "fleets[0].latency.jitter: is -1: write 0 or more",
		fleet("latency: {distribution: normal}"):                                                       "fleets[0].latency.distribution: is",
		fleet("limits: {kv_cache_tokens: 10}"):                                                         "at least max_model_len (32768)",
		fleet("limits: {max_num_batched_tokens: 100}"):                                                 "more than max_num_seqs (256)",
		fleet("version: v0.7"):                                                                         `fleets[0].version: is "v0.7": write one of current, v0.11, v0.9.2, v0.6, ray, rust`,
		fleet("versions: [v0.6, dynamo]"):                                                              `fleets[0].versions[1]: is "dynamo": write one of current`,
		fleet("replicas_per_node: 2"):                                                                  "fleets[0].replicas_per_node: is only read with version: ray",
		fleet("version: ray, replicas_per_node: -2"):                                                   "fleets[0].replicas_per_node: is -2: write 1 or more",
		fleet("host_hit_share: 0.2"):                                                                   "fleets[0].host_hit_share: is only read with engine: sglang or tensorrt_llm",
		"fleets: [{engine: sglang, model_name: m, arrivals: {rate: 1}, host_hit_share: 1}]":            "fleets[0].host_hit_share: is 1: write 0 or more and less than 1",
		fault("kind: new_bounds, bounds: [1], series: ray_vllm_time_to_first_token_seconds"):           "faults[0].series: is",
		fleet("prefix_hit_ratio: 1"):                                                                   "fleets[0].prefix_hit_ratio: is 1",
		fleet("prompt_tokens: {mean: 0.5}"):                                                            "fleets[0].prompt_tokens.mean: is 0.5",
		fault("kind: tired"):                                                                           `faults[0].kind: is "tired": write one of slow, hung, errors, restart`,
		fault("kind: slow"):                                                                            "faults[0].factor: is 0: write how many times",
		fault("kind: hung, fleet: z"):                                                                  `faults[0].fleet: is "z": write the name of one of the fleets`,
		fault("kind: hung, replicas: [2]"):                                                             "holds 2: fleet q has replicas 0 to 1",
		fault("kind: hung, from: 9s, to: 3s"):                                                          "faults[0].to: is 3s: write a time after from (9s)",
		fleet("nodes: [a, '']"):                                                                        "fleets[0].nodes: holds an empty word",
		fault("kind: hung, pick: 3"):                                                                   "faults[0].pick: is 3: fleet q has 2 replicas",
		fault("kind: hung, pick: 1, replicas: [0]"):                                                    "faults[0]: write one of replicas, pick and node",
		fault("kind: hung, node: x"):                                                                   `faults[0].node: is "x": write one of the nodes`,
		fault("kind: hung, mode: freeze"):                                                              "faults[0].mode: is only read with kind: stale_series",
		fault("kind: errors, share: 1.5"):                                                              "faults[0].share: is 1.5: write more than 0 and at most 1",
		fault("kind: overload, replicas: [0]"):                                                         "faults[0].factor: is 0: write how many times as many requests",
		fault("kind: long_prompts"):                                                                    "faults[0].replicas: are all of fleet q",
		fault("kind: overload, factor: 2, pick: 2"):                                                    "faults[0].replicas: are all of fleet q",
		fault("kind: cold_cache"):                                                                      "faults[0].kind: strikes at a cache that never hits",
		fault("kind: throttle, factor: 2"):                                                             "faults[0].kind: shows on the page of a node's GPUs: give fleet q its nodes",
		fault("kind: throttle, factor: 0.9"):                                                           "faults[0].factor: is 0.9: write how many times as long a step takes at the lower clock",
		fault("kind: xid"):                                                                             "faults[0].code: is 0",
		fault("kind: link_errors, mode: usb, rate: 1"):                                                 `faults[0].mode: is "usb": write one of pcie, nvlink`,
		fault("kind: link_errors"):                                                                     "faults[0].rate: is 0",
		fault("kind: new_revision"):                                                                    "faults[0].revision: is missing",
		fault("kind: gap, every: -1"):                                                                  "faults[0].every: is -1",
		"fleets: [{engine: vllm, model_name: m, arrivals: {rate: 1, requests: -1}}]":                   "fleets[0].arrivals.requests: is -1",
		fault("kind: gap, status: 999"):                                                                "faults[0].status: is 999",
		fault("kind: stale_series, series: x"):                                                         `faults[0].series: is "x": write a family of a vllm page, version current, such as vllm:time_to_first_token_seconds`,
		fault("kind: stale_series, series: vllm:gpu_cache_usage_perc"):                                 "write a family of a vllm page",
		fault("kind: stale_series, mode: x, series: vllm:num_requests_running"):                        "faults[0].mode: is",
		fault("kind: new_bounds, bounds: [1], series: vllm:num_requests_running"):                      "vllm:num_requests_running is no histogram",
		fault("kind: new_bounds, bounds: [2, 1], series: vllm:iteration_tokens_total"):                 "faults[0].bounds: is [2 1]: write the new upper bounds in rising order",
	} {
		_, err := Parse([]byte(scenario))
		require.ErrorContains(t, err, want, scenario)
	}
	_, err := Parse([]byte(oneVLLM + "  - {name: qwen, engine: sglang, model_name: n, arrivals: {rate: 1}}\n"))
	require.ErrorContains(t, err, `fleets[1].name: "qwen" is taken`)
	_, err = Load("missing.yaml")
	require.ErrorContains(t, err, "missing.yaml")
}
