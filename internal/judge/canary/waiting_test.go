// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// lasting makes a replica answer ten requests that all take so long.
func (s *stage) lasting(m *fleet.MemberFrame, seconds float64) {
	s.tell(m, fleet.TTFT, ttftBounds, repeated(10, 0.3)...)
	s.tell(m, fleet.E2E, ttftBounds, repeated(10, seconds)...)
	s.count(m, fleet.Finished, 10)
}

// The 99th percentile of requests that all lie in one bucket of e2e is at 99 % of
// it: 159.2 s between 80 s and 160 s, 31.68 s of that up to 32 s. A replica that first
// answers in pane 6 counts from the pane that ends so long after it.
func TestBurnIn(t *testing.T) {
	for name, c := range map[string]struct {
		seconds float64
		first   int // pane that counts
	}{
		"at least a pane":       {30, 7},
		"p99 of e2e":            {150, 9},
		"at most burn_in":       {2000, 21},
		"saturated: as capped":  {5000, 21},
		"up to the end of pane": {50, 8}, // p99 in (40, 80]: 79.6 s
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(DefaultOptions(testPane), 4, 3)
			for range 25 {
				for _, m := range s.of("stable") {
					s.lasting(m, c.seconds)
				}
				for _, m := range s.of("next") {
					if s.panes >= 5 {
						s.lasting(m, c.seconds)
					} else {
						s.count(m, fleet.Finished, 0)
					}
				}
				r := s.end()
				if s.panes >= 6 {
					require.Equal(t, s.panes < c.first, r.Reasons.Has(BurnIn), "pane %d", s.panes)
				}
				if s.panes < c.first {
					require.Zero(t, r.Since)
					continue
				}
				require.Equal(t, minute(c.first-1), r.Since)
				require.Equal(t, uint64(30*(s.panes-c.first+1)), measureOf(r, "ttft").Observations[Canary])
			}
		})
	}
}

// Both variants that serve from the first pane on burn in as well.
func TestBurnInFromTheFirstPane(t *testing.T) {
	s := newStage(DefaultOptions(testPane), 3, 2)
	r := s.play(10, func() {
		for i := range s.frame.Members {
			s.lasting(&s.frame.Members[i], 150)
		}
	})
	assert.Equal(t, minute(3), r.Since)
	assert.Equal(t, [ArmCount]uint64{2 * 10 * 7, 3 * 10 * 7}, measureOf(r, "ttft").Observations)
}

// longPlay is a stage of canaries that count, of requests of 159.2 s.
func longPlay(t *testing.T, canaries int) (s *stage, observed uint64, next func() uint64) {
	t.Helper()
	s = newStage(DefaultOptions(testPane), 3, canaries)
	for i := range s.frame.Members {
		s.frame.Members[i].Started = 1
	}
	next = func() uint64 {
		for i := range s.frame.Members {
			s.lasting(&s.frame.Members[i], 150)
		}
		return measureOf(s.end(), "ttft").Observations[Canary]
	}
	for range 3 {
		for i := range s.frame.Members {
			s.lasting(&s.frame.Members[i], 150)
		}
		s.end()
	}
	for range 7 {
		observed = next()
	}
	return s, observed, next
}

func TestANewReplicaBurnsIn(t *testing.T) {
	s, before, next := longPlay(t, 1)
	s.enter("next", 1)
	var grown []uint64
	for range 5 {
		now := next()
		grown = append(grown, now-before)
		before = now
	}
	assert.Equal(t, []uint64{10, 10, 10, 20, 20}, grown)
}

func TestARestartedProcessBurnsIn(t *testing.T) {
	s, before, next := longPlay(t, 2)
	s.of("next")[0].Started = 500
	var grown []uint64
	for range 5 {
		now := next()
		grown = append(grown, now-before)
		before = now
	}
	assert.Equal(t, []uint64{10, 10, 10, 20, 20}, grown)
}

// cached makes all replicas find so much of each 100 tokens that they look up.
func (s *stage) cached(baseline, canary uint64) {
	s.alike(10)
	for i := range s.frame.Members {
		m := &s.frame.Members[i]
		s.count(m, fleet.PrefixQueries, 100)
		hits := baseline
		if isOf(m, "next") {
			hits = canary
		}
		s.count(m, fleet.PrefixHits, hits)
	}
}

func TestColdCache(t *testing.T) {
	for name, c := range map[string]struct {
		baseline uint64
		canary   []uint64 // pane by pane; the last stands
		first    int      // pane that counts
	}{
		"as warm":                  {60, []uint64{60}, 2},
		"80 % is warm":             {60, []uint64{0, 20, 30, 40, 47, 48}, 6},
		"for burn_in at most":      {60, []uint64{10}, 16},
		"warmer than the baseline": {60, []uint64{90}, 2},
		"no cache to speak of":     {4, []uint64{0}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(DefaultOptions(testPane), 4, 2)
			for range 20 {
				s.cached(c.baseline, c.canary[min(s.panes, len(c.canary)-1)])
				r := s.end()
				require.Equal(t, s.panes > 1 && s.panes < c.first, r.Reasons.Has(ColdCache), "pane %d", s.panes)
				if s.panes < c.first {
					require.Zero(t, r.Since)
					require.Equal(t, Inconclusive, r.Verdict)
				} else {
					require.Equal(t, minute(c.first-1), r.Since)
				}
			}
		})
	}
}

// Once warm, a cache that loses is a measure and no reason to wait.
func TestTheCacheIsWaitedForOnce(t *testing.T) {
	s := newStage(DefaultOptions(testPane), 4, 2)
	s.play(3, func() { s.cached(60, 60) })
	r := s.play(5, func() { s.cached(60, 10) })
	assert.False(t, r.Reasons.Has(ColdCache))
	assert.Equal(t, [ArmCount]uint64{7 * 200, 7 * 400}, measureOf(r, "prefix_hits").Observations)
}

func TestBaselineOfEqualAge(t *testing.T) {
	o := DefaultOptions(testPane)
	o.AgeWithin = 10 * time.Minute
	s := newStage(o, 4, 2)
	stable, next := s.of("stable"), s.of("next")
	const born = 10_000
	next[0].Started, next[1].Started = born, born+60
	for i, started := range []float64{born - 600, born - 601, born + 660, born + 661} {
		stable[i].Started = started
	}
	r := s.tens(5)
	require.NotNil(t, r)
	assert.Equal(t, [ArmCount]int{2, 2}, r.Replicas)
	assert.Equal(t, [ArmCount]uint64{80, 80}, measureOf(r, "ttft").Observations)
	assert.False(t, r.Reasons.Has(NoBaseline))
	assert.InDelta(t, 300-(born+30), r.Age[Canary].Value, 1e-9)
}

func TestNoBaselineOfEqualAge(t *testing.T) {
	o := DefaultOptions(testPane)
	o.AgeWithin = 10 * time.Minute
	for name, told := range map[string]bool{"starts are told": true, "as long as it has been seen": false} {
		t.Run(name, func(t *testing.T) {
			s := newStage(o, 3, 0)
			if told {
				for i := range s.frame.Members {
					s.frame.Members[i].Started = 1
				}
			}
			s.tens(60)
			s.enter("next", 1)
			if told {
				s.of("next")[0].Started = 3600
			}
			r := s.tens(15)
			require.NotNil(t, r)
			assert.True(t, r.Reasons.Has(NoBaseline))
			assert.Equal(t, Inconclusive, r.Verdict)
			assert.Zero(t, r.Since)
		})
	}
}

// Burn-in that is over is over, whatever requests take later on.
func TestBurnInIsOver(t *testing.T) {
	s, before, next := longPlay(t, 1)
	s.tell(s.of("stable")[0], fleet.E2E, ttftBounds, repeated(10, 2000)...)
	for _, m := range s.of("stable")[1:] {
		s.lasting(m, 150)
	}
	s.lasting(s.of("next")[0], 150)
	after := measureOf(s.end(), "ttft").Observations[Canary]
	assert.Equal(t, before+10, after)
	assert.Equal(t, after+10, next())
}
