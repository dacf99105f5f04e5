// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

var itlBounds = []float64{0.010, 0.012, 0.014, 0.016, 0.018, 0.020, 0.022, 0.025, 0.028, 0.032, 0.036, 0.040, 0.050}

// clumps makes a replica end so many requests, each of 100 tokens that all come at
// one pace.
func (s *stage) clumps(random *rand.Rand, m *fleet.MemberFrame, requests int, pace float64) {
	layout := s.layouts.Intern(itlBounds)
	d := fleet.Distribution{Layout: layout, Counts: make([]uint64, layout.Width())}
	for _, itl := range lognormals(random, requests, pace, 0.3) {
		i, _ := slices.BinarySearch(itlBounds, itl)
		d.Counts[i] += 100
	}
	m.Told[s.frame.Index(fleet.ITL)] = d
	s.count(m, fleet.Finished, uint64(requests))
}

// Tokens of one request are alike: of 3,000 a minute there are 30 that count. However
// few replicas tell of it, a healthy canary does not fail by them.
func TestClumpsOfTokens(t *testing.T) {
	for _, baseline := range []int{1, 2, 3, 4, 8} {
		t.Run(fmt.Sprint(baseline), func(t *testing.T) {
			const runs = 60
			failed := 0
			for seed := range uint64(runs) {
				s, random := newStage(nextIs(watching("itl")), baseline, 1), seeded(1000+seed)
				r := s.play(30, func() {
					for i := range s.frame.Members {
						s.clumps(random, &s.frame.Members[i], 30, 0.02)
					}
				})
				if r.Verdict == Fail {
					failed++
				}
			}
			assert.LessOrEqual(t, failed, runs/20)
		})
	}
}

// The control: a canary that is slower is found through the clumps.
func TestClumpsDoNotHide(t *testing.T) {
	for _, baseline := range []int{1, 8} {
		s, random := newStage(nextIs(watching("itl")), baseline, 1), seeded(27)
		r := s.play(40, func() {
			for i := range s.frame.Members {
				m, pace := &s.frame.Members[i], 0.02
				if isOf(m, "next") {
					pace = 0.03
				}
				s.clumps(random, m, 30, pace)
			}
		})
		assert.Equal(t, Fail, r.Verdict, "%d", baseline)
	}
}

// Of one replica each nothing is known of how far replicas lie apart: observations
// count as many requests as there were. The baseline's make 100 tokens each and the
// canary's 50, so 75 make one; of the canary's 1000, 40 % lie above 1.1 s.
func TestOneAgainstOneCountsRequests(t *testing.T) {
	bounds := []float64{1, 1.1}
	s := newStage(nextIs(weighing("itl")), 1, 1)
	s.alike(10)
	s.end()
	var at1, at11, means []beyond
	var all []buckets
	for range 4 {
		for i := range s.frame.Members {
			m, tokens := &s.frame.Members[i], 2000
			if isOf(m, "next") {
				tokens = 1000
			}
			s.tell(m, fleet.ITL, bounds, append(repeated(400, 2), repeated(tokens-400, 0.5)...)...)
			s.count(m, fleet.Finished, 20)
		}
		// A canary just as slow as tolerated may have above 1.1 s what its baseline has
		// above 1 s, and above 1 s everything.
		at1 = append(at1, beyond{400 / 75., 1000 / 75., (400 + 2000) / 3000.})
		at11 = append(at11, beyond{400 / 75., 1000 / 75., (400 + 400) / 3000.})
		all = append(all, buckets{[]float64{600, 0, 400}, []float64{600, 1600, 800}})
		means = append(means, beyond{1, 1, 0.5}) // 1.1 s of 0.8 s is more than 1.1 times
		e := allWays(eOfScores(all, 75, shifts.fail), (eValue(at1, 1.25, 1.6, 3)+eValue(at11, 1.25, 1.6, 3))/2, eValue(means, 1.6, 3, 19))
		require.InDelta(t, evidenceOf(e, 20), measureOf(s.end(), "itl").Evidence[Fail], 1e-9)
	}
}

// A request that ends in none of the panes is one observation for as long as it
// takes, whatever its tokens do.
func TestRequestsThatDoNotEnd(t *testing.T) {
	s := newStage(nextIs(watching("itl")), 1, 1)
	s.alike(10)
	s.end()
	r := s.play(10, func() {
		for i := range s.frame.Members {
			m, pace := &s.frame.Members[i], 0.015
			if isOf(m, "next") {
				pace = 0.023
			}
			s.tell(m, fleet.ITL, itlBounds, repeated(2000, pace)...)
			s.count(m, fleet.Finished, 0)
		}
	})
	assert.Equal(t, Inconclusive, r.Verdict)
}

// Replicas whose errors come in bursts, each minute at others: in a minute a replica
// fails 2 % or 10 % of its requests.
func TestBursts(t *testing.T) {
	play := func(seed uint64, times float64) *Report {
		s, random := newStage(watching("errors"), 8, 1), seeded(seed)
		return s.play(40, func() {
			for i := range s.frame.Members {
				m, share, failed := &s.frame.Members[i], 0.02, uint64(0)
				if random.IntN(2) == 0 {
					share = 0.1
				}
				if isOf(m, "next") {
					share *= times
				}
				for range 300 {
					if random.Float64() < share {
						failed++
					}
				}
				s.count(m, fleet.Finished, 300)
				s.count(m, fleet.Errors, failed)
			}
		})
	}
	const runs = 60
	failed := 0
	for seed := range uint64(runs) {
		if play(2000+seed, 1).Verdict == Fail {
			failed++
		}
	}
	assert.LessOrEqual(t, failed, runs/20)
	assert.Equal(t, Fail, play(28, 3).Verdict)
}
