// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// Ten requests a minute, a hundred times slower in seven of ten minutes: to a judge
// of ten points a heavy overlap, to one of requests seventy that no baseline has.
func TestMostPointsFarWorse(t *testing.T) {
	s, random := newStage(DefaultOptions(testPane), 19, 1), seeded(1)
	ten := served{requests: 10, slower: 1}
	s.play(1, func() { s.answerAll(random, ten, ten) })
	var r *Report
	for _, slower := range []float64{100, 100, 1, 100, 100, 1, 100, 100, 1, 100} {
		for _, m := range s.of("stable") {
			s.tell(m, fleet.TTFT, ttftBounds, lognormals(random, 10, 0.3, 0.6)...)
		}
		s.tell(s.of("next")[0], fleet.TTFT, ttftBounds, lognormals(random, 10, 0.3*slower, 0.6)...)
		r = s.end()
	}
	assert.Equal(t, Fail, r.Verdict)
	assert.Equal(t, "ttft", r.Measures[r.Driver].Name)
	assert.Equal(t, [ArmCount]uint64{100, 1900}, r.Measures[r.Driver].Observations)
}

// Four errors of 600 requests, against none of 11,400.
func TestErrorsAgainstNone(t *testing.T) {
	s := newStage(DefaultOptions(testPane), 19, 1)
	s.play(1, func() { s.alike(100) })
	var r *Report
	for _, errors := range []uint64{0, 1, 2, 1, 0, 0} {
		s.alike(100)
		s.count(s.of("next")[0], fleet.Errors, errors)
		r = s.end()
	}
	assert.Equal(t, Fail, r.Verdict)
	m := &r.Measures[r.Driver]
	assert.Equal(t, "errors", m.Name)
	assert.Equal(t, Higher, m.Worse)
	assert.Equal(t, [ArmCount]uint64{600, 11400}, m.Observations)
	require.Len(t, m.Statistics, 1)
	ratio := m.Statistics[0]
	assert.Equal(t, "ratio", ratio.Name)
	assert.InDelta(t, 4.0/600, ratio.Values[Canary].Value, 1e-12)
	assert.Equal(t, given(0), ratio.Values[Baseline])
	assert.InDelta(t, 4.0/600, ratio.Delta.Value, 1e-12)
	assert.Equal(t, withheld(ZeroBaseline), ratio.Ratio)
}

// Of a canary that ends no request nothing is known, whatever its baseline does.
func TestNothingFinished(t *testing.T) {
	random := seeded(2)
	for name, tell := range map[string]func(s *stage, m *fleet.MemberFrame){
		"silent": func(*stage, *fleet.MemberFrame) {},
		"idle": func(s *stage, m *fleet.MemberFrame) {
			s.tell(m, fleet.TTFT, ttftBounds)
			s.tell(m, fleet.E2E, ttftBounds)
			s.count(m, fleet.Finished, 0)
			s.count(m, fleet.Errors, 0)
		},
		"hangs after the first token": func(s *stage, m *fleet.MemberFrame) {
			s.tell(m, fleet.TTFT, ttftBounds, lognormals(random, 60, 0.3, 0.6)...)
			s.tell(m, fleet.E2E, ttftBounds)
			s.count(m, fleet.Finished, 0)
			s.count(m, fleet.Errors, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(DefaultOptions(testPane), 6, 1)
			for pane := 1; pane <= 30; pane++ {
				for _, m := range s.of("stable") {
					s.answer(random, m, well)
				}
				tell(s, s.of("next")[0])
				r := s.end()
				require.Equal(t, Inconclusive, r.Verdict)
				require.True(t, r.Reasons.Has(InsufficientData))
				// The comparison began at the end of the first pane.
				require.Equal(t, pane >= 11, r.Reasons.Has(NoTraffic), "pane %d", pane)
			}
		})
	}
}
