// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"math"
	"slices"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// Verdicts are what the alarm says of one fleet. They are borrowed; the next
// call overwrites them.
type Verdicts struct {
	// Replicas are in the order of the frame's members.
	Replicas []Verdict
	// Outliers is how many replicas are flagged.
	Outliers Figure
}

// Verdict is what the alarm says of one replica.
type Verdict struct {
	// Outlier is 1 while the replica is flagged, else 0.
	Outlier Figure
	// Evidence is the log of the strongest detector over the log of its
	// threshold: 0 nothing, 1 to 2 while the replica is flagged.
	Evidence Figure
	// Cause is why the replica is probably an outlier; NoCause while it is none.
	Cause Cause
	// Raised are the signals that flagged it, a bit each by its place in
	// AlarmOptions.Signals; the bit after them is the error ratio's.
	Raised uint8
	// Known: the replica was flagged before, or is now.
	Known bool
}

// Cause is the likely reason of an outlier.
type Cause uint8

// The causes.
const (
	NoCause    Cause = iota
	Routing          // it is sent other work than its peers: longer prompts, or strangers' prefixes
	Load             // it is sent more work, and is as slow as that makes it
	Hardware         // it is slower at equal work, or its accelerator says so
	Placement        // other replicas of its node are slow with it
	ColdCache        // it is young, and its prefix cache not yet filled
	Errors           // its requests fail
	Variant          // what is slow shares a revision that the others do not have
	Unknown          // nothing that is told explains it
	CauseCount       // how many causes there are; not a cause
)

var causeNames = [CauseCount]string{
	NoCause: "none", Routing: "routing", Load: "load", Hardware: "hardware", Placement: "placement",
	ColdCache: "cold_cache", Errors: "errors", Variant: "variant", Unknown: "unknown",
}

// String is the cause's name as it stands in the attribute `cause`.
func (c Cause) String() string {
	if c >= CauseCount {
		return "unknown"
	}
	return causeNames[c]
}

// report writes the verdicts of a frame.
func (a *Alarm) report(f *fleet.Frame) *Verdicts {
	v := &a.verdicts
	v.Replicas = slices.Grow(v.Replicas[:0], len(f.Members))[:len(f.Members)]
	v.Outliers = Figure{}
	if len(f.Members) < fewest {
		v.Outliers = withheld(FewReplicas)
	}
	for i, m := range a.present {
		verdict := &v.Replicas[i]
		*verdict = Verdict{Raised: m.raised(), Known: m.Known}
		switch {
		case len(f.Members) < fewest:
			verdict.Outlier, verdict.Evidence = withheld(FewReplicas), withheld(FewReplicas)
			continue
		case !a.warm(m):
			verdict.Outlier = withheld(Warming)
		case !m.Told && verdict.Raised == 0:
			verdict.Outlier, verdict.Evidence = withheld(NotReported), withheld(NotReported)
			continue
		}
		verdict.Evidence.Value = a.evidence(m, verdict.Raised != 0)
		a.suspects = a.suspects || verdict.Evidence.Value >= worthALook
		if verdict.Raised != 0 {
			verdict.Outlier.Value = 1
			verdict.Cause = m.cause()
			v.Outliers.Value++
			a.nodes.add(f.Fleet, f.Members[i].Identity)
		}
	}
	return v
}

// strongest is the replica's strongest detector.
func (a *Alarm) strongest(m *member) (strongest float64) {
	for s := range m.streams {
		strongest = max(strongest, m.streams[s].strongest(a.boundariesOf(s)))
	}
	return strongest
}

// weight is the log of a detector over that of its threshold.
func (a *Alarm) weight(detector float64) float64 {
	return min(max(0, math.Log(detector))/math.Log(a.threshold), most)
}

// evidence is the weight of the replica's strongest detector; while it is flagged,
// that which it was last flagged on, as detectors begin anew then.
func (a *Alarm) evidence(m *member, flagged bool) float64 {
	evidence := a.weight(a.strongest(m))
	if !flagged {
		return min(evidence, almost)
	}
	for s := range m.streams {
		if m.streams[s].Raised != 0 {
			evidence = max(evidence, float64(m.streams[s].Found))
		}
	}
	return max(evidence, 1)
}

// worthALook is evidence under which it is worth to look for a cause.
const worthALook = 0.5

// most is the most evidence that is told: twice the digits that it takes.
const most = 2

// almost is the most evidence of a replica that is not flagged: its detector may
// have reached the threshold while it is no slower than is worth an alarm.
const almost = 0.99
