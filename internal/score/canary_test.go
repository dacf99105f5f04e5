// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"bytes"
	"math"
	"math/rand/v2"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/judge/canary"
)

// unmet is when that happened which did not.
var unmet = math.Inf(1)

// tally adds up what some members told in so many panes.
func tally(w *canaryWorld, panes, from, to int) (counts map[fleet.Signal]uint64, sums map[fleet.Signal]float64, reasons map[string]uint64) {
	counts, sums, reasons = map[fleet.Signal]uint64{}, map[fleet.Signal]float64{}, map[string]uint64{}
	for range panes {
		frame := w.next()
		for i := from; i < to; i++ {
			m := &frame.Members[i]
			for s, signal := range frame.Signals {
				counts[signal] += m.Told[s].Observations()
				sums[signal] += m.Told[s].Sum
			}
			for _, r := range m.Reasons {
				reasons[r.Reason] += r.Count
			}
		}
	}
	return counts, sums, reasons
}

// TestPodsTellWhatTheyAreMeantTo: the mean of a log-normal quantity is its median
// times exp(σ²/2).
func TestPodsTellWhatTheyAreMeantTo(t *testing.T) {
	plan := planOf("test", 3, noNoise, 1000, func(b *behaviour) { b.ttft, b.output, b.failed = 1.5, 0.5, 0.02 })
	w := startRollout(&plan, 0, tuningSeed)
	for range rolloutAfter {
		w.next()
	}
	w.phase = -float64(rolloutAfter) / panesADay // so that the day begins now, and what it does cancels out
	counts, sums, reasons := tally(w, panesADay/4, 0, 3)
	n := counts[fleet.Finished]
	// A quarter of a day in which rates rise to 1.3 times as many, by a sine whose
	// mean is 2/π; latencies by 0.2 on the log scale.
	assert.InEpsilon(t, 3*360*60*(1+0.3*2/math.Pi), n, 0.01)
	slower := math.Exp(0.2 * 2 / math.Pi)
	mean := func(s fleet.Signal) float64 { return sums[s] / float64(counts[s]) }
	assert.InEpsilon(t, 1.5*0.3*math.Exp(0.6*0.6/2)*slower, mean(fleet.TTFT), 0.02)
	assert.InEpsilon(t, 4*math.Exp(0.6*0.6/2)*slower, mean(fleet.E2E), 0.02)
	assert.InEpsilon(t, 0.03*math.Exp(0.3*0.3/2)*slower, mean(fleet.ITL), 0.02)
	assert.InEpsilon(t, 500*math.Exp(0.5), mean(fleet.PromptLength), 0.02)
	assert.InEpsilon(t, 75*math.Exp(0.8*0.8/2), mean(fleet.OutputLength), 0.02)
	assert.Equal(t, tokensTold*n, counts[fleet.ITL])
	assert.Equal(t, n, counts[fleet.TPOT])
	assert.Equal(t, counts[fleet.Errors], reasons["error"])
	assert.InEpsilon(t, 0.02, float64(reasons["error"])/float64(n), 0.1)
	assert.InEpsilon(t, 0.19, float64(reasons["length"])/float64(n), 0.03)
	assert.InEpsilon(t, 0.01, float64(reasons["abort"])/float64(n), 0.15)
	assert.Equal(t, n, reasons["error"]+reasons["length"]+reasons["abort"]+reasons["stop"])
	assert.InEpsilon(t, 0.4, float64(counts[fleet.PrefixHits])/float64(counts[fleet.PrefixQueries]), 0.03, "half of the requests find 80 %")
}

func TestTokensOfARequestAreAlike(t *testing.T) {
	plan := planOf("test", 1, noNoise, 1, func(*behaviour) {})
	frame := startRollout(&plan, 0, tuningSeed).next()
	for _, c := range frame.Members[0].Told[frame.Index(fleet.ITL)].Counts {
		assert.Zero(t, c%tokensTold)
	}
}

// TestARolloutChangesItsPodsAlone: what else is drawn stays as it is.
func TestARolloutChangesItsPodsAlone(t *testing.T) {
	same := planOf("test", 2, someNoise, 10, func(*behaviour) {})
	slow := planOf("test", 2, someNoise, 10, func(b *behaviour) { b.ttft = 3 })
	a, b := startRollout(&same, 4, tuningSeed), startRollout(&slow, 4, tuningSeed)
	for pane := range 8 {
		x, y := a.next(), b.next()
		assert.Equal(t, x.Members[2:], y.Members[2:])
		assert.Equal(t, pane < rolloutAfter, x.Members[0].Told[0].Sum == y.Members[0].Told[0].Sum)
		assert.Equal(t, pane == rolloutAfter, x.Members[1].Warming)
		variant := map[bool]string{true: "a", false: "b"}[pane < rolloutAfter]
		assert.Equal(t, variant, x.Members[1].Identity.Variant[0].Value)
		assert.Equal(t, "a", x.Members[2].Identity.Variant[0].Value)
	}
	c := startRollout(&same, 5, tuningSeed).next()
	assert.NotEqual(t, startRollout(&same, 4, tuningSeed).next().Members[5].Told, c.Members[5].Told, "another run")
}

func TestASlowCanaryIsFailedAndARelapseFound(t *testing.T) {
	slow := planOf("test", 3, noNoise, 30, func(b *behaviour) { b.ttft = 3 })
	o, err := slow.play(0, tuningSeed)
	require.NoError(t, err)
	assert.LessOrEqual(t, o.failed[canaryDelta], 3.0)
	assert.Equal(t, fleet.TTFT.String(), o.driver)
	assert.Equal(t, float64(mannWhitneyFrom), o.failed[kayentaMean], "not before it has its points")
	assert.Equal(t, unmet, o.passed)
	assert.True(t, o.controlled())

	twice := usual
	twice.ttft = 3
	same := planOf("test", 3, noNoise, 5, func(*behaviour) {})
	same.toEnd, same.relapse = true, &twice
	o, err = same.play(0, tuningSeed)
	require.NoError(t, err)
	assert.Equal(t, unmet, o.failed[canaryDelta])
	assert.Equal(t, 5.0, o.compared)
	assert.LessOrEqual(t, o.relapse, 5.0)
	assert.True(t, o.controlled())
}

func TestFiguresOfCanaries(t *testing.T) {
	run := func(edit func(*canaryOutcome)) *canaryOutcome {
		o := newCanaryOutcome()
		edit(o)
		return o
	}
	fails := func(mine, theirs float64) *canaryOutcome {
		return run(func(o *canaryOutcome) {
			o.failed[canaryDelta], o.failed[kayentaMean], o.driver = mine, theirs, "ttft"
			o.measures["ttft"] = mine
		})
	}
	good := run(func(o *canaryOutcome) { o.passed, o.relapse = 7, 2 })
	slow := planOf("slow", 1, noNoise, 60, func(b *behaviour) { b.ttft = 1.2 })
	same := planOf("same", 3, noNoise, 120, func(*behaviour) {})
	failing := &rolloutSet{slow, []*canaryOutcome{fails(4, 10), fails(12, 10), fails(9, unmet), fails(unmet, unmet)}}
	healthy := &rolloutSet{same, []*canaryOutcome{good, fails(30, unmet), good, good}}

	for name, c := range map[string]struct {
		take takeCanary
		rule canaryRule
		sets []*rolloutSet
		want float64
	}{
		"ours within ten minutes":     {failedFor("ttft", 10), canaryDelta, []*rolloutSet{failing}, 0.5},
		"for another measure":         {failedFor("itl", 10), canaryDelta, []*rolloutSet{failing}, 0},
		"theirs within ten minutes":   {failedFor("ttft", 10), kayentaMean, []*rolloutSet{failing}, 0.5},
		"false fails of the worst":    {falseFails, canaryDelta, []*rolloutSet{failing, healthy}, 0.75},
		"false fails of a peer":       {falseFails, kayentaMean, []*rolloutSet{healthy}, 0},
		"any measure":                 {measuresFailed, canaryDelta, []*rolloutSet{healthy}, 0.25},
		"one measure":                 {measureFailed("ttft", 10), canaryDelta, []*rolloutSet{failing}, 0.5},
		"passes":                      {passedWithin(30), canaryDelta, []*rolloutSet{healthy}, 0.75},
		"passes too late":             {passedWithin(6), canaryDelta, []*rolloutSet{healthy}, 0},
		"no mix":                      {mixedWithin(15), canaryDelta, []*rolloutSet{healthy}, 0},
		"relapses of who was healthy": {relapseFound, canaryDelta, []*rolloutSet{healthy}, 1},
		"median of ours":              {minutesToFail, canaryDelta, []*rolloutSet{failing}, 10.5},
		"median of theirs":            {minutesToFail, kayentaMean, []*rolloutSet{failing}, unmet},
		"behind in false fails alone": {cellsBehind(kayentaMean), canaryDelta, []*rolloutSet{failing, healthy}, 1},
		"behind in both":              {cellsBehind(kayentaP95), canaryDelta, []*rolloutSet{healthy, {slow, []*canaryOutcome{run(func(o *canaryOutcome) { o.failed = [canaryRuleCount]float64{11, 0, 10} })}}}, 2},
	} {
		value, _, note := c.take(c.sets, c.rule)
		assert.Equal(t, c.want, value, name)
		assert.NotEmpty(t, note, name)
	}
}

func TestEveryCanaryFigureHasItsPlans(t *testing.T) {
	var names []string
	for _, p := range canaryPlans() {
		assert.NotContains(t, names, p.name)
		names = append(names, p.name)
	}
	var used []string
	for _, f := range canaryFigures() {
		assert.Subset(t, names, f.of, f.name)
		used = append(used, f.of...)
	}
	assert.Subset(t, used, names, "a plan is played for nothing")

	var card Card
	f := canaryFigure{name: "f", of: []string{"a", "b"}, take: falseFails, peers: true}
	set := &rolloutSet{outcomes: []*canaryOutcome{newCanaryOutcome()}}
	f.write(&card, map[string]*rolloutSet{"a": set})
	assert.Empty(t, card.Lines, "one of its plans was not played")
	f.write(&card, map[string]*rolloutSet{"a": set, "b": set})
	require.Len(t, card.Lines, int(canaryRuleCount))
	assert.Equal(t, "f/mann_whitney_mean", card.Lines[kayentaMean].Name)
	assert.True(t, card.Lines[kayentaMean].Peer)
}

func TestCasesThatPointsAMinuteMiss(t *testing.T) {
	lines := canaryCases(Options{Only: regexp.MustCompile("^canary_case_")})
	values := map[string]float64{}
	for _, l := range lines {
		values[l.Name] = l.Value
	}
	assert.Equal(t, map[string]float64{
		"canary_case_7_of_10_points_100x": 1, "canary_case_7_of_10_points_100x/mann_whitney": 0,
		"canary_case_rare_errors": 1, "canary_case_rare_errors/mann_whitney": 0,
		"canary_case_no_finished_request": 1,
	}, values)
}

// TestReplayTellsStreamsApart: the same pages in any order are one stream, and
// without the page that ends a pane another.
func TestReplayTellsStreamsApart(t *testing.T) {
	s, err := fleetsim.Parse([]byte(`
fleets:
  - {name: f, engine: vllm, model_name: m, replicas: 4, revisions: [a], arrivals: {rate: 4}}
faults:
  - {kind: new_revision, replicas: [3], revision: b, factor: 3, from: 3m}
`))
	require.NoError(t, err)
	rounds, err := record(s)
	require.NoError(t, err)
	require.Len(t, rounds, int(replayMinutes*time.Minute/replayInterval))
	first, failed, err := replay(rounds, nil)
	require.NoError(t, err)
	assert.True(t, failed)
	again, _, err := replay(rounds, rand.New(rand.NewPCG(tuningSeed, 1)))
	require.NoError(t, err)
	assert.True(t, bytes.Equal(first, again))

	rounds[59] = rounds[59][1:]
	other, _, err := replay(rounds, nil)
	require.NoError(t, err)
	assert.False(t, bytes.Equal(first, other))
}

func TestReportsWithoutNumbersAreRefused(t *testing.T) {
	report := &canary.Report{Measures: []canary.MeasureReport{{Measure: &canary.Measure{Name: "ttft"}, Statistics: []canary.Statistic{{Name: "p50"}}}}}
	require.NoError(t, checkFigures(report))
	report.Measures[0].Statistics[0].High.Value = unmet
	assert.EqualError(t, checkFigures(report), "a figure of ttft is +Inf")
}
