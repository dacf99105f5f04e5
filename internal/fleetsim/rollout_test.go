// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// rolledOut is a fleet of four whose second half is struck after a minute, by a
// new revision with more keys.
func rolledOut(t *testing.T, more string) *Simulation {
	t.Helper()
	return simulate(t, `
seed: 1
fleets:
  - name: q
    engine: vllm
    model_name: m
    replicas: 4
    revisions: [old]
    prompt_tokens: {mean: 200, cv: 0.3}
    output_tokens: {mean: 20, cv: 0.3}
    prefix_hit_ratio: 0.5
    latency: {pod_noise: 0.3}
    arrivals: {rate: 20}
faults:
  - {kind: new_revision, replicas: [2, 3], revision: new, from: 60s, `+more+`}
`)
}

// pods that can be scraped, each with the revision that its label tells.
func pods(sim *Simulation) map[string]string {
	found := map[string]string{}
	for _, target := range sim.Targets() {
		if _, status := target.AppendPage(nil); status == http.StatusOK {
			found[target.Labels()["pod"]] = target.Labels()["model_revision"]
		}
	}
	return found
}

func TestARolloutReplacesPodsAsADeploymentDoes(t *testing.T) {
	sim := rolledOut(t, "mode: replace, to: 120s")
	offsets := func() (all []float64) {
		for _, e := range sim.engines {
			all = append(all, e.sim.offset)
		}
		return all
	}
	before := offsets()
	sim.AdvanceTo(59 * time.Second)
	assert.Equal(t, map[string]string{"q-0": "old", "q-1": "old", "q-2": "old", "q-3": "old"}, pods(sim))

	sim.AdvanceTo(61 * time.Second)
	assert.Equal(t, map[string]string{"q-0": "old", "q-1": "old", "q-new-2": "new", "q-new-3": "new"}, pods(sim))
	page, _ := sim.Targets()[5].AppendPage(nil)
	assert.Equal(t, float64(start.Unix()+60), value(t, parsePage(t, string(page)), "process_start_time_seconds"))
	assert.Equal(t, before[:2], offsets()[:2])
	assert.NotEqual(t, before[2], offsets()[2], "another pod has an offset of its own")

	assert.Equal(t, float64(start.Unix()+120), value(t, parsePage(t, pageAt(t, sim, 3, 121*time.Second)), "process_start_time_seconds"))
	assert.Equal(t, map[string]string{"q-0": "old", "q-1": "old", "q-2": "old", "q-3": "old"}, pods(sim))
	assert.Equal(t, before, offsets())
}

func TestRaysAgentShowsTheNewPodAmongTheOthers(t *testing.T) {
	sim := simulate(t, vllmOf(VLLMRay)+"faults: [{kind: new_revision, mode: replace, replicas: [1], revision: new, from: 10s}]\n")
	require.Len(t, sim.Targets(), 1)
	sim.AdvanceTo(30 * time.Second)
	assert.Equal(t, []string{"qwen-0", "qwen-new-1", "qwen-2"}, replicasOf(node(t, sim.Targets()[0])["ray_vllm_num_requests_running"]))
}

func TestAnotherPodTakesOverTheGPU(t *testing.T) {
	sim := simulate(t, twoNodes+"faults: [{kind: new_revision, fleet: chat, mode: replace, replicas: [0], revision: b, from: 10s}]\n")
	holders := map[string][]string{} // by the GPU's UUID
	for _, at := range []time.Duration{time.Second, time.Minute} {
		gpu := labelsOf(gpusAt(t, sim, "gpu-0", at)["DCGM_FI_DEV_SM_CLOCK"].GetMetric()[0])
		holders[gpu["UUID"]] = append(holders[gpu["UUID"]], gpu["pod"])
	}
	require.Len(t, holders, 1, "it is the same GPU")
	for _, pods := range holders {
		assert.Equal(t, []string{"chat-0", "chat-b-0"}, pods)
	}
}

func TestRecordsNameThePodThatServed(t *testing.T) {
	sim := rolledOut(t, "mode: replace")
	served := map[string]bool{}
	sim.Watch(func(records []RequestRecord) {
		for _, r := range records {
			served[r.Replica] = true
			if strings.HasPrefix(r.Replica, "q-new-") {
				assert.False(t, r.Ended.Before(start.Add(time.Minute)), r.Replica)
			}
		}
	})
	sim.AdvanceTo(2 * time.Minute)
	assert.Equal(t, map[string]bool{"q-0": true, "q-1": true, "q-2": true, "q-3": true, "q-new-2": true, "q-new-3": true}, served)
}

// Without noise, prefill of 50 tokens takes 10 + 1 + 50 * .1 = 16 ms, and each of
// ten more tokens 11 ms.
func TestFactorsOfARollout(t *testing.T) {
	for factors, want := range map[string]struct{ ttft, itl, output, prompt float64 }{
		"factor: 1":           {.016, .110, 11, 50},
		"factor: 1.5":         {.024, .165, 11, 50},
		"prefill_factor: 1.4": {.018, .110, 11, 50},
		"prompt_factor: 1.2":  {.017, .110, 11, 60},
		"output_factor: 0.64": {.016, .066, 7, 50}, // 7.04 tokens, of which six come after the first
		"factor: 2, prefill_factor: 2, output_factor: 2": {.042, .462, 22, 50},
	} {
		sim := exactFleet(t, func(s string) string {
			return s + "faults: [{kind: new_revision, revision: new, " + factors + "}]\n"
		}, ask(50, 11))
		sim.AdvanceTo(2 * time.Second)
		e := sim.Engines()[0]
		assert.InEpsilon(t, want.ttft, e.Measured(fleet.TTFT).Sum, 1e-9, factors)
		assert.InEpsilon(t, want.itl, e.Measured(fleet.ITL).Sum, 1e-9, factors)
		assert.Equal(t, want.output, e.Measured(fleet.OutputLength).Sum, factors)
		assert.Equal(t, want.prompt, e.Measured(fleet.PromptLength).Sum, factors)
	}
}

func TestSharesOfARollout(t *testing.T) {
	sim := rolledOut(t, "error_share: 0.1, length_share: 0.3, to: 660s")
	before := parsePage(t, pageAt(t, sim, 3, 59*time.Second))
	after := parsePage(t, pageAt(t, sim, 3, 659*time.Second)) // a new process, which has counted for 599 s
	other := parsePage(t, pageAt(t, sim, 0, 659*time.Second))
	const ended, reason = "vllm:request_success_total", "finished_reason"
	assert.Zero(t, value(t, before, ended, reason, "error")+value(t, before, ended, reason, "length"))
	assert.Zero(t, value(t, other, ended, reason, "error")+value(t, other, ended, reason, "length"))
	all := value(t, after, ended, reason, "error") + value(t, after, ended, reason, "length") + value(t, after, ended, reason, "stop")
	assert.InEpsilon(t, 5*599, all, .05)
	assert.InDelta(t, .1, value(t, after, ended, reason, "error")/all, 3*math.Sqrt(.1*.9/all))
	assert.InDelta(t, .9*.3, value(t, after, ended, reason, "length")/all, 3*math.Sqrt(.27*.73/all))
	made := func(replica int) float64 {
		of := sim.Engines()[replica].Snapshot()
		return of.GeneratedTokens / of.Finished
	}
	assert.InEpsilon(t, made(0), made(3), .02, "answers that are cut off are as long as the others")
	rolledBack := parsePage(t, pageAt(t, sim, 3, 720*time.Second))
	assert.Zero(t, value(t, rolledBack, ended, reason, "error")+value(t, rolledBack, ended, reason, "length"))
	assert.Positive(t, value(t, rolledBack, ended, reason, "stop"))
}

func TestTheCacheOfARolloutWarmsUp(t *testing.T) {
	sim := rolledOut(t, "mode: replace, warm_up: 100s")
	hits := func(replica int, from, to time.Duration) float64 {
		sim.AdvanceTo(from)
		a := sim.Engines()[replica].Snapshot()
		sim.AdvanceTo(to)
		b := sim.Engines()[replica].Snapshot()
		return (b.PrefixHits - a.PrefixHits) / (b.PrefixQueries - a.PrefixQueries)
	}
	const missed = 8. / 200 // pages of 16 tokens are found whole or not at all
	assert.InDelta(t, .5-missed, hits(3, 0, 59*time.Second), .01)
	assert.InDelta(t, .25-missed, hits(3, 60*time.Second, 160*time.Second), .02, "half full in the mean")
	assert.InDelta(t, .5-missed, hits(3, 161*time.Second, 220*time.Second), .01)
	assert.InDelta(t, .5-missed, hits(0, 221*time.Second, 280*time.Second), .01)
}

func TestAShareOfTheRequestsGoesToARollout(t *testing.T) {
	for share, want := range map[string][]float64{"0.1": {2700, 2700, 300, 300}, "0.5": {1500, 1500, 1500, 1500}} {
		sim := rolledOut(t, "mode: replace, share: "+share+", to: 360s")
		counts, _ := received(sim, 61*time.Second, 359*time.Second)
		for i := range want {
			assert.InEpsilon(t, want[i], counts[i], .1, "share %s, replica %d", share, i)
		}
		counts, _ = received(sim, 361*time.Second, 600*time.Second)
		for i := range counts {
			assert.InEpsilon(t, 5*239, counts[i], .06, "replica %d afterwards", i)
		}
	}
}

func TestANewerRolloutTakesThePlaceOfAnOlderOne(t *testing.T) {
	sim := simulate(t, strings.Replace(oneVLLM, "replicas: 3", "replicas: 3, revisions: [old]", 1)+`
faults:
  - {kind: new_revision, mode: replace, replicas: [1], revision: a, factor: 2, from: 10s, to: 40s}
  - {kind: new_revision, mode: replace, replicas: [1], revision: b, factor: 3, from: 20s, to: 60s}
`)
	e := sim.Engines()[1]
	for _, want := range []struct {
		at       time.Duration
		pod      string
		revision string
		factor   float64
		began    float64 // seconds after the start
	}{
		{15 * time.Second, "qwen-a-1", "a", 2, 10},
		{25 * time.Second, "qwen-b-1", "b", 3, 20},
		{45 * time.Second, "qwen-b-1", "b", 3, 20}, // a has ended beneath it
		{65 * time.Second, "qwen-1", "old", 1, 60},
	} {
		sim.AdvanceTo(want.at)
		assert.Equal(t, want.pod, e.Name(), want.at)
		assert.Equal(t, want.revision, e.Revision(), want.at)
		assert.Equal(t, want.factor, e.sim.serves().Factor, want.at)
		assert.Equal(t, float64(start.Unix())+want.began, e.Started(), want.at)
	}
}

func TestARolloutLeavesOtherReplicasAlone(t *testing.T) {
	clean := simulate(t, oneVLLM)
	sim := withFault(t, "kind: new_revision, mode: replace, revision: b, prefill_factor: 2, output_factor: 0.5, prompt_factor: 2, error_share: 0.1, length_share: 0.1, warm_up: 1m")
	for _, replica := range []int{0, 2} {
		assert.Equal(t, pageAt(t, clean, replica, time.Minute), pageAt(t, sim, replica, time.Minute))
	}
}

func TestAnswerKeyOfARollout(t *testing.T) {
	sim := rolledOut(t, "mode: replace, share: 0.2, prefill_factor: 1.3, output_factor: 0.7, error_share: 0.01, length_share: 0.02, warm_up: 2m, to: 10m")
	sim.AdvanceTo(2 * time.Minute) // the key is that of the scenario whenever it is asked for
	key := sim.AnswerKey()
	require.Len(t, key, 2)
	warm, until := start.Add(3*time.Minute), start.Add(10*time.Minute)
	assert.Equal(t, KeyFault{
		Time: start.Add(time.Minute), Fleet: "q", Replica: "q-3", Kind: NewRevision, Mode: Replace, Factor: 1, Share: .2, Revision: "new", Pod: "q-new-3",
		PromptFactor: 1, PrefillFactor: 1.3, OutputFactor: .7, ErrorShare: .01, LengthShare: .02, WarmAt: &warm, Until: &until,
	}, key[1])
}

func TestMistakesInARollout(t *testing.T) {
	for keys, want := range map[string]string{
		"":                                    "faults[0].revision: is missing",
		"revision: b, mode: surge":            `faults[0].mode: is "surge": write one of in_place, replace`,
		"revision: b, factor: -1":             "faults[0].factor: is -1: write how many times as much",
		"revision: b, prefill_factor: .inf":   "faults[0].prefill_factor: is +Inf",
		"revision: b, output_factor: -0.5":    "faults[0].output_factor: is -0.5",
		"revision: b, prompt_factor: .nan":    "faults[0].prompt_factor: is NaN",
		"revision: b, error_share: 1.5":       "faults[0].error_share: is 1.5: write 0 to 1",
		"revision: b, length_share: -1":       "faults[0].length_share: is -1",
		"revision: b, share: 2":               "faults[0].share: is 2",
		"revision: b, share: 0.5":             "faults[0].replicas: are all of fleet q: leave others",
		"revision: b, warm_up: -1m":           "faults[0].warm_up: is -1m0s",
		"revision: b, warm_up: 1m":            "faults[0].kind: strikes at a cache that never hits: give fleet q a prefix_hit_ratio",
		"revision: b, warm_up: 300":           "a duration with its unit",
		"revision: b, to: 1m, from: 2m":       "faults[0].to: is 1m0s",
		"revision: b, prefil_factor: 1.3":     "there is no such key",
		"revision: b, replicas: [0], pick: 1": "write one of replicas, pick and node",
	} {
		_, err := Parse([]byte("fleets: [{name: q, engine: vllm, model_name: m, replicas: 2, arrivals: {rate: 1}}]\nfaults: [{kind: new_revision, " + keys + "}]"))
		require.ErrorContains(t, err, want, keys)
	}
}
