// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

func label(name, value string) fleet.Label { return fleet.Label{Name: name, Value: value} }

// enter adds so many replicas of a revision.
func (s *stage) enter(revision string, replicas int) {
	for range replicas {
		s.join(fmt.Sprintf("pod-%d", len(s.frame.Members)), revision)
	}
}

// tens plays panes in which all replicas answer ten requests.
func (s *stage) tens(panes int) *Report { return s.play(panes, func() { s.alike(10) }) }

// gone removes all replicas of a revision.
func (s *stage) gone(revision string) {
	s.leave(func(m *fleet.MemberFrame) bool { return isOf(m, revision) })
}

func TestOneVariantIsNoCanary(t *testing.T) {
	assert.Nil(t, newStage(DefaultOptions(testPane), 3, 0).tens(5))
}

func TestTheCanaryIsFewerAndLater(t *testing.T) {
	s := newStage(DefaultOptions(testPane), 3, 0)
	s.tens(5)
	s.enter("next", 2)
	r := s.tens(2)
	require.NotNil(t, r)
	assert.Equal(t, [ArmCount]string{"next", "stable"}, r.Of)
	assert.Equal(t, [ArmCount]int{2, 3}, r.Replicas)
	assert.Equal(t, minute(6), r.Since)
}

// As many replicas are no majority.
func TestAsManyIsNotTheMajority(t *testing.T) {
	s := newStage(DefaultOptions(testPane), 2, 0)
	s.tens(1)
	s.enter("next", 2)
	r := s.tens(5)
	require.NotNil(t, r)
	assert.Equal(t, [ArmCount]string{"next", "stable"}, r.Of)
	assert.False(t, r.Reasons.Has(Promoted))
}

func TestNewerMajorityHasNoCanary(t *testing.T) {
	s := newStage(DefaultOptions(testPane), 2, 0)
	s.tens(1)
	s.enter("next", 5)
	assert.Nil(t, s.tens(5))
}

// Of two that were there from the first pane the newer is the one whose processes
// began later; where that is not told, the one of fewer replicas.
func TestBothThereFromTheStart(t *testing.T) {
	for name, c := range map[string]struct {
		stable, next float64 // starts of processes
		compared     bool
	}{
		"fewer began later":   {100, 200, true},
		"fewer began earlier": {200, 100, false},
		"starts unknown":      {0, 0, true},
		"one start unknown":   {100, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(DefaultOptions(testPane), 3, 1)
			for i := range s.frame.Members {
				s.frame.Members[i].Started = c.stable
			}
			s.of("next")[0].Started = c.next
			r := s.tens(3)
			require.Equal(t, c.compared, r != nil)
			if r != nil {
				assert.Equal(t, [ArmCount]string{"next", "stable"}, r.Of)
			}
		})
	}
}

// As many of each, there from the first pane, and no starts: either may be new.
func TestAlikeInAll(t *testing.T) {
	assert.Nil(t, newStage(DefaultOptions(testPane), 2, 2).tens(5))
}

// Replicas of the baseline that start anew do not make it the newer one.
func TestRestartsOfTheBaseline(t *testing.T) {
	s := newStage(DefaultOptions(testPane), 3, 1)
	for i := range s.frame.Members {
		s.frame.Members[i].Started = 100
	}
	s.of("next")[0].Started = 200
	since := s.tens(5).Since
	s.frame.Members[0].Started, s.frame.Members[1].Started = 300, 300
	r := s.tens(1)
	require.NotNil(t, r)
	assert.Equal(t, since, r.Since)
}

// promoted is a stage whose canary has become the majority after ten panes.
func promoted(t *testing.T) (s *stage, last *Report) {
	t.Helper()
	s = newStage(DefaultOptions(testPane), 3, 1)
	before := s.tens(10)
	require.False(t, before.Reasons.Has(Promoted))
	observed := measureOf(before, "ttft").Observations
	s.enter("next", 3)
	last = s.tens(5)
	require.NotNil(t, last)
	require.True(t, last.Reasons.Has(Promoted))
	assert.Equal(t, [ArmCount]string{"next", "stable"}, last.Of)
	// In the first two of the five panes it is too early to say: one replica and then four count beside three.
	assert.Equal(t, [ArmCount]uint64{observed[Canary] + 10 + 40, observed[Baseline] + 60}, measureOf(last, "ttft").Observations)
	return s, last
}

func TestPromoted(t *testing.T) {
	_, r := promoted(t)
	assert.Equal(t, [ArmCount]int{4, 3}, r.Replicas)
	assert.Equal(t, 11*testPane, r.For)
}

func TestPromotedAndTheOldOneGoes(t *testing.T) {
	s, _ := promoted(t)
	s.gone("stable")
	for range 10 {
		r := s.tens(1)
		require.NotNil(t, r)
		assert.True(t, r.Reasons.Has(Promoted))
	}
	assert.Nil(t, s.tens(2))
}

func TestPromotedThenAThirdVariant(t *testing.T) {
	s, _ := promoted(t)
	s.enter("third", 1)
	r := s.tens(2)
	require.NotNil(t, r)
	assert.Equal(t, [ArmCount]string{"third", "next"}, r.Of)
	assert.False(t, r.Reasons.Has(Promoted))
}

func TestPromotedThenBackInMinority(t *testing.T) {
	s, _ := promoted(t)
	s.enter("stable", 4)
	r := s.tens(1)
	require.NotNil(t, r)
	assert.Equal(t, [ArmCount]string{"next", "stable"}, r.Of)
	assert.False(t, r.Reasons.Has(Promoted))
	assert.Equal(t, minute(1), r.Since, "the comparison goes on")
}

// Scrapes that fail, and a restart of the collector, show parts of a fleet: two panes
// in which the canary seems to be the majority end nothing.
func TestMajorityOfTwoPanes(t *testing.T) {
	s := newStage(DefaultOptions(testPane), 3, 2)
	s.tens(5)
	stable := slices.Clone(s.frame.Members)
	s.frame.Members = slices.DeleteFunc(s.frame.Members, func(m fleet.MemberFrame) bool {
		return m.Identity.Replica == "pod-0" || m.Identity.Replica == "pod-1"
	})
	assert.False(t, s.tens(2).Reasons.Has(Promoted))
	s.frame.Members = stable
	r := s.tens(1)
	assert.False(t, r.Reasons.Has(Promoted))
	assert.Equal(t, minute(1), r.Since)
}

// A pod of a third variant that is soon gone takes the canary's place for as long as
// it is there, and no longer.
func TestShortLivedThirdVariant(t *testing.T) {
	s := newStage(DefaultOptions(testPane), 4, 3)
	before := measureOf(s.tens(5), "ttft").Observations
	s.enter("debug", 1)
	assert.Equal(t, [ArmCount]string{"debug", "stable"}, s.tens(2).Of)
	s.gone("debug")
	r := s.tens(1)
	assert.Equal(t, [ArmCount]string{"next", "stable"}, r.Of)
	assert.Equal(t, [ArmCount]uint64{before[Canary] + 30, before[Baseline] + 40}, measureOf(r, "ttft").Observations)
}

// With labels that name the canary, all others are its baseline, whichever of them
// are more.
func TestMajorityOfTheOthersChanges(t *testing.T) {
	o := DefaultOptions(testPane)
	o.Match = []fleet.Label{label("model_revision", "next")}
	s := newStage(o, 0, 0)
	s.enter("a", 3)
	s.enter("b", 2)
	s.enter("next", 2)
	before := s.tens(5)
	s.gone("a")
	s.enter("b", 1)
	r := s.tens(2)
	assert.Equal(t, before.Of, r.Of)
	assert.Equal(t, before.Since, r.Since)
}

// A canary that is gone has not passed: the verdict stands, and says so.
func TestACanaryThatHasPassedIsGone(t *testing.T) {
	s := newStage(DefaultOptions(testPane), 3, 2)
	r := s.tens(60)
	require.Equal(t, Pass, r.Verdict)
	s.gone("next")
	r = s.tens(1)
	require.NotNil(t, r)
	assert.Equal(t, Pass, r.Verdict)
	assert.True(t, r.Reasons.Has(NoTraffic))
	assert.Zero(t, r.Replicas[Canary])
}

// A rollout that is superseded: the newest is the canary, and begins from nothing.
func TestThirdVariantBeginsAnew(t *testing.T) {
	s := newStage(DefaultOptions(testPane), 4, 0)
	s.tens(1)
	s.enter("next", 2)
	s.tens(10)
	s.enter("third", 1)
	r := s.tens(2)
	require.NotNil(t, r)
	assert.Equal(t, [ArmCount]string{"third", "stable"}, r.Of)
	assert.Equal(t, [ArmCount]int{1, 4}, r.Replicas)
	assert.Equal(t, minute(12), r.Since)
	assert.Equal(t, [ArmCount]uint64{10, 40}, measureOf(r, "ttft").Observations)
}

func TestTheVariantIsAway(t *testing.T) {
	for panes, kept := range map[int]bool{5: true, 11: false} {
		for _, revision := range []string{"next", "stable"} {
			t.Run(fmt.Sprint(revision, panes), func(t *testing.T) {
				s := newStage(DefaultOptions(testPane), 0, 0)
				s.enter("stable", 3)
				s.tens(1)
				s.enter("next", 1)
				since := s.tens(10).Since
				require.Equal(t, minute(2), since)
				s.gone(revision)
				away := s.tens(panes)
				s.enter(revision, map[string]int{"stable": 3, "next": 1}[revision])
				r := s.tens(3)
				if kept {
					require.NotNil(t, away)
					assert.False(t, away.Reasons.Has(Promoted))
					assert.Equal(t, since, r.Since)
					return
				}
				assert.Nil(t, away)
				// Away for so long, the baseline is the newer variant, and of more replicas.
				if revision == "next" {
					assert.Equal(t, minute(11+panes+1), r.Since)
				} else {
					assert.Nil(t, r)
				}
			})
		}
	}
}

// A scrape that fails, of one or of all of the baseline, promotes nobody.
func TestUnreachableIsNotTheMinority(t *testing.T) {
	for _, unreachable := range []int{1, 3} {
		s := newStage(DefaultOptions(testPane), 3, 0)
		s.tens(1)
		s.enter("next", 3)
		since := s.tens(5).Since
		for _, m := range s.of("stable")[:unreachable] {
			m.Unreachable = true
		}
		r := s.end()
		require.NotNil(t, r)
		assert.False(t, r.Reasons.Has(Promoted))
		assert.Equal(t, unreachable == 3, r.Reasons.Has(NoBaseline))
		for _, m := range s.of("stable") {
			m.Unreachable = false
		}
		assert.Equal(t, since, s.tens(1).Since)
	}
}

// A canary whose processes never live long enough to burn in shows nothing.
func TestCrashLoop(t *testing.T) {
	s := newStage(DefaultOptions(testPane), 3, 1)
	for i := range s.frame.Members {
		s.frame.Members[i].Started = 1
	}
	for pane := range 30 {
		s.of("next")[0].Started = float64(60 * (pane + 1))
		r := s.tens(1)
		require.Equal(t, Inconclusive, r.Verdict)
		require.True(t, r.Reasons.Has(BurnIn))
		require.Zero(t, r.Since)
	}
}
