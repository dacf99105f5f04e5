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

// asked makes all replicas answer 60 requests, those of the canary with prompts
// that are so many times as long; latency goes with them.
func (s *stage) asked(random *rand.Rand, longer float64) {
	s.answerAll(random, well, served{requests: 60, slower: longer})
	for i := range s.frame.Members {
		m, length := &s.frame.Members[i], 300.0
		if isOf(m, "next") {
			length *= longer
		}
		s.tell(m, fleet.PromptLength, lengthBounds, lognormals(random, 60, length, 0.6)...)
	}
}

// Longer prompts take longer to answer: that is no fault of the version.
func TestTrafficMix(t *testing.T) {
	s, random := newStage(DefaultOptions(testPane), 17, 3), seeded(3)
	var r *Report
	mixed := 0
	for range 60 {
		s.asked(random, 1.3)
		r = s.end()
		require.Equal(t, Inconclusive, r.Verdict)
		if r.Reasons.Has(TrafficMix) {
			mixed++
		}
	}
	assert.True(t, r.Reasons.Has(TrafficMix))
	assert.Greater(t, mixed, 40)
	for i := range r.Measures {
		assert.NotEqual(t, Fail, r.Measures[i].Verdict, r.Measures[i].Name)
	}
	assert.True(t, measureOf(r, "prompt_length").Reasons.Has(TrafficMix))
}

// What prompts do to latency does not fail a canary before the prompts are noticed.
func TestTrafficMixIsNoticedInTime(t *testing.T) {
	failed := 0
	for seed := range uint64(40) {
		s, random := newStage(DefaultOptions(testPane), 8, 2), seeded(9000+seed)
		r := s.play(15, func() { s.asked(random, 1.3) })
		if r.Verdict == Fail {
			failed++
		} else {
			assert.True(t, r.Reasons.Has(TrafficMix))
		}
	}
	assert.LessOrEqual(t, failed, 3)
}

func TestShorterPromptsAreAMixToo(t *testing.T) {
	s, random := newStage(DefaultOptions(testPane), 17, 3), seeded(4)
	r := s.play(30, func() { s.asked(random, 1/1.4) })
	assert.True(t, r.Reasons.Has(TrafficMix))
	assert.Equal(t, Inconclusive, r.Verdict)
}

// When the canary is asked what its baseline is, it is judged.
func TestTrafficMixEnds(t *testing.T) {
	s, random := newStage(DefaultOptions(testPane), 17, 3), seeded(5)
	require.True(t, s.play(8, func() { s.asked(random, 1.5) }).Reasons.Has(TrafficMix))
	r := s.play(120, func() { s.asked(random, 1) })
	assert.False(t, r.Reasons.Has(TrafficMix))
	assert.Equal(t, Pass, r.Verdict)
	assert.Equal(t, [ArmCount]uint64{127 * 180, 127 * 17 * 60}, measureOf(r, "prompt_length").Observations)
}

// A pane in which nothing tells of the mix does not end it.
func TestTrafficMixStandsWhileAnArmIsAway(t *testing.T) {
	s, random := newStage(DefaultOptions(testPane), 6, 3), seeded(6)
	require.True(t, s.play(10, func() { s.asked(random, 3) }).Reasons.Has(TrafficMix))
	s.gone("next")
	assert.True(t, s.end().Reasons.Has(TrafficMix))
}

// What one arm does in panes in which the other does nothing is not compared.
func TestExposure(t *testing.T) {
	s := newStage(DefaultOptions(testPane), 3, 2)
	s.alike(10)
	s.end()
	var r *Report
	for _, idle := range []string{"", "next", "stable", ""} {
		s.alike(10)
		for _, m := range s.of(idle) {
			s.tell(m, fleet.TTFT, ttftBounds)
			s.count(m, fleet.Finished, 0)
			s.count(m, fleet.Errors, 0)
		}
		r = s.end()
	}
	assert.Equal(t, [ArmCount]uint64{2 * 2 * 10, 2 * 3 * 10}, measureOf(r, "ttft").Observations)
	assert.Equal(t, [ArmCount]uint64{2 * 2 * 10, 2 * 3 * 10}, measureOf(r, "errors").Observations)
}

func TestOneArmLacksAMeasure(t *testing.T) {
	for _, lacks := range []string{"next", "stable"} {
		s, random := newStage(DefaultOptions(testPane), 4, 2), seeded(7)
		var r *Report
		for range 60 {
			s.answerAll(random, well, well)
			for _, m := range s.of(lacks) {
				m.Told[s.frame.Index(fleet.E2E)] = fleet.Distribution{}
			}
			r = s.end()
			require.NotEqual(t, Pass, r.Verdict)
		}
		e2e := measureOf(r, "e2e")
		assert.Equal(t, Inconclusive, e2e.Verdict)
		assert.True(t, e2e.Reasons.Has(NotComparable))
		assert.True(t, r.Reasons.Has(NotComparable))
		assert.Equal(t, Pass, measureOf(r, "ttft").Verdict)
	}
}

// What neither arm tells is left out; so is a measure that nobody watches.
func TestUntoldMeasuresDoNotMatter(t *testing.T) {
	s, random := newStage(DefaultOptions(testPane), 17, 3), seeded(8)
	r := s.play(60, func() { s.answerAll(random, well, well) })
	assert.Equal(t, Pass, r.Verdict)
	assert.Nil(t, measureOf(r, "itl"))
}

// Two processes behind one name tell nothing that can be counted.
func TestUnreliable(t *testing.T) {
	s := newStage(DefaultOptions(testPane), 3, 2)
	r := s.play(6, func() {
		s.alike(10)
		m := s.of("next")[0]
		for i := range m.Told {
			m.Told[i].Unreliable = true
		}
	})
	for _, name := range []string{"ttft", "errors"} {
		assert.Equal(t, [ArmCount]uint64{5 * 10, 5 * 3 * 10}, measureOf(r, name).Observations, name)
	}
}

// Prefix caches are counted in tokens by some engines and in blocks by others: only
// like is compared with like.
func TestBlocksAgainstTokens(t *testing.T) {
	tokens := func(s *stage, m *fleet.MemberFrame) {
		s.count(m, fleet.PrefixHits, 60)
		s.count(m, fleet.PrefixQueries, 100)
	}
	blocks := func(s *stage, m *fleet.MemberFrame) {
		s.count(m, fleet.PrefixBlockHits, 3)
		s.count(m, fleet.PrefixBlockQueries, 5)
	}
	both := func(s *stage, m *fleet.MemberFrame) {
		tokens(s, m)
		blocks(s, m)
	}
	for name, c := range map[string]struct {
		baseline, canary func(*stage, *fleet.MemberFrame)
		observed         [ArmCount]uint64
		comparable       bool
	}{
		"tokens":                 {tokens, tokens, [ArmCount]uint64{2 * 5 * 100, 3 * 5 * 100}, true},
		"blocks":                 {blocks, blocks, [ArmCount]uint64{2 * 5 * 5, 3 * 5 * 5}, true},
		"blocks of both":         {both, blocks, [ArmCount]uint64{2 * 5 * 5, 3 * 5 * 5}, true},
		"tokens first":           {both, both, [ArmCount]uint64{2 * 5 * 100, 3 * 5 * 100}, true},
		"tokens and blocks":      {tokens, blocks, [ArmCount]uint64{}, false},
		"the canary counts none": {tokens, func(*stage, *fleet.MemberFrame) {}, [ArmCount]uint64{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(DefaultOptions(testPane), 3, 2)
			r := s.play(6, func() {
				s.alike(10)
				for _, m := range s.of("stable") {
					c.baseline(s, m)
				}
				for _, m := range s.of("next") {
					c.canary(s, m)
				}
			})
			hits := measureOf(r, "prefix_hits")
			require.NotNil(t, hits)
			assert.Equal(t, c.observed, hits.Observations)
			assert.Equal(t, !c.comparable, hits.Reasons.Has(NotComparable))
		})
	}
}

// More hits than look-ups is no count.
func TestMorePartsThanThereAre(t *testing.T) {
	s := newStage(DefaultOptions(testPane), 3, 2)
	r := s.play(6, func() {
		s.alike(10)
		for i := range s.frame.Members {
			s.count(&s.frame.Members[i], fleet.PrefixQueries, 100)
			s.count(&s.frame.Members[i], fleet.PrefixHits, 50)
		}
		s.count(s.of("next")[0], fleet.PrefixHits, 101)
	})
	assert.Equal(t, [ArmCount]uint64{5 * 100, 5 * 300}, measureOf(r, "prefix_hits").Observations)
}
