// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// labour is what a replica told of its work in the window; what is not there was
// not told.
type labour map[fleet.Signal]uint64

// asked are the signals of works, in any order but that of latencies.
var asked = []fleet.Signal{
	fleet.Finished, fleet.Errors, fleet.PrefixHits, fleet.PrefixQueries, fleet.PrefixBlockHits, fleet.PrefixBlockQueries,
	fleet.GenerationTokens, fleet.Preemptions, fleet.PromptTokens, fleet.PromptLength, fleet.OutputLength,
}

// working is a replica that told counters.
func working(told labour) fleet.MemberFrame {
	m := fleet.MemberFrame{Identity: &fleet.Identity{Engine: "vllm"}, Told: make([]fleet.Distribution, len(asked))}
	for i, s := range asked {
		if n, ok := told[s]; ok {
			m.Told[i] = distribution(nil, n)
		}
	}
	return m
}

// lengths adds a histogram of requests to a replica: how many, and their tokens.
func lengths(m fleet.MemberFrame, s fleet.Signal, requests uint64, tokens float64) fleet.MemberFrame {
	for i := range asked {
		if asked[i] == s {
			m.Told[i] = distribution([]float64{100, 1000}, 0, requests, 0)
			m.Told[i].Sum = tokens
		}
	}
	return m
}

// judgeWorks judges works over five minutes, and no latency.
func judgeWorks(t *testing.T, baseline Baseline, members ...fleet.MemberFrame) *Report {
	t.Helper()
	return judgeDeparted(t, baseline, nil, members...)
}

func judgeDeparted(t *testing.T, baseline Baseline, departed []fleet.MemberFrame, members ...fleet.MemberFrame) *Report {
	t.Helper()
	f := frameOf(t, members...)
	f.Signals, f.Departed = asked, departed
	var judge Judge
	return judge.Judge(f, &Options{Work: true, Window: 5 * time.Minute, MinReplicas: 2, Baseline: baseline})
}

// TestBlackHole: a replica that fails fast takes most requests, and its peers
// fail none. There is no ratio to nothing, and no doubt.
func TestBlackHole(t *testing.T) {
	well := labour{fleet.Finished: 300, fleet.Errors: 0}
	report := judgeWorks(t, Peers, working(well), working(well), working(well), working(labour{fleet.Finished: 3000, fleet.Errors: 3000}))
	given(t, 1, report.Replicas[3].Work[errorRatio])
	given(t, 3000.0/3900, report.Work[errorRatio])
	refused(t, ZeroBaseline, report.Replicas[3].WorkRatio[errorRatio])
	assert.Equal(t, Figure{}, report.Replicas[0].Work[errorRatio], "none failed: that is known")
	assert.Equal(t, Figure{}, report.Replicas[0].WorkRatio[errorRatio], "nothing of something is nothing")
}

// TestWorkAgainstEachBaseline: 10, 20 and 60 of 100 requests failed.
func TestWorkAgainstEachBaseline(t *testing.T) {
	failing := func(n uint64) fleet.MemberFrame { return working(labour{fleet.Errors: n, fleet.Finished: 100}) }
	for baseline, want := range map[Baseline][3]float64{
		Peers:      {0.1 / 0.4, 0.2 / 0.35, 0.6 / 0.15},
		WholeFleet: {0.1 / 0.3, 0.2 / 0.3, 0.6 / 0.3},
		Median:     {0.5, 1, 3},
	} {
		report := judgeWorks(t, baseline, failing(10), failing(20), failing(60))
		given(t, 0.3, report.Work[errorRatio])
		for i := range want {
			given(t, want[i], report.Replicas[i].WorkRatio[errorRatio], "baseline %d, replica %d", baseline, i)
		}
	}
	refused(t, FewReplicas, judgeWorks(t, Median, failing(10)).Replicas[0].WorkRatio[errorRatio])
}

// TestRates: what is counted a second is over the whole window, and compared with
// those that were there for all of it.
func TestRates(t *testing.T) {
	made := func(tokens uint64) fleet.MemberFrame {
		return working(labour{fleet.GenerationTokens: tokens, fleet.Preemptions: tokens / 1000})
	}
	young, away := made(600_000), made(90_000)
	young.Warming, away.Unreachable = true, true
	gone := []fleet.MemberFrame{made(30_000)}
	report := judgeDeparted(t, Peers, gone, made(300_000), made(600_000), made(900_000), young, away)
	for i, want := range []float64{1000, 2000, 3000} {
		given(t, want, report.Replicas[i].Work[generationTokens])
		given(t, want/1000, report.Replicas[i].Work[preemptions])
	}
	given(t, 2.52e6/300, report.Work[generationTokens], "the fleet's is the sum of all that was made")
	given(t, 2.52e3/300, report.Work[preemptions])
	for i, want := range []float64{1000.0 / 2500, 1, 3000.0 / 1500} {
		given(t, want, report.Replicas[i].WorkRatio[generationTokens], "replica %d", i)
	}
	refused(t, Warming, report.Replicas[3].Work[generationTokens])
	refused(t, Warming, report.Replicas[3].WorkRatio[generationTokens])
	refused(t, NotReported, report.Replicas[4].Work[generationTokens], "who knows what it made since")
	given(t, 1.5, judgeDeparted(t, WholeFleet, gone, made(300_000), made(900_000), young).Replicas[1].WorkRatio[generationTokens])
}

// TestMeanLengths are those of the histogram, else of the tokens over the
// requests that ended; both are lengths, and one sum.
func TestMeanLengths(t *testing.T) {
	counted := working(labour{fleet.PromptTokens: 90_000, fleet.GenerationTokens: 6000, fleet.Finished: 100})
	observed := lengths(lengths(working(labour{fleet.PromptTokens: 7, fleet.Finished: 9}), fleet.PromptLength, 50, 15_000), fleet.OutputLength, 25, 5000)
	report := judgeWorks(t, Peers, counted, observed)
	given(t, 900, report.Replicas[0].Work[promptLength])
	given(t, 60, report.Replicas[0].Work[outputLength])
	given(t, 300, report.Replicas[1].Work[promptLength])
	given(t, 200, report.Replicas[1].Work[outputLength])
	given(t, 700, report.Work[promptLength], "105,000 tokens of 150 requests")
	given(t, 88, report.Work[outputLength], "11,000 of 125")
	given(t, 3, report.Replicas[0].WorkRatio[promptLength])
	given(t, 0.3, report.Replicas[0].WorkRatio[outputLength])

	broken := lengths(working(labour{fleet.PromptTokens: 800, fleet.Finished: 2}), fleet.PromptLength, 50, 15_000)
	for i := range broken.Told {
		broken.Told[i].SumKnown = false
	}
	given(t, 400, judgeWorks(t, Peers, broken).Work[promptLength], "the histogram's sum is not known")
}

func TestPrefixHitRatio(t *testing.T) {
	tokens := func(hits, queries uint64) fleet.MemberFrame {
		return working(labour{fleet.PrefixHits: hits, fleet.PrefixQueries: queries})
	}
	report := judgeWorks(t, WholeFleet, tokens(700, 1000), tokens(0, 3000))
	given(t, 0.7, report.Replicas[0].Work[prefixHits])
	assert.Equal(t, Figure{}, report.Replicas[1].Work[prefixHits], "nothing was found: that is known")
	given(t, 0.175, report.Work[prefixHits], "700 of 4000")
	given(t, 4, report.Replicas[0].WorkRatio[prefixHits])

	blocks := func(hits, queries uint64) fleet.MemberFrame {
		return working(labour{fleet.PrefixBlockHits: hits, fleet.PrefixBlockQueries: queries})
	}
	report = judgeWorks(t, Peers, blocks(30, 40), blocks(10, 40))
	given(t, 0.75, report.Replicas[0].Work[prefixHits])
	given(t, 0.5, report.Work[prefixHits])
	given(t, 3, report.Replicas[0].WorkRatio[prefixHits])

	report = judgeWorks(t, Peers, tokens(700, 1000), blocks(30, 40), tokens(1, 2))
	given(t, 0.7, report.Replicas[0].Work[prefixHits])
	given(t, 0.75, report.Replicas[1].Work[prefixHits])
	refused(t, MixedUnits, report.Work[prefixHits])
	refused(t, MixedUnits, report.Replicas[0].WorkRatio[prefixHits])

	both := working(labour{fleet.PrefixHits: 700, fleet.PrefixQueries: 1000, fleet.PrefixBlockHits: 30, fleet.PrefixBlockQueries: 40})
	report = judgeWorks(t, Peers, both, tokens(100, 1000))
	given(t, 0.7, report.Replicas[0].Work[prefixHits], "who tells both tells tokens")
	given(t, 0.4, report.Work[prefixHits])
}

func TestWhyAWorkIsWithheld(t *testing.T) {
	warming := working(labour{fleet.Errors: 1, fleet.Finished: 2})
	warming.Warming = true
	unreliable := working(labour{fleet.Errors: 1, fleet.Finished: 2})
	unreliable.Told[0].Unreliable = true
	for name, c := range map[string]struct {
		replica fleet.MemberFrame
		why     Reason
		fleet   Reason
	}{
		"nothing told":     {working(nil), NotReported, NotReported},
		"one side told":    {working(labour{fleet.Finished: 7}), NotReported, NotReported},
		"nothing ended":    {working(labour{fleet.Errors: 0, fleet.Finished: 0}), ZeroBaseline, ZeroBaseline},
		"more than all":    {working(labour{fleet.Errors: 3, fleet.Finished: 2}), Implausible, NotReported},
		"warming":          {warming, Warming, Given},
		"two processes":    {unreliable, Unreliable, NotReported},
		"it stands, alone": {working(labour{fleet.Errors: 1, fleet.Finished: 2}), Given, Given},
	} {
		report := judgeWorks(t, Peers, c.replica)
		assert.Equal(t, c.why.String(), report.Replicas[0].Work[errorRatio].Withheld.String(), name)
		assert.Equal(t, c.fleet.String(), report.Work[errorRatio].Withheld.String(), name)
		assert.NotEqual(t, Given, report.Replicas[0].WorkRatio[errorRatio].Withheld, name)
	}
}

// TestWorkThatIsNotAskedFor: by the options, or of the frame.
func TestWorkThatIsNotAskedFor(t *testing.T) {
	f := frameOf(t, working(labour{fleet.Errors: 1, fleet.Finished: 2, fleet.GenerationTokens: 3, fleet.PrefixHits: 1}))
	var judge Judge
	f.Signals = asked
	report := judge.Judge(f, &Options{})
	for at := range Works {
		refused(t, NotAsked, report.Work[at])
		refused(t, NotAsked, report.Replicas[0].Work[at])
		refused(t, NotAsked, report.Replicas[0].WorkRatio[at])
	}
	f.Signals = asked[:3] // finished, errors, and half of the prefix hits
	report = judge.Judge(f, &Options{Work: true})
	given(t, 0.5, report.Work[errorRatio])
	for _, at := range []int{prefixHits, generationTokens, preemptions, promptLength, outputLength} {
		refused(t, NotAsked, report.Replicas[0].Work[at], Works[at].Signal)
	}
}

// TestWorksSayWhatTheyAreMadeOf: whoever asks for that has them judged.
func TestWorksSayWhatTheyAreMadeOf(t *testing.T) {
	want := map[fleet.Signal][]fleet.Signal{
		fleet.Errors:           {fleet.Errors, fleet.Finished},
		fleet.PrefixHits:       {fleet.PrefixHits, fleet.PrefixQueries, fleet.PrefixBlockHits, fleet.PrefixBlockQueries},
		fleet.GenerationTokens: {fleet.GenerationTokens},
		fleet.Preemptions:      {fleet.Preemptions},
		fleet.PromptLength:     {fleet.PromptLength, fleet.PromptTokens, fleet.Finished},
		fleet.OutputLength:     {fleet.OutputLength, fleet.GenerationTokens, fleet.Finished},
	}
	for i := range Works {
		assert.Equal(t, want[Works[i].Signal], Works[i].Asks(), Works[i].Signal)
	}
	assert.Len(t, want, len(Works))
}

// TestErrorsOfOneReplica, over the window and over the alarm's pane, of which
// the frame tells only the first signals.
func TestErrorsOfOneReplica(t *testing.T) {
	f := frameOf(t, working(labour{fleet.Finished: 40, fleet.Errors: 10}))
	f.Signals = asked
	m := &f.Members[0]
	m.Recent = working(labour{fleet.Finished: 4, fleet.Errors: 1}).Told[:2]
	failed, all, known := errorsOf(f, m.Told)
	assert.Equal(t, []any{uint64(10), uint64(40), true}, []any{failed, all, known})
	failed, all, known = errorsOf(f, m.Recent)
	assert.Equal(t, []any{uint64(1), uint64(4), true}, []any{failed, all, known})
	for _, told := range [][]fleet.Distribution{m.Recent[:1], working(labour{fleet.Finished: 4}).Told} {
		_, _, known = errorsOf(f, told)
		assert.False(t, known)
	}
}
