// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// runs plays so many rollouts of three canaries of eleven replicas, whose latencies lie
// apart by the spread, the canary's so many times as high; it counts who fails, when
// each did, and who passes.
func runs(n, panes int, spread, slower float64) (failed, passed int, latest int) {
	for seed := range uint64(n) {
		s, random := newStage(DefaultOptions(testPane), 8, 3), seeded(5000+seed)
		own := make([]float64, len(s.frame.Members))
		for i := range own {
			own[i] = math.Exp(spread * random.NormFloat64())
		}
		verdict := Inconclusive
		for range panes {
			for i := range s.frame.Members {
				m, a := &s.frame.Members[i], well
				a.slower = own[i] * math.Exp(spread*random.NormFloat64())
				if isOf(m, "next") {
					a.slower *= slower
				}
				s.answer(random, m, a)
			}
			if now := s.end().Verdict; now == Fail && verdict != Fail {
				latest = max(latest, s.panes)
				verdict = now
			} else if verdict != Fail {
				verdict = now
			}
		}
		switch verdict {
		case Fail:
			failed++
		case Pass:
			passed++
		}
	}
	return failed, passed, latest
}

// A healthy canary that is looked at each minute of an hour is failed in one of 20
// rollouts at most, and passes in most.
func TestHealthyCanaries(t *testing.T) {
	failed, passed, _ := runs(60, 60, 0.03, 1)
	assert.LessOrEqual(t, failed, 3)
	assert.GreaterOrEqual(t, passed, 45)
}

func TestSlowCanaries(t *testing.T) {
	failed, _, latest := runs(20, 12, 0.03, 1.5)
	assert.Equal(t, 20, failed)
	assert.LessOrEqual(t, latest, 7) // one pane burns in
}
