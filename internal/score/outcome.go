// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"math"
	"slices"

	"github.com/llmfleet/llmfleet/internal/judge/outlier"
)

// outcome is what became of one world, or of several alike, by rule.
type outcome struct {
	truth

	// falseOnsets are those of healthy replicas, in so many of their panes, and
	// in so many of the worlds.
	falseOnsets         [ruleCount]int
	healthyPanes, panes int
	// delays are, for each spell, in how many panes it was found; +Inf where it
	// was not.
	delays [ruleCount][]float64
	// causes are, for each spell, what we said explainAfter panes after we found
	// it, or last.
	causes []outlier.Cause
}

// explainAfter is how many panes after an onset the cause is read: the window
// then holds nothing from before the spell.
const explainAfter = windowPanes

// add adds the outcome of another world.
func (o *outcome) add(other *outcome) {
	o.healthyPanes += other.healthyPanes
	o.panes += other.panes
	o.spells = append(o.spells, other.spells...)
	o.never = append(o.never, other.never...)
	o.causes = append(o.causes, other.causes...)
	for r := range o.delays {
		o.falseOnsets[r] += other.falseOnsets[r]
		o.delays[r] = append(o.delays[r], other.delays[r]...)
	}
}

// delaysOf are those of the replicas that are so many times as slow, rising.
func (o *outcome) delaysOf(factor float64, r rule) (delays []float64) {
	for i, s := range o.spells {
		if s.factor == factor {
			delays = append(delays, o.delays[r][i])
		}
	}
	slices.Sort(delays)
	return delays
}

// found is how many spells were.
func found(delays []float64) (n int) {
	for _, d := range delays {
		if !math.IsInf(d, 1) {
			n++
		}
	}
	return n
}

// watch compares verdicts with the truth, pane by pane.
type watch struct {
	outcome

	replicas int
	on       [ruleCount][]bool // by fleet and replica
	healthy  []int             // by fleet and replica: until which pane
	spellsOf [][]int           // by fleet: their places in the truth's
}

func newWatch(w *world, is truth) *watch {
	all := w.fleets * w.replicas
	v := &watch{replicas: w.replicas, healthy: slices.Repeat([]int{w.panes}, all), spellsOf: make([][]int, w.fleets)}
	v.truth = is
	v.causes = make([]outlier.Cause, len(is.spells))
	for i, s := range is.spells {
		until := &v.healthy[s.fleet*w.replicas+s.replica]
		*until = min(*until, s.from)
		v.spellsOf[s.fleet] = append(v.spellsOf[s.fleet], i)
	}
	for _, p := range is.never {
		v.healthy[p.fleet*w.replicas+p.replica] = 0
	}
	for r := range v.on {
		v.on[r] = make([]bool, all)
		v.delays[r] = slices.Repeat([]float64{math.Inf(1)}, len(is.spells))
	}
	return v
}

// note takes in who is flagged in one fleet after pane t. No onset counts while
// our alarm warms up, whoever's it is.
func (v *watch) note(t, of int, said *flags) {
	first := of * v.replicas
	healthy := v.healthy[first : first+v.replicas]
	for r := range ruleCount {
		on := v.on[r][first:]
		for m, now := range said.on[r] {
			if now && !on[m] && t >= warmup && t < healthy[m] {
				v.falseOnsets[r]++
			}
			on[m] = now
		}
		for _, i := range v.spellsOf[of] {
			if s := &v.spells[i]; s.from <= t && t < s.to && on[s.replica] {
				v.delays[r][i] = min(v.delays[r][i], float64(t-s.from+1))
			}
		}
	}
	for _, i := range v.spellsOf[of] {
		s := &v.spells[i]
		if delay := v.delays[ours][i]; s.from <= t && said.on[ours][s.replica] && float64(t-s.from+1) <= delay+explainAfter {
			v.causes[i] = said.causes[s.replica]
		}
	}
	if t < warmup {
		return
	}
	for _, until := range healthy {
		if t < until {
			v.healthyPanes++
		}
	}
	if of == 0 {
		v.panes++
	}
}
