// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// watching judges by these measures.
func watching(names ...string) Options {
	o := DefaultOptions(testPane)
	o.Watch = names
	return o
}

// ending makes a replica end 100 requests: so many by length and by abort, and the
// others by themselves.
func (s *stage) ending(random *rand.Rand, m *fleet.MemberFrame, length, abort float64) {
	var counts [3]uint64
	for range 100 {
		switch p := random.Float64(); {
		case p < abort:
			counts[0]++
		case p < abort+length:
			counts[1]++
		default:
			counts[2]++
		}
	}
	m.Reasons = []fleet.ReasonCount{{Reason: "abort", Count: counts[0]}, {Reason: "length", Count: counts[1]}, {Reason: "stop", Count: counts[2]}}
	s.count(m, fleet.Finished, 100)
}

func TestFinishReasons(t *testing.T) {
	for name, c := range map[string]struct {
		length, abort float64 // of the canary; the baseline has 0.1 and 0.01
		verdict       Verdict
		driver        string
	}{
		"the same":           {0.1, 0.01, Pass, ""},
		"more by length":     {0.2, 0.01, Fail, "length"},
		"more aborted":       {0.1, 0.06, Fail, "abort"},
		"less by length":     {0.02, 0.01, Pass, ""},
		"all by themselves":  {0, 0, Pass, ""},
		"hardly any by stop": {0.9, 0.01, Fail, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, random := newStage(watching(FinishReasons), 8, 3), seeded(14)
			r := s.play(90, func() {
				for _, m := range s.of("stable") {
					s.ending(random, m, 0.1, 0.01)
				}
				for _, m := range s.of("next") {
					s.ending(random, m, c.length, c.abort)
				}
			})
			assert.Equal(t, c.verdict, r.Verdict)
			reasons := measureOf(r, FinishReasons)
			assert.Equal(t, [ArmCount]uint64{89 * 300, 89 * 800}, reasons.Observations)
			require.Len(t, reasons.Statistics, 3)
			shares := map[string]float64{}
			for _, s := range reasons.Statistics {
				shares[s.Name] = s.Values[Canary].Value
			}
			assert.InDelta(t, c.length, shares["length"], 0.01)
			assert.InDelta(t, c.abort, shares["abort"], 0.01)
			assert.InDelta(t, 1, shares["length"]+shares["abort"]+shares["stop"], 1e-12)
		})
	}
}

// A reason that nobody has seen before is one all the same.
func TestAReasonOfMinuteTwenty(t *testing.T) {
	s := newStage(watching(FinishReasons), 4, 2)
	pane := func(repetition uint64) *Report {
		for i := range s.frame.Members {
			m := &s.frame.Members[i]
			s.count(m, fleet.Finished, 100)
			m.Reasons = []fleet.ReasonCount{{Reason: "length", Count: 10}, {Reason: "stop", Count: 90}}
			if isOf(m, "next") && repetition > 0 {
				m.Reasons = []fleet.ReasonCount{{Reason: "length", Count: 10}, {Reason: "repetition", Count: repetition}, {Reason: "stop", Count: 90 - repetition}}
			}
		}
		return s.end()
	}
	for range 20 {
		pane(0)
	}
	var r *Report
	for range 10 {
		r = pane(5)
	}
	assert.Equal(t, Fail, r.Verdict)
	statistics := measureOf(r, FinishReasons).Statistics
	require.Len(t, statistics, 3)
	for _, s := range statistics {
		if s.Name == "repetition" {
			// 10 panes of 10 of 200 requests, of 29 panes.
			assert.InDelta(t, 100.0/(29*200), s.Values[Canary].Value, 1e-12)
			assert.Equal(t, withheld(ZeroBaseline), s.Ratio)
		}
	}
}

func TestMoreReasonsThanAreTold(t *testing.T) {
	s := newStage(watching(FinishReasons), 2, 1)
	r := s.play(3, func() {
		for i := range s.frame.Members {
			m := &s.frame.Members[i]
			s.count(m, fleet.Finished, 26)
			for c := 'a'; c <= 'z'; c++ {
				m.Reasons = append(m.Reasons, fleet.ReasonCount{Reason: string(c), Count: 1})
			}
		}
	})
	assert.Len(t, measureOf(r, FinishReasons).Statistics, mostReasons)
}

func TestOutputLength(t *testing.T) {
	for name, c := range map[string]struct {
		longer  float64
		verdict Verdict
	}{"shorter": {1 / 1.4, Fail}, "as long": {1, Pass}, "longer": {1.4, Fail}} {
		t.Run(name, func(t *testing.T) {
			s, random := newStage(watching("output_length"), 17, 3), seeded(15)
			r := s.play(60, func() {
				s.alike(60)
				for i := range s.frame.Members {
					m, length := &s.frame.Members[i], 200.0
					if isOf(m, "next") {
						length *= c.longer
					}
					s.tell(m, fleet.OutputLength, lengthBounds, lognormals(random, 60, length, 0.7)...)
				}
			})
			assert.Equal(t, c.verdict, r.Verdict)
		})
	}
}

func TestPrefixHits(t *testing.T) {
	for name, c := range map[string]struct {
		hits    uint64 // of 1000 tokens of 20 requests, where the baseline has 600
		verdict Verdict
	}{"fewer": {400, Fail}, "as many": {600, Pass}, "more": {900, Pass}} {
		t.Run(name, func(t *testing.T) {
			s := newStage(watching("prefix_hits"), 4, 2)
			s.play(3, func() { s.cached(60, 60) }) // a warm cache
			r := s.play(120, func() {
				for i := range s.frame.Members {
					m := &s.frame.Members[i]
					s.count(m, fleet.Finished, 20)
					s.count(m, fleet.PrefixQueries, 1000)
					s.count(m, fleet.PrefixHits, 600)
					if isOf(m, "next") {
						s.count(m, fleet.PrefixHits, c.hits)
					}
				}
			})
			assert.Equal(t, c.verdict, r.Verdict)
		})
	}
}

// Less generated at each replica is for the worse, more is not; a canary that
// answers and generates nothing does less.
func TestGenerationTokens(t *testing.T) {
	for name, c := range map[string]struct {
		times   float64
		verdict Verdict
	}{"nothing": {0, Fail}, "less": {0.7, Fail}, "as much": {1, Pass}, "more": {1.5, Pass}} {
		t.Run(name, func(t *testing.T) {
			s, random := newStage(watching("generation_tokens"), 4, 2), seeded(16)
			r := s.play(60, func() {
				s.alike(10)
				demand := 6000 * (1 + random.Float64())
				for i := range s.frame.Members {
					m, tokens := &s.frame.Members[i], demand*(0.98+0.04*random.Float64())
					if isOf(m, "next") {
						tokens *= c.times
					}
					s.count(m, fleet.GenerationTokens, uint64(tokens))
				}
			})
			assert.Equal(t, c.verdict, r.Verdict)
			rate := measureOf(r, "generation_tokens")
			assert.Equal(t, [ArmCount]uint64{59, 59}, rate.Observations)
			// 9,000 tokens a minute on average.
			assert.InEpsilon(t, 150, rate.Statistics[0].Values[Baseline].Value, 0.1)
			assert.InDelta(t, c.times, rate.Statistics[0].Ratio.Value, 0.02)
			assert.LessOrEqual(t, rate.Statistics[0].Low.Value, rate.Statistics[0].Ratio.Value)
			assert.GreaterOrEqual(t, rate.Statistics[0].High.Value, rate.Statistics[0].Ratio.Value)
		})
	}
}
