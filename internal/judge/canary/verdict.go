// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"math"

	"github.com/llmfleet/llmfleet/internal/window"
)

// comparison is a canary against its baseline, since it began.
type comparison struct {
	// Arms are the variants, by their keys, and Names what they are called. With
	// labels that name the canary, its baseline is all others, and has no key.
	Arms, Names [ArmCount]string
	Chosen      window.Instant // when it was last the one to look at
	Majority    int            // panes in a row in which the canary was not the minority
	Records     []record       // as Judge.measures
	Panes       int            // that counted
	// Since and Until are when the arms began to be compared, and last were; zero
	// before.
	Since, Until window.Instant
	// Heard is when the canary last answered a request, or the comparison began.
	Heard   window.Instant
	Verdict Verdict
	Driver  int // of a fail
	Reasons Reasons

	Replicas [ArmCount]int
	Others   int                 // replicas of neither arm
	Ages     [ArmCount][]float64 // in seconds
}

// decide gives the verdicts that the evidence suffices for. Overall a canary fails
// with any of the watched measures: for all of them together to fail a good one
// no more often than they may, each needs as many times the evidence. None fails while
// there is any evidence that it is asked other things than its baseline.
func (j *Judge) decide(c *comparison) {
	if c.Reasons.Has(TrafficMix) {
		return
	}
	suspect := j.mix(c) > 1
	for i := range j.measures {
		m, r := &j.measures[i], &c.Records[i]
		fail, pass := r.e(m)
		switch {
		case r.Verdict == Fail:
		case !m.guards() && fail >= j.failAt() && !suspect:
			j.turn(&r.Verdict, Fail)
		case r.Verdict != Pass && pass >= j.passAt():
			j.turn(&r.Verdict, Pass)
		}
	}
	passes, told, strongest := true, false, 0.0
	for i := range j.measures {
		m, r := &j.measures[i], &c.Records[i]
		if !j.counts(i, r) {
			continue
		}
		told = true
		passes = passes && r.Verdict == Pass
		if e, _ := r.e(m); r.Verdict == Fail && c.Verdict != Fail && e > strongest {
			c.Driver, strongest = i, e
		}
	}
	switch {
	case strongest > 0:
		j.turn(&c.Verdict, Fail)
	case c.Verdict == Inconclusive && told && passes:
		j.turn(&c.Verdict, Pass)
	}
}

// counts tells whether a measure counts in the overall verdict: it is watched, and
// told. Who names a measure of quality waits for it.
func (j *Judge) counts(i int, r *record) bool {
	return j.watched[i] && (r.Told[Canary] || r.Told[Baseline] || j.measures[i].Family == Quality)
}

func (j *Judge) turn(v *Verdict, to Verdict) {
	*v, j.turned = to, true
}

// failAt and passAt are the e-values that give a verdict.
func (j *Judge) failAt() float64 {
	return float64(max(1, len(j.options.Watch))) / j.options.FalseFail
}

func (j *Judge) passAt() float64 { return 1 / j.options.FalseFail }

// evidence is a measure's for each verdict, as the report has it.
func (j *Judge) evidence(m *Measure, r *record) (e [VerdictCount]float64) {
	fail, pass := r.e(m)
	e[Fail], e[Pass] = math.Log(fail)/math.Log(j.failAt()), math.Log(pass)/math.Log(j.passAt())
	return e
}

// enough observations of an arm are no reason any more why there is no verdict.
const enough = 100

// comparablePanes is after how many panes an arm that does not tell a measure is
// not going to.
const comparablePanes = 3

// why is why a measure has no verdict.
func (j *Judge) why(c *comparison, m *Measure, r *record) (reasons Reasons) {
	if r.Verdict != Inconclusive {
		return 0
	}
	n := r.observations(m)
	switch {
	case r.Apart, r.Told[Canary] != r.Told[Baseline] && c.Panes >= comparablePanes:
		reasons.add(NotComparable)
	case m.guards() && c.Reasons.Has(TrafficMix):
		reasons.add(TrafficMix)
	case min(n[Canary], n[Baseline]) < enough && m.kind != level:
		reasons.add(InsufficientData)
	default:
		reasons.add(Undecided)
	}
	return reasons
}

// whole are the reasons of the overall verdict: those of the comparison, and of
// the watched measures.
func (j *Judge) whole(c *comparison) Reasons {
	if c.Verdict != Inconclusive {
		return c.Reasons & (1<<FewReplicas | 1<<Promoted | 1<<TrafficMix | 1<<NoTraffic | 1<<NoBaseline)
	}
	reasons, told := c.Reasons, false
	for i := range j.measures {
		if r := &c.Records[i]; j.counts(i, r) {
			reasons |= j.why(c, &j.measures[i], r)
			told = true
		}
	}
	if !told {
		reasons.add(InsufficientData)
	}
	return reasons
}

// observations are those that the record's figures stand on.
func (r *record) observations(m *Measure) (n [ArmCount]uint64) {
	for arm := range n {
		n[arm] = sum(r.Counts[arm])
		if m.kind == level {
			n[arm] = uint64(r.Rates.Panes)
		}
	}
	return n
}

// drives is the measure that drives the overall verdict: that which failed it, or
// the watched one that is furthest from a pass; -1: none is told.
func (j *Judge) drives(c *comparison) int {
	if c.Verdict == Fail {
		return c.Driver
	}
	driver, least := -1, math.Inf(1)
	for i := range j.measures {
		m, r := &j.measures[i], &c.Records[i]
		if e := j.evidence(m, r)[Pass]; j.watched[i] && r.Told[Canary] && r.Told[Baseline] && e < least {
			driver, least = i, e
		}
	}
	return driver
}
