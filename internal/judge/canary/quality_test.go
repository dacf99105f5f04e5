// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

var gradeBounds = []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}

// graded are the options of a judge that watches a measure of quality.
func graded(worse Side) Options {
	o := watching("grade")
	o.Quality = []Measure{QualityMeasure("grade", 0, worse)}
	return o
}

// grades is a frame of what is told of the quality of variants.
func (s *stage) grades() *fleet.Frame {
	f := closed()
	f.Fleet, f.Signals = s.frame.Fleet, []fleet.Signal{fleet.Quality(0)}
	return &f
}

// grade tells values of a variant.
func (s *stage) grade(f *fleet.Frame, variant []fleet.Label, bounds []float64, values ...float64) {
	f.Members = append(f.Members, fleet.MemberFrame{
		Identity: &fleet.Identity{Keys: s.frame.Fleet.Keys, Variant: variant},
		Told:     []fleet.Distribution{s.told(bounds, values...)},
	})
}

func ofRevision(value string) []fleet.Label { return []fleet.Label{label("model_revision", value)} }

func TestQuality(t *testing.T) {
	for name, c := range map[string]struct {
		worse   Side
		median  float64 // of the canary; the baseline has 0.5
		verdict Verdict
	}{
		"lower is worse, and it is":  {Lower, 0.3, Fail},
		"lower is worse, and higher": {Lower, 0.7, Pass},
		"higher is worse, and it is": {Higher, 0.7, Fail},
		"higher is worse, and lower": {Higher, 0.3, Pass},
		"the same":                   {Lower, 0.5, Pass},
	} {
		t.Run(name, func(t *testing.T) {
			s, random := newStage(graded(c.worse), 4, 2), seeded(17)
			var r *Report
			for range 60 {
				s.alike(10)
				f := s.grades()
				s.grade(f, ofRevision("stable"), gradeBounds, lognormals(random, 200, 0.5, 0.3)...)
				s.grade(f, ofRevision("next"), gradeBounds, lognormals(random, 100, c.median, 0.3)...)
				r = s.end(f)
			}
			assert.Equal(t, c.verdict, r.Verdict)
			grade := measureOf(r, "grade")
			assert.Equal(t, [ArmCount]uint64{59 * 100, 59 * 200}, grade.Observations)
			assert.Equal(t, Quality, grade.Family)
		})
	}
}

// Where each arm is graded once in three minutes, and never both in one, their
// grades are held back until both have some.
func TestRareGradesAreHeldBack(t *testing.T) {
	s, random := newStage(graded(Lower), 4, 2), seeded(18)
	var r *Report
	for pane := range 91 {
		s.alike(10)
		f := s.grades()
		switch {
		case pane == 0: // burns in
		case pane%3 == 1:
			s.grade(f, ofRevision("stable"), gradeBounds, lognormals(random, 40, 0.5, 0.3)...)
		case pane%3 == 2:
			s.grade(f, ofRevision("next"), gradeBounds, lognormals(random, 20, 0.3, 0.3)...)
		}
		r = s.end(f)
	}
	assert.Equal(t, Fail, r.Verdict)
	grade := measureOf(r, "grade")
	assert.Equal(t, [ArmCount]uint64{30 * 20, 30 * 40}, grade.Observations)
	assert.InEpsilon(t, 0.3*1.046, grade.Statistics[2].Values[Canary].Value, 0.05) // exp(0.3²/2) times the median
}

func TestQualityOfOneArm(t *testing.T) {
	s := newStage(graded(Lower), 4, 2)
	var r *Report
	for range 30 {
		s.alike(10)
		f := s.grades()
		s.grade(f, ofRevision("stable"), gradeBounds, repeated(100, 0.5)...)
		r = s.end(f)
		require.Equal(t, Inconclusive, r.Verdict)
	}
	assert.True(t, measureOf(r, "grade").Reasons.Has(NotComparable))
}

// Who watches a measure of quality waits for it: that nobody grades is no pass.
func TestQualityOfNobody(t *testing.T) {
	o := graded(Lower)
	o.Watch = []string{"errors", "grade"}
	r := newStage(o, 4, 2).tens(60)
	assert.Equal(t, Pass, measureOf(r, "errors").Verdict)
	assert.Equal(t, Inconclusive, r.Verdict)
	assert.True(t, r.Reasons.Has(InsufficientData))
}

func TestQualityWithoutABoundInCommon(t *testing.T) {
	for name, n := range map[string]int{"baseline is graded more": 10, "canary is graded more": 1000} {
		t.Run(name, func(t *testing.T) {
			s := newStage(graded(Lower), 4, 2)
			var r *Report
			for range 10 {
				s.alike(10)
				f := s.grades()
				s.grade(f, ofRevision("stable"), coarse, repeated(100, 0.3)...)
				s.grade(f, ofRevision("next"), other, repeated(n, 0.3)...)
				r = s.end(f)
			}
			assert.True(t, measureOf(r, "grade").Reasons.Has(NotComparable))
		})
	}
}

// Grades of a label that both arms have are of neither.
func TestQualityOfWhom(t *testing.T) {
	s := newStage(graded(Lower), 0, 0)
	for _, name := range []string{"a", "b", "c"} {
		s.joinAs(name, label("model_revision", "1"), label("config_hash", "x"))
	}
	s.joinAs("d", label("model_revision", "1"), label("config_hash", "y"))
	var r *Report
	for range 10 {
		s.alike(10)
		f := s.grades()
		s.grade(f, ofRevision("1"), gradeBounds, repeated(10, 0.3)...)
		s.grade(f, ofRevision("2"), gradeBounds, repeated(10, 0.3)...)
		s.grade(f, nil, gradeBounds, repeated(10, 0.3)...)
		r = s.end(f)
	}
	assert.Equal(t, [ArmCount]uint64{}, measureOf(r, "grade").Observations, "it is watched, so it is shown")
}
