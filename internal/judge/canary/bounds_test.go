// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

var (
	coarse = []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10}
	shared = []float64{0.1, 0.3, 0.5, 0.8, 1, 3, 5, 8}
	other  = []float64{0.15, 0.35, 0.55, 0.95, 1.7, 4.5, 9}
)

// firstTokens makes all replicas tell 60 times to first token, on bounds of each
// arm's own.
func (s *stage) firstTokens(random *rand.Rand, slower float64, baseline, canary []float64) {
	for i := range s.frame.Members {
		m := &s.frame.Members[i]
		if isOf(m, "next") {
			s.tell(m, fleet.TTFT, canary, lognormals(random, 60, 0.3*slower, 0.6)...)
		} else {
			s.tell(m, fleet.TTFT, baseline, lognormals(random, 60, 0.3, 0.6)...)
		}
	}
}

// Where the arms have other buckets, the bounds of both are compared at: evidence
// and figures come from there.
func TestOnlySharedBounds(t *testing.T) {
	for name, swapped := range map[string]bool{"baseline": false, "canary": true} {
		t.Run(name+" has the coarse ones", func(t *testing.T) {
			a, b := coarse, shared
			if swapped {
				a, b = b, a
			}
			s, random := newStage(DefaultOptions(testPane), 6, 3), seeded(9)
			r := s.play(15, func() { s.firstTokens(random, 2, a, b) })
			ttft := measureOf(r, "ttft")
			assert.Equal(t, Fail, ttft.Verdict)
			assert.Contains(t, []float64{0.1, 0.5, 1, 5}, ttft.Boundary.Value)
			assert.Equal(t, [ArmCount]uint64{14 * 180, 14 * 360}, ttft.Observations)
		})
	}
}

// Buckets that change while the canary runs: evidence goes on at those that stay.
func TestBoundsChangeMidRun(t *testing.T) {
	s, random := newStage(DefaultOptions(testPane), 6, 3), seeded(10)
	s.play(10, func() { s.firstTokens(random, 1, coarse, coarse) })
	r := s.play(10, func() { s.firstTokens(random, 1, coarse, shared) })
	ttft := measureOf(r, "ttft")
	assert.Equal(t, [ArmCount]uint64{19 * 180, 19 * 360}, ttft.Observations)
	assert.NotEqual(t, Fail, ttft.Verdict)
	assert.False(t, ttft.Reasons.Has(NotComparable))

	// By hand: none of the bounds 0.1, 0.5, 1 and 5 lies between the lowest and the
	// median of 0.3 but the first, so the median is between 0.1 and 0.5.
	for arm := range ttft.Statistics[0].Values {
		assert.InDelta(t, 0.3, ttft.Statistics[0].Values[arm].Value, 0.1)
	}
}

func TestNoBoundInCommon(t *testing.T) {
	for name, arms := range map[string][2]int{"baseline observes more": {6, 3}, "canary observes more": {3, 3}} {
		t.Run(name, func(t *testing.T) {
			s, random := newStage(nextIs(DefaultOptions(testPane)), arms[0], arms[1]), seeded(11)
			r := s.play(10, func() {
				s.firstTokens(random, 3, coarse, other)
				for _, m := range s.of("next") {
					s.tell(m, fleet.TTFT, other, lognormals(random, 100, 0.9, 0.6)...)
				}
			})
			ttft := measureOf(r, "ttft")
			assert.Equal(t, Inconclusive, ttft.Verdict)
			assert.True(t, ttft.Reasons.Has(NotComparable))
			assert.True(t, r.Reasons.Has(NotComparable))
		})
	}
}

// Both arms get other bounds at once, of which none is an old one: it goes on with
// those, and a verdict that was given stands.
func TestNoBoundStays(t *testing.T) {
	s, random := newStage(DefaultOptions(testPane), 6, 3), seeded(12)
	require.Equal(t, Fail, s.play(20, func() { s.firstTokens(random, 2, coarse, coarse) }).Verdict)
	r := s.play(10, func() { s.firstTokens(random, 1, other, other) })
	ttft := measureOf(r, "ttft")
	assert.Equal(t, Fail, ttft.Verdict)
	assert.Equal(t, Fail, r.Verdict)
	assert.NotZero(t, ttft.Observations[Canary])
	assert.Less(t, ttft.Observations[Canary], uint64(11*180))
}

// exponential makes a replica tell values in buckets of that scale, as a native
// histogram does: of those between the least and the largest value.
func (s *stage) exponential(m *fleet.MemberFrame, signal fleet.Signal, scale int, values ...float64) {
	index := func(v float64) int { return int(math.Ceil(math.Ldexp(math.Log2(v), scale))) - 1 }
	first, last := math.MaxInt, math.MinInt
	for _, v := range values {
		first, last = min(first, index(v)), max(last, index(v))
	}
	layout := s.layouts.InternExponential(window.Exponential{Scale: scale, First: first, Buckets: last - first + 1, Unit: 1})
	e, _ := layout.Exponential()
	d := fleet.Distribution{Layout: layout, Counts: make([]uint64, layout.Width()), SumKnown: true}
	for _, v := range values {
		d.Counts[1+(index(v)>>(scale-e.Scale))-e.First]++
		d.Sum += v
	}
	m.Told[s.frame.Index(signal)] = d
}

// Scales of exponential buckets fall as values spread out: each keeps the bounds of
// the coarser.
func TestExponentialBucketsOfChangingScale(t *testing.T) {
	for name, c := range map[string]struct {
		slower  float64
		verdict Verdict
	}{"as fast": {1, Pass}, "twice as slow": {2, Fail}} {
		t.Run(name, func(t *testing.T) {
			s, random := newStage(DefaultOptions(testPane), 17, 3), seeded(13)
			var r *Report
			for pane := range 90 {
				for i := range s.frame.Members {
					m, median, scale := &s.frame.Members[i], 0.3, 3-pane/30
					if isOf(m, "next") {
						median *= c.slower
						scale = 4 - pane/30
					}
					s.exponential(m, fleet.TTFT, scale, lognormals(random, 60, median, 0.6)...)
				}
				r = s.end()
			}
			ttft := measureOf(r, "ttft")
			assert.Equal(t, c.verdict, r.Verdict)
			assert.Equal(t, [ArmCount]uint64{89 * 180, 89 * 17 * 60}, ttft.Observations)
			assert.InEpsilon(t, 0.3*c.slower, ttft.Statistics[0].Values[Canary].Value, 0.15)
			assert.InEpsilon(t, 0.3, ttft.Statistics[0].Values[Baseline].Value, 0.15)
		})
	}
}
