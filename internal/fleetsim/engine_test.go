// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// exact is a replica without any noise: a = 10 ms, b = 1 ms, g = 100 us.
const exact = `
fleets:
  - name: qwen
    engine: vllm
    model_name: m
    prompt_tokens: {mean: 100, cv: 0}
    output_tokens: {mean: 11, cv: 0, max: 50}
    limits: {max_num_seqs: 4, max_num_batched_tokens: 64, max_model_len: 200, kv_cache_tokens: 200}
    latency: {itl_base: 10ms, itl_per_running: 1ms, itl_per_prefill_token: 100us, jitter: 0}
    arrivals: {process: trace, format: mooncake, file: %s}
`

// exactFleet simulates exact with the given arrivals, after edits.
func exactFleet(t *testing.T, edit func(string) string, arrivals ...string) *Simulation {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(arrivals, "\n")), 0o600))
	scenario := fmt.Sprintf(exact, path)
	if edit != nil {
		scenario = edit(scenario)
	}
	return simulate(t, scenario)
}

// ask is a trace line: a request at time 0.
func ask(prompt, output int) string {
	return fmt.Sprintf(`{"timestamp": 0, "input_length": %d, "output_length": %d}`, prompt, output)
}

func TestOneRequestFollowsTheLatencyModel(t *testing.T) {
	sim := exactFleet(t, nil, ask(50, 11))
	sim.AdvanceTo(time.Second)
	s := sim.Engines()[0].Snapshot()
	// Prefill: 10 + 1*1 + 0.1*50 = 16 ms. Then ten steps of 11 ms.
	assert.Equal(t, uint64(1), s.TTFT.Count)
	assert.InEpsilon(t, 0.016, s.TTFT.Sum, 1e-9)
	assert.Equal(t, uint64(10), s.ITL.Count)
	assert.InEpsilon(t, 0.110, s.ITL.Sum, 1e-9)
	assert.Zero(t, s.Running)
	assert.Zero(t, s.KVUsage)
	families := parsePage(t, pageAt(t, sim, 0, time.Second))
	assert.InEpsilon(t, 0.126, theHistogram(t, families, "vllm:e2e_request_latency_seconds").GetSampleSum(), 1e-9)
	assert.InEpsilon(t, 0.011, theHistogram(t, families, "vllm:request_time_per_output_token_seconds").GetSampleSum(), 1e-9)
	assert.Equal(t, 1.0, value(t, families, "vllm:request_success_total", "finished_reason", "stop"))
}

func TestLongPromptsPrefillInChunks(t *testing.T) {
	sim := exactFleet(t, nil, ask(100, 1))
	sim.AdvanceTo(time.Second)
	// 64 tokens, then 36: 10+1+6.4 and 10+1+3.6 ms.
	assert.InEpsilon(t, 0.032, sim.Engines()[0].Snapshot().TTFT.Sum, 1e-9)
}

func TestCachedPromptTokensAreNotPrefilled(t *testing.T) {
	half := func(s string) string {
		return strings.Replace(s, "model_name: m", "model_name: m\n    prefix_hit_ratio: 0.5", 1)
	}
	sim := exactFleet(t, half, ask(64, 1))
	families := parsePage(t, pageAt(t, sim, 0, time.Second))
	assert.InEpsilon(t, 0.0142, theHistogram(t, families, "vllm:time_to_first_token_seconds").GetSampleSum(), 1e-9)
	assert.Equal(t, 64.0, value(t, families, "vllm:prefix_cache_queries_total"))
	assert.Equal(t, 32.0, value(t, families, "vllm:prefix_cache_hits_total"))
}

func TestCurvatureBendsTheBatchTerm(t *testing.T) {
	bent := func(s string) string { return strings.Replace(s, "jitter: 0", "jitter: 0, curvature: 0.4", 1) }
	sim := exactFleet(t, bent, ask(10, 2))
	sim.AdvanceTo(time.Second)
	// One of four places taken: 10 + 1*(1 + 0.4/4) = 11.1 ms.
	assert.InEpsilon(t, 0.0111, sim.Engines()[0].Snapshot().ITL.Sum, 1e-9)
}

func TestWaitingGrowsBeyondTheBatchAndTheCache(t *testing.T) {
	arrivals := make([]string, 6)
	for i := range arrivals {
		arrivals[i] = ask(10, 50)
	}
	sim := exactFleet(t, nil, arrivals...)
	sim.AdvanceTo(200 * time.Millisecond)
	s := sim.Engines()[0].Snapshot()
	assert.Equal(t, 4, s.Running, "max_num_seqs")
	assert.Equal(t, 2, s.Waiting)

	big := exactFleet(t, nil, ask(150, 20), ask(100, 20))
	big.AdvanceTo(100 * time.Millisecond)
	s = big.Engines()[0].Snapshot()
	assert.Equal(t, 1, s.Running, "kv_cache_tokens")
	assert.Equal(t, 1, s.Waiting)
	assert.Greater(t, s.KVUsage, 0.75)
}

func TestAFullCachePreemptsTheNewest(t *testing.T) {
	sim := exactFleet(t, nil, ask(90, 50), ask(90, 50))
	sim.AdvanceTo(150 * time.Millisecond)
	families := parsePage(t, pageAt(t, sim, 0, 500*time.Millisecond))
	assert.Equal(t, 1.0, value(t, families, "vllm:num_preemptions_total"))
	families = parsePage(t, pageAt(t, sim, 0, 5*time.Second))
	assert.Equal(t, 2.0, value(t, families, "vllm:request_success_total", "finished_reason", "length"), "both end in time, at max_tokens")
	assert.Equal(t, 100.0, value(t, families, "vllm:generation_tokens_total"))
	assert.Equal(t, 180.0, value(t, families, "vllm:prompt_tokens_total"), "a second prefill counts once")
	assert.Equal(t, uint64(98), theHistogram(t, families, "vllm:inter_token_latency_seconds").GetSampleCount())
}

func TestLoadMovesLatencyAndQueue(t *testing.T) {
	at := func(rate int) Snapshot {
		sim := simulate(t, strings.Replace(oneVLLM, "rate: 30", fmt.Sprintf("rate: %d", rate), 1))
		sim.AdvanceTo(2 * time.Minute)
		return sim.Engines()[0].Snapshot()
	}
	light, busy, over := at(3), at(60), at(300)
	mean := func(h Histogram) float64 { return h.Sum / float64(h.Count) }
	assert.Greater(t, mean(busy.ITL), 1.2*mean(light.ITL))
	assert.Greater(t, mean(busy.TTFT), mean(light.TTFT))
	assert.Greater(t, busy.Running, light.Running)
	assert.Greater(t, busy.KVUsage, light.KVUsage)
	assert.Less(t, busy.Waiting, 5)
	assert.Greater(t, over.Waiting, 100)
	assert.Greater(t, mean(over.TTFT), 10*mean(busy.TTFT))
}

func TestLittlesLaw(t *testing.T) {
	sim := simulate(t, oneVLLM)
	sim.AdvanceTo(time.Minute)
	total, looks := 0, 0
	for at := time.Minute; at < 5*time.Minute; at += 250 * time.Millisecond {
		sim.AdvanceTo(at)
		s := sim.Engines()[0].Snapshot()
		total += s.Running + s.Waiting
		looks++
	}
	h := theHistogram(t, parsePage(t, pageAt(t, sim, 0, 5*time.Minute)), "vllm:e2e_request_latency_seconds")
	rate := float64(h.GetSampleCount()) / 300
	stay := h.GetSampleSum() / float64(h.GetSampleCount())
	assert.InEpsilon(t, rate*stay, float64(total)/float64(looks), 0.1)
}

func TestRouters(t *testing.T) {
	spread := func(router string) (least, most float64) {
		sim := simulate(t, strings.Replace(oneVLLM, "engine: vllm", "engine: vllm, router: "+router, 1))
		sim.AdvanceTo(time.Minute)
		least, most = math.Inf(1), 0
		for _, e := range sim.Engines() {
			n := float64(e.Snapshot().TTFT.Count)
			least, most = min(least, n), max(most, n)
		}
		return least, most
	}
	least, most := spread("round_robin")
	assert.LessOrEqual(t, most-least, 3.0, "one each in turn")
	least, most = spread("random")
	assert.Greater(t, most-least, 3.0)

	slow := oneVLLM + "faults: [{kind: slow, replicas: [1], factor: 3}]\n"
	sim := simulate(t, strings.Replace(slow, "engine: vllm", "engine: vllm, router: least_loaded", 1))
	sim.AdvanceTo(time.Minute)
	assert.Less(t, sim.Engines()[1].Snapshot().TTFT.Count, sim.Engines()[0].Snapshot().TTFT.Count, "the slow one gets less")
}

func TestPodNoiseIsPermanentAndItsOwn(t *testing.T) {
	scenario := strings.Replace(oneVLLM, "replicas: 3", "replicas: 200, latency: {pod_noise: 0.2, jitter: 0, itl_per_running: 1ns, itl_per_prefill_token: 1ns}", 1)
	sim := simulate(t, strings.Replace(scenario, "rate: 30", "rate: 400", 1))
	sim.AdvanceTo(20 * time.Second)
	var logs []float64
	for _, e := range sim.Engines() {
		s := e.Snapshot()
		logs = append(logs, math.Log(s.ITL.Sum/float64(s.ITL.Count)/0.008))
	}
	mean, sd := moments(logs)
	assert.InDelta(t, 0, mean, 0.06)
	assert.InDelta(t, 0.2, sd, 0.04)
}

func moments(all []float64) (mean, sd float64) {
	for _, v := range all {
		mean += v / float64(len(all))
	}
	for _, v := range all {
		sd += (v - mean) * (v - mean) / float64(len(all))
	}
	return mean, math.Sqrt(sd)
}

func TestDraws(t *testing.T) {
	for _, shape := range []Shape{ShapeLognormal, ShapeGamma, ShapeWeibull} {
		for _, cv := range []float64{0.1, 0.6, 1, 2} {
			v, r := newVariate(shape, cv), stream(1, string(shape), fmt.Sprint(cv))
			draws := make([]float64, 200_000)
			for i := range draws {
				draws[i] = v.draw(r)
			}
			mean, sd := moments(draws)
			assert.InEpsilon(t, 1, mean, 0.02, "%s %v", shape, cv)
			assert.InEpsilon(t, cv, sd, 0.1, "%s %v", shape, cv)
		}
	}
	assert.InEpsilon(t, 1, weibullShape(1), 1e-6, "a Weibull of shape 1 is exponential")
	assert.InEpsilon(t, 0.5, weibullShape(math.Sqrt(5)), 1e-6, "and of shape 1/2 has a variation of 5 squared")
}

func TestPageStatus(t *testing.T) {
	sim := simulate(t, oneVLLM)
	body, status := sim.Engines()[0].AppendPage([]byte("before"))
	assert.Equal(t, http.StatusOK, status)
	assert.True(t, strings.HasPrefix(string(body), "before# HELP"))
}
