// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// A pass needs all watched measures that are told; the one that is furthest from it
// drives the verdict until then.
func TestPass(t *testing.T) {
	s, random := newStage(DefaultOptions(testPane), 17, 3), seeded(19)
	passed := false
	for range 60 {
		s.answerAll(random, well, well)
		r := s.end()
		if r.Since == 0 {
			continue
		}
		all, least := true, 0
		for i := range r.Measures {
			m := &r.Measures[i]
			require.True(t, m.Watched)
			all = all && m.Verdict == Pass
			if m.Evidence[Pass] < r.Measures[least].Evidence[Pass] {
				least = i
			}
		}
		passed = passed || all
		require.Equal(t, passed, r.Verdict == Pass)
		require.Equal(t, least, r.Driver)
	}
	assert.True(t, passed)
}

// A verdict that is given stands, though nothing is wrong any more.
func TestAFailStands(t *testing.T) {
	s, random := newStage(DefaultOptions(testPane), 17, 3), seeded(20)
	require.Equal(t, Fail, s.play(10, func() { s.answerAll(random, well, served{requests: 60, slower: 2}) }).Verdict)
	for range 120 {
		s.answerAll(random, well, well)
		r := s.end()
		require.Equal(t, Fail, r.Verdict)
		require.False(t, s.judge.Turned())
		require.Contains(t, []string{"ttft", "e2e"}, r.Measures[r.Driver].Name)
		require.Equal(t, Fail, measureOf(r, "ttft").Verdict)
		require.Zero(t, r.Reasons)
	}
}

// Two hours of a good canary, then it slows down: a pass is no promise.
func TestAPassMayFail(t *testing.T) {
	s, random := newStage(DefaultOptions(testPane), 17, 3), seeded(21)
	require.Equal(t, Pass, s.play(120, func() { s.answerAll(random, well, well) }).Verdict)
	turned := 0
	for pane := 1; turned == 0; pane++ {
		s.answerAll(random, well, served{requests: 60, slower: 1.5})
		if s.end().Verdict == Fail {
			turned = pane
			require.True(t, s.judge.Turned())
		}
		require.Less(t, pane, 10)
	}
}

// The driver of a fail is what failed it, and stays it.
func TestTheDriverOfAFail(t *testing.T) {
	s, random := newStage(DefaultOptions(testPane), 17, 3), seeded(22)
	r := s.play(20, func() { s.answerAll(random, well, served{requests: 60, slower: 1, errors: 6}) })
	require.Equal(t, Fail, r.Verdict)
	require.Equal(t, "errors", r.Measures[r.Driver].Name)
	r = s.play(20, func() { s.answerAll(random, well, served{requests: 60, slower: 5}) })
	assert.Equal(t, "errors", r.Measures[r.Driver].Name)
	assert.Equal(t, Fail, measureOf(r, "ttft").Verdict)
}

// A measure that nobody watches has a verdict of its own, and no say.
func TestUnwatchedMeasures(t *testing.T) {
	s, random := newStage(watching("errors"), 17, 3), seeded(23)
	r := s.play(60, func() { s.answerAll(random, well, served{requests: 60, slower: 2}) })
	ttft := measureOf(r, "ttft")
	assert.False(t, ttft.Watched)
	assert.Equal(t, Fail, ttft.Verdict)
	assert.Equal(t, Pass, r.Verdict)
}

// Between what is tolerated and what a pass rules out, a fail may not be had, nor
// much slower a pass.
func TestToleratedIsNotFailed(t *testing.T) {
	s, random := newStage(DefaultOptions(testPane), 17, 3), seeded(24)
	assert.NotEqual(t, Fail, s.play(120, func() { s.answerAll(random, well, served{requests: 60, slower: 1.05}) }).Verdict)
	s, random = newStage(DefaultOptions(testPane), 17, 3), seeded(25)
	for range 120 {
		s.answerAll(random, well, served{requests: 60, slower: 1.3})
		require.NotEqual(t, Pass, s.end().Verdict)
	}
}

// Fewer than three canaries are a caveat that does not go with the verdict.
func TestFewReplicas(t *testing.T) {
	for canaries, few := range map[int]bool{1: true, 2: true, 3: false} {
		s, random := newStage(DefaultOptions(testPane), 6, canaries), seeded(26)
		r := s.play(15, func() { s.answerAll(random, well, served{requests: 60, slower: 3}) })
		assert.Equal(t, Fail, r.Verdict)
		assert.Equal(t, few, r.Reasons.Has(FewReplicas))
	}
}

// Reasons of a canary of which too little, or enough but nothing yet, is known. An
// arm of 99 observations has too few.
func TestInsufficientOrUndecided(t *testing.T) {
	for observed, reason := range map[int]Reason{99: InsufficientData, 100: Undecided} {
		s := newStage(watching("errors"), 4, 3)
		s.alike(1)
		s.end()
		for _, m := range s.of("stable") {
			s.count(m, fleet.Finished, 100)
			s.count(m, fleet.Errors, 10)
		}
		for i, m := range s.of("next") {
			n := uint64(observed / 3)
			if i == 0 {
				n += uint64(observed % 3)
			}
			s.count(m, fleet.Finished, n)
			s.count(m, fleet.Errors, n/10)
		}
		r := s.end()
		require.Equal(t, Inconclusive, r.Verdict)
		assert.True(t, r.Reasons.Has(reason), "%d", observed)
		assert.True(t, measureOf(r, "errors").Reasons.Has(reason), "%d", observed)
	}
}

// Traffic that ceases for ten minutes is told, and evidence is not lost by it.
func TestTrafficCeases(t *testing.T) {
	s := newStage(watching("errors"), 3, 2)
	s.play(5, func() { s.alike(10) })
	for silent := 1; silent <= 12; silent++ {
		s.alike(10)
		for _, m := range s.of("next") {
			clear(m.Told)
		}
		r := s.end()
		require.Equal(t, silent >= 10, r.Reasons.Has(NoTraffic), "%d", silent)
		require.Equal(t, [ArmCount]uint64{4 * 20, 4 * 30}, measureOf(r, "errors").Observations)
	}
	assert.False(t, s.play(1, func() { s.alike(10) }).Reasons.Has(NoTraffic))
}
