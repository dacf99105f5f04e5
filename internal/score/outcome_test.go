// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/llmfleet/llmfleet/internal/judge/outlier"
)

// follow plays verdicts on one fleet of three: flagged[m] tells in which panes
// replica m is.
func follow(panes int, is truth, flagged ...func(pane int) bool) *outcome {
	w := &world{fleets: 1, replicas: 3, panes: panes}
	v := newWatch(w, is)
	for t := range panes {
		said := newFlags(3)
		for m, f := range flagged {
			said.on[ours][m] = f(t)
			if f(t) {
				said.causes[m] = outlier.Load
			}
			if t == 114 {
				said.causes[m] = outlier.Hardware
			}
		}
		v.note(t, 0, said)
	}
	return &v.outcome
}

func never(int) bool { return false }

func between(from, to int) func(int) bool { return func(t int) bool { return from <= t && t < to } }

func TestOnsetsOfTheHealthyAreFalse(t *testing.T) {
	twice := func(t int) bool { return t == 70 || t == 71 || t == 80 }
	o := follow(100, truth{}, twice, between(10, 90), never)
	assert.Equal(t, 2, o.falseOnsets[ours], "one that came in warm-up does not count")
	assert.Equal(t, 3*40, o.healthyPanes)
	assert.Equal(t, 40, o.panes)
	assert.Zero(t, o.falseOnsets[plainRatio])
}

func TestTheSlowAreHealthyUntilTheyAreSlow(t *testing.T) {
	is := truth{spells: []spell{{place: place{0, 1}, from: 100, to: 150}}, never: []place{{0, 2}}}
	o := follow(200, is, never, func(t int) bool { return t == 90 || t == 104 || t == 160 }, between(70, 80))
	assert.Equal(t, 1, o.falseOnsets[ours])
	assert.Equal(t, 140+40, o.healthyPanes)
	assert.Equal(t, []float64{5}, o.delays[ours])
	assert.Equal(t, []float64{math.Inf(1)}, o.delays[plainRatio])
	assert.Zero(t, found(o.delays[plainRatio]))
}

func TestAReplicaFlaggedBeforeIsFoundAtOnce(t *testing.T) {
	is := truth{spells: []spell{{place: place{0, 0}, from: 100, to: 150}}}
	assert.Equal(t, []float64{1}, follow(160, is, between(95, 105)).delays[ours])
}

func TestTheCauseIsReadAWindowAfterTheOnset(t *testing.T) {
	is := truth{spells: []spell{{place: place{0, 0}, from: 100, to: 200}}}
	assert.Equal(t, []outlier.Cause{outlier.Hardware}, follow(160, is, between(109, 150)).causes, "pane 114 is the last that counts")
	assert.Equal(t, []outlier.Cause{outlier.Load}, follow(160, is, between(108, 150)).causes)
	assert.Equal(t, []outlier.Cause{outlier.NoCause}, follow(160, is, never).causes)
}

func TestFigures(t *testing.T) {
	o := &outcome{healthyPanes: 20 * panesAWeek, panes: panesADay}
	o.falseOnsets[ours] = 3
	value, unit, note := falsePerWeek(o, ours)
	assert.Equal(t, 21.0, value, "three in a day")
	assert.Equal(t, "{onset}/wk", unit)
	assert.Equal(t, "3 in 20 replica-weeks", note)
	_, _, note = falseCount(o, plainRatio)
	assert.Equal(t, "0 in 20 replica-weeks; none in 0.143 collector-weeks: at most 21 a collector-week with 95 % confidence", note, "three a day")

	for _, delay := range []float64{4, 2, math.Inf(1), 8} {
		o.spells = append(o.spells, spell{factor: 1.5, cause: outlier.Load}, spell{factor: 2, cause: outlier.Hardware})
		o.delays[ours] = append(o.delays[ours], delay, 1)
		o.causes = append(o.causes, outlier.Load, outlier.NoCause)
	}
	value, _, note = delayOf(1.5)(o, ours)
	assert.Equal(t, 6.0, value)
	assert.Equal(t, "found 3 of 4, 90 % within none", note)
	value, _, _ = foundShare(o, ours)
	assert.Equal(t, 7.0/8, value)

	o.causes[1], o.causes[3] = outlier.Hardware, outlier.Unknown
	value, _, note = causeAccuracy(o, ours)
	assert.Equal(t, 0.75, value, "all of the load's, one of two of the hardware's")
	assert.Equal(t, "load: load 4; hardware: hardware 1, unknown 1", note)
}

func TestAWorldInWhichNothingWasFoundFailsTheCard(t *testing.T) {
	all := []scored{{worlds: []*world{{name: "good"}, {name: "deaf"}}}}
	good, deaf := new(outcome), new(outcome)
	good.delays[ours], deaf.delays[ours] = []float64{3}, []float64{math.Inf(1)}
	line := controls(all, [][]*outcome{{good, deaf}})
	assert.Equal(t, "outlier_controls_found 0.5 1 >=1 fail # not in deaf", line.String())
}

func TestEvidenceThatIsNoNumberIsAnError(t *testing.T) {
	verdicts := &outlier.Verdicts{Replicas: []outlier.Verdict{{Evidence: outlier.Figure{Value: math.NaN()}}}}
	assert.ErrorContains(t, newFlags(1).take(verdicts), "NaN")
}
