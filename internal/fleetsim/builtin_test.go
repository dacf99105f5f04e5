// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// measured is how long an episode is looked at before the faults strike, and
// after.
const measured = 5 * time.Minute

// episode is a scenario as it went for some minutes before its faults and, from a
// minute after they struck, for as long again.
type episode struct {
	sim           *Simulation
	struck        map[string]bool
	before, after map[string]Snapshot // what was counted in that time, by replica
}

// playBuiltin plays a scenario with its first fault moved to the sixth minute.
func playBuiltin(t *testing.T, name string, seed uint64) *episode {
	t.Helper()
	s, err := Builtin(name)
	require.NoError(t, err)
	s.Seed = seed
	const strikes = 6 * time.Minute
	early := s.Faults[0].From - strikes
	for i := range s.Faults {
		f := &s.Faults[i]
		f.From -= early
		if f.To != 0 {
			f.To -= early
		}
	}
	sim, err := New(s, start)
	require.NoError(t, err)
	p := &episode{sim: sim, struck: map[string]bool{}}
	for _, fault := range sim.keyFaults() {
		p.struck[fault.Replica] = true
	}
	p.before = p.measure(strikes - measured)
	p.after = p.measure(strikes + time.Minute)
	return p
}

// measure is what all replicas count from a moment on.
func (p *episode) measure(from time.Duration) map[string]Snapshot {
	first, counted := map[string]Snapshot{}, map[string]Snapshot{}
	p.sim.AdvanceTo(from)
	for _, e := range p.sim.Engines() {
		first[nameOf(e)] = e.Snapshot()
	}
	p.sim.AdvanceTo(from + measured)
	for _, e := range p.sim.Engines() {
		s, was := e.Snapshot(), first[nameOf(e)]
		s.TTFT.Sum, s.TTFT.Count = s.TTFT.Sum-was.TTFT.Sum, s.TTFT.Count-was.TTFT.Count
		s.ITL.Sum, s.ITL.Count = s.ITL.Sum-was.ITL.Sum, s.ITL.Count-was.ITL.Count
		s.Finished, s.Failed = s.Finished-was.Finished, s.Failed-was.Failed
		s.PromptTokens, s.GeneratedTokens = s.PromptTokens-was.PromptTokens, s.GeneratedTokens-was.GeneratedTokens
		s.PrefixQueries, s.PrefixHits = s.PrefixQueries-was.PrefixQueries, s.PrefixHits-was.PrefixHits
		counted[nameOf(e)] = s
	}
	return counted
}

// nameOf is the name of the pod that a replica has begun in.
func nameOf(e *Engine) string { return podName(e.sim.fleet, e.sim.replica) }

// of is a figure of all struck replicas together, or of all others.
func (p *episode) of(counted map[string]Snapshot, struck bool, figure func(Snapshot) (part, whole float64)) float64 {
	sum, over := 0.0, 0.0
	for name, s := range counted {
		if p.struck[name] == struck {
			part, whole := figure(s)
			sum, over = sum+part, over+whole
		}
	}
	return sum / over
}

// against is that figure of the struck over that of the others, after the fault.
func (p *episode) against(figure func(Snapshot) (part, whole float64)) float64 {
	return p.of(p.after, true, figure) / p.of(p.after, false, figure)
}

func meanITL(s Snapshot) (part, whole float64)    { return s.ITL.Sum, float64(s.ITL.Count) }
func meanTTFT(s Snapshot) (part, whole float64)   { return s.TTFT.Sum, float64(s.TTFT.Count) }
func meanPrompt(s Snapshot) (part, whole float64) { return s.PromptTokens, float64(s.TTFT.Count) }
func meanOutput(s Snapshot) (part, whole float64) { return s.GeneratedTokens, s.Finished }
func meanCount(s Snapshot) (part, whole float64)  { return s.Finished, 1 }
func hitRatio(s Snapshot) (part, whole float64)   { return s.PrefixHits, s.PrefixQueries }

// meanOf is a figure of one replica.
func meanOf(s Snapshot, figure func(Snapshot) (part, whole float64)) float64 {
	part, whole := figure(s)
	return part / whole
}

func TestBuiltinsAreScenariosWithOneSeedEach(t *testing.T) {
	assert.Subset(t, Builtins(), []string{
		"mixed_gpus", "flapping", "reasoning", "black_hole", "rollout", "slow_fleet",
		"routing", "load", "hardware", "placement", "cold_cache", "variant",
		"noisy_neighbour", "surge", "canary", "canary_aa",
	})
	for _, name := range Builtins() {
		s, err := Builtin(name)
		require.NoError(t, err, name)
		_, err = New(s, start)
		require.NoError(t, err, name)
	}
	_, err := Builtin("utopia")
	require.ErrorContains(t, err, `there is no scenario "utopia": write one of black_hole, `)
}

func TestMixedGPUs(t *testing.T) {
	p := playBuiltin(t, "mixed_gpus", 3)
	require.Len(t, p.struck, 1)
	for _, e := range p.sim.Engines() {
		want := map[string]float64{"h100": .012, "l40s": .030}[e.Fleet()]
		assert.InEpsilon(t, want, meanOf(p.before[e.Name()], meanITL), .04, e.Name())
		if p.struck[e.Name()] {
			want = .018
		}
		assert.InEpsilon(t, want, meanOf(p.after[e.Name()], meanITL), .04, e.Name())
	}
	models := map[string]bool{}
	for _, target := range p.sim.Targets()[:8] {
		models[target.Labels()["gpu_model"]] = true
	}
	assert.Len(t, models, 2)
}

func TestFlapping(t *testing.T) {
	p := playBuiltin(t, "flapping", 3)
	require.Len(t, p.struck, 1)
	for name := range p.struck {
		assert.InEpsilon(t, 1.8, meanOf(p.after[name], meanITL)/meanOf(p.before[name], meanITL), .1)
	}
	for _, target := range p.sim.Targets()[:8] {
		statuses := map[int]int{}
		for range 20 {
			_, status := target.AppendPage(nil)
			statuses[status]++
		}
		want := map[int]int{200: 20}
		if p.struck[target.Name()] {
			want = map[int]int{200: 10, TimedOut: 10}
		}
		assert.Equal(t, want, statuses, target.Name())
	}
}

func TestReasoning(t *testing.T) {
	p := playBuiltin(t, "reasoning", 3)
	require.Len(t, p.struck, 1)
	require.Len(t, p.after, 8)
	for name, s := range p.after {
		assert.InEpsilon(t, 1200, p.before[name].GeneratedTokens/measured.Seconds(), .01, name)
		assert.Equal(t, []int{32, 12}, []int{s.Running, s.Waiting}, name)
		assert.Zero(t, p.before[name].Finished+s.Finished, name)
		if p.struck[name] {
			assert.Zero(t, s.GeneratedTokens, name)
		} else {
			assert.InEpsilon(t, 1200, s.GeneratedTokens/measured.Seconds(), .01, name)
		}
	}
}

func TestBlackHole(t *testing.T) {
	p := playBuiltin(t, "black_hole", 3)
	assert.Equal(t, map[string]bool{"chat-3": true}, p.struck)
	failed, all := 0.0, 0.0
	for name, s := range p.after {
		failed, all = failed+s.Failed, all+s.Failed+s.Finished
		if p.struck[name] {
			assert.Zero(t, s.Finished, "its error ratio is 1")
			assert.Zero(t, s.TTFT.Count)
			assert.InEpsilon(t, 3000, s.Failed, .1)
		} else {
			assert.Zero(t, s.Failed, name)
			assert.InEpsilon(t, 300, s.Finished, .1, name)
		}
	}
	assert.InDelta(t, .769, failed/all, .015)
}

func TestRollout(t *testing.T) {
	p := playBuiltin(t, "rollout", 3)
	assert.Equal(t, map[string]bool{"chat-0": true, "chat-1": true}, p.struck)
	assert.InDelta(t, 1.6, p.against(meanTTFT), .1)
	for _, target := range p.sim.Targets()[:10] {
		assert.Equal(t, p.struck[target.Name()], target.Labels()["model_revision"] == "7a31e04", target.Name())
	}
}

func TestSlowFleet(t *testing.T) {
	p := playBuiltin(t, "slow_fleet", 3)
	require.Len(t, p.struck, 8)
	for name := range p.after {
		assert.InEpsilon(t, 1.8, meanOf(p.after[name], meanITL)/meanOf(p.before[name], meanITL), .15, name)
	}
}

// The longest eighth of prompts with a coefficient of variation of 1.2, thus a
// lognormal sigma of .944, has F(.944 - 1.150) / .125 = 3.35 times their mean,
// with F the normal distribution and 1.150 its quantile at 7/8; the others have
// (1 - F(.944 - 1.150)) / .875 = .665 times.
func TestRouting(t *testing.T) {
	p := playBuiltin(t, "routing", 3)
	require.Len(t, p.struck, 1)
	assert.InEpsilon(t, 3.35*1500, p.of(p.after, true, meanPrompt), .12)
	assert.InEpsilon(t, .665*1500, p.of(p.after, false, meanPrompt), .05)
	assert.InEpsilon(t, 1, p.against(meanCount), .1, "as many requests as before")
	assert.Greater(t, p.against(meanTTFT), 2.0)
}

func TestLoad(t *testing.T) {
	p := playBuiltin(t, "load", 3)
	require.Len(t, p.struck, 1)
	assert.InEpsilon(t, 3, p.against(meanCount), .08)
	assert.InEpsilon(t, 1, p.against(meanPrompt), .05)
	assert.Greater(t, p.against(meanITL), 1.4)
}

func TestHardware(t *testing.T) {
	p := playBuiltin(t, "hardware", 3)
	require.Len(t, p.struck, 1)
	for name := range p.struck {
		assert.InEpsilon(t, 1.6, meanOf(p.after[name], meanITL)/meanOf(p.before[name], meanITL), .15)
	}
	assert.InEpsilon(t, 1, p.against(meanCount), .02)
}

func TestPlacement(t *testing.T) {
	p := playBuiltin(t, "placement", 3)
	assert.Equal(t, map[string]bool{"chat-2": true, "chat-6": true, "code-2": true, "code-6": true}, p.struck)
	for name := range p.after {
		want := 1.0
		if p.struck[name] {
			want = 1.7
		}
		assert.InEpsilon(t, want, meanOf(p.after[name], meanITL)/meanOf(p.before[name], meanITL), .18, name)
	}
}

// From the first minute to the sixth a cache that fills in fifteen is full to
// 3.5/15 in the mean.
func TestColdCache(t *testing.T) {
	p := playBuiltin(t, "cold_cache", 3)
	require.Len(t, p.struck, 1)
	assert.InDelta(t, .8, p.of(p.before, true, hitRatio), .01)
	assert.InDelta(t, .8*3.5/15, p.of(p.after, true, hitRatio), .03)
	assert.InDelta(t, .8, p.of(p.after, false, hitRatio), .01)
	assert.Greater(t, p.against(meanTTFT), 1.6)
	full := p.measure(22 * time.Minute)
	assert.InDelta(t, .8, p.of(full, true, hitRatio), .01)
}

func TestVariant(t *testing.T) {
	p := playBuiltin(t, "variant", 3)
	require.Len(t, p.struck, 3)
	assert.InEpsilon(t, 1.7, p.against(meanITL), .15)
	for _, target := range p.sim.Targets()[:10] {
		assert.Equal(t, p.struck[target.Name()], target.Labels()["model_revision"] == "7a31e04", target.Name())
	}
}

// playCanary plays a rollout whose caches are warm two minutes after it began, and
// returns what canary and baseline count from then on.
func playCanary(t *testing.T, name string) *episode {
	t.Helper()
	p := playBuiltin(t, name, 3)
	const full = .3 - 8/500. // pages of 16 tokens are found whole or not at all
	assert.InDelta(t, full, p.of(p.before, true, hitRatio), .005)
	assert.InDelta(t, .95*full, p.of(p.after, true, hitRatio), .005, "in the first of five minutes caches are full to three quarters in the mean")
	p.after = p.measure(13 * time.Minute)
	require.Len(t, p.after, 20)
	require.Len(t, p.struck, 3)
	want := map[string]string{"chat-7a31e04-17": "7a31e04", "chat-7a31e04-18": "7a31e04", "chat-7a31e04-19": "7a31e04"}
	for i := range 17 {
		want[fmt.Sprintf("chat-%d", i)] = "1f0c9b2"
	}
	found := pods(p.sim)
	maps.DeleteFunc(found, func(pod, _ string) bool { return strings.HasPrefix(pod, "dcgm-exporter-") })
	assert.Equal(t, want, found)
	assert.InEpsilon(t, 1, p.against(meanCount), .05)
	assert.InEpsilon(t, 1, p.against(meanPrompt), .05)
	assert.InEpsilon(t, 1, p.against(hitRatio), .05)
	return p
}

func TestCanary(t *testing.T) {
	p := playCanary(t, "canary")
	assert.InEpsilon(t, 1.3, p.against(meanTTFT), .05)
	assert.InEpsilon(t, .7, p.against(meanOutput), .05)
	assert.InEpsilon(t, 1, p.against(meanITL), .1, "tokens wait for prefill now and then")
}

func TestCanaryOfTheSameCode(t *testing.T) {
	p := playCanary(t, "canary_aa")
	for _, figure := range []func(Snapshot) (part, whole float64){meanTTFT, meanOutput, meanITL} {
		assert.InEpsilon(t, 1, p.against(figure), .05)
	}
}

func TestOtherSeedsStrikeOtherReplicas(t *testing.T) {
	s, err := Builtin("hardware")
	require.NoError(t, err)
	struck := map[string]bool{}
	for seed := range uint64(20) {
		s.Seed = seed
		sim, err := New(s, start)
		require.NoError(t, err)
		struck[sim.keyFaults()[0].Replica] = true
	}
	assert.Greater(t, len(struck), 4, "of 8 replicas, 20 draws miss half of them once in some thousand times")
	assert.Equal(t, 1, s.Faults[0].Pick, "the scenario stays as it is")
}

func TestAllFaultsOfAFleetPickTheSameReplicas(t *testing.T) {
	s, err := Builtin("flapping")
	require.NoError(t, err)
	for seed := range uint64(10) {
		s.Seed = seed
		sim, err := New(s, start)
		require.NoError(t, err)
		key := sim.keyFaults()
		require.Len(t, key, 2)
		assert.Equal(t, key[0].Replica, key[1].Replica)
	}
}

// TestBuiltinsShowTheirFleets keeps pages apart: engines first, then one
// dcgm-exporter for each node.
func TestBuiltinsShowTheirFleets(t *testing.T) {
	p := playBuiltin(t, "placement", 1)
	var names []string
	for _, target := range p.sim.Targets() {
		names = append(names, target.Name())
	}
	assert.Equal(t, []string{"dcgm-exporter-gpu-0", "dcgm-exporter-gpu-1", "dcgm-exporter-gpu-2", "dcgm-exporter-gpu-3"}, slices.Clone(names[16:]))
	assert.Equal(t, "chat-0", names[0])
	assert.Equal(t, "code-7", names[15])
}
