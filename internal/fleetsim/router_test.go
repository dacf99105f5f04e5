// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

const routed = `
seed: 1
fleets: [{name: q, engine: vllm, model_name: m, replicas: 4, output_tokens: {mean: 8}, arrivals: {rate: 40}}]
`

// received is how many requests each replica has served, and their mean prompt
// in tokens, since a moment.
func received(sim *Simulation, from, to time.Duration) (counts, prompts []float64) {
	var before []Snapshot
	sim.AdvanceTo(from)
	for _, e := range sim.Engines() {
		before = append(before, e.Snapshot())
	}
	sim.AdvanceTo(to)
	for i, e := range sim.Engines() {
		s := e.Snapshot()
		count := float64(s.TTFT.Count - before[i].TTFT.Count)
		counts = append(counts, count)
		prompts = append(prompts, (s.PromptTokens-before[i].PromptTokens)/count)
	}
	return counts, prompts
}

// Of a lognormal of coefficient of variation .6, thus sigma .5545, the longest
// quarter has F(.5545 - .6745) / .25 = 1.809 times the mean, with F the normal
// distribution and .6745 its upper quartile; the rest has .730 times.
func TestLongPromptsGoToTheStruck(t *testing.T) {
	for _, router := range []string{"round_robin", "random", "least_loaded"} {
		scenario := strings.Replace(routed, "replicas: 4", "replicas: 4, router: "+router, 1)
		sim := simulate(t, scenario+"faults: [{kind: long_prompts, replicas: [2], from: 60s, to: 360s}]\n")
		counts, prompts := received(sim, 60*time.Second, 360*time.Second)
		want := []float64{.730 * 512, .730 * 512, 1.809 * 512, .730 * 512}
		for i := range want {
			assert.InEpsilon(t, want[i], prompts[i], .05, "%s, replica %d", router, i)
		}
		assert.InEpsilon(t, 3000, counts[2], .06, "a quarter of 12000, as before")
		_, prompts = received(sim, 361*time.Second, 600*time.Second)
		for i := range prompts {
			assert.InEpsilon(t, 512, prompts[i], .05, "%s, replica %d afterwards", router, i)
		}
	}
}

func TestAShareOfLongPrompts(t *testing.T) {
	sim := simulate(t, routed+"faults: [{kind: long_prompts, replicas: [2], share: 0.5}]\n")
	_, prompts := received(sim, 0, 300*time.Second)
	assert.InEpsilon(t, (1.809+1)/2*512, prompts[2], .05)
	assert.InEpsilon(t, (.730+1)/2*512, prompts[0], .05)
}

func TestOverload(t *testing.T) {
	sim := simulate(t, routed+"faults: [{kind: overload, replicas: [0, 3], factor: 3, from: 60s}]\n")
	counts, _ := received(sim, 60*time.Second, 360*time.Second)
	for i, want := range []float64{4500, 1500, 1500, 4500} {
		assert.InEpsilon(t, want, counts[i], .06, "replica %d", i)
	}
}

func TestOfTwoDetoursTheFirstDecides(t *testing.T) {
	sim := simulate(t, routed+"faults: [{kind: overload, replicas: [0], factor: 9}, {kind: overload, replicas: [1], factor: 9}]\n")
	counts, _ := received(sim, 0, 300*time.Second)
	assert.InEpsilon(t, 9000, counts[0], .05, "9 of 12")
	assert.InEpsilon(t, 1000, counts[1], .12)
}

func TestARouterKnowsNoFaultOfAnotherFleet(t *testing.T) {
	fault := "faults: [{kind: overload, fleet: other, replicas: [0], factor: 9}]\n"
	other := "  - {name: other, engine: vllm, model_name: n, replicas: 2, arrivals: {rate: 1}}\n"
	block := strings.Replace(routed, "fleets: [{", "fleets:\n  - {", 1)
	block = strings.Replace(block, "}]", "}", 1) + other
	with, without := simulate(t, block+fault), simulate(t, block)
	assert.Equal(t, pageAt(t, without, 1, time.Minute), pageAt(t, with, 1, time.Minute))
	assert.NotEqual(t, pageAt(t, without, 4, time.Minute), pageAt(t, with, 4, time.Minute))
}

func TestRequestsEnd(t *testing.T) {
	sim := simulate(t, strings.Replace(routed, "arrivals: {rate: 40}", "arrivals: {rate: 40, requests: 100}", 1))
	counts, _ := received(sim, 0, time.Minute)
	assert.Equal(t, []float64{25, 25, 25, 25}, counts)
}
