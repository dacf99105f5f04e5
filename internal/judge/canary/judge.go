// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"slices"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// Judge judges the canaries of all fleets. It remembers what it has seen, so it
// is given all frames, one pane after the other: Begin, then Judge for each
// fleet. A frame's window is one pane. Not safe for concurrent use.
type Judge struct {
	options  Options
	measures []Measure
	watched  []bool // as measures
	fleets   map[string]*rollout
	now      window.Instant
	turned   bool
	report   Report
	memory
}

// memory is what one judgement needs and the next may use again.
type memory struct {
	arms [ArmCount][]*fleet.MemberFrame // the replicas of each that count in the pane
	pool fleet.Pool
	tape tape
}

// NewJudge makes a judge that has seen nothing.
func NewJudge(o Options) *Judge {
	j := &Judge{options: o, measures: slices.Concat(measures, o.Quality), fleets: make(map[string]*rollout)}
	for i := range j.measures {
		j.watched = append(j.watched, slices.Contains(o.Watch, j.measures[i].Name))
	}
	return j
}

// rememberFor is how long a variant that is away, or a fleet, is not forgotten: a
// canary whose replicas crash comes back to its evidence.
const rememberFor = 10 * time.Minute

// Begin begins the pane that ends at end.
func (j *Judge) Begin(end window.Instant) {
	for key, r := range j.fleets {
		if j.now.Sub(r.Seen) > rememberFor {
			delete(j.fleets, key)
		}
	}
	j.now, j.turned = end, false
}

// Turned tells whether a verdict changed in the pane.
func (j *Judge) Turned() bool { return j.turned }

// Fleets is how many fleets are followed.
func (j *Judge) Fleets() int { return len(j.fleets) }

// Judge judges one fleet, with what is told of the quality of its answers: frames
// whose members are variants. Nil: it has no canary. The report is lent until the
// next call. False: there is no room for another fleet.
func (j *Judge) Judge(f *fleet.Frame, quality []*fleet.Frame) (report *Report, ok bool) {
	key := f.Fleet.Key()
	r := j.fleets[key]
	if r == nil {
		if len(j.fleets) >= j.options.MaxFleets {
			return nil, false
		}
		r = newRollout()
		j.fleets[key] = r
	}
	r.Seen = f.End
	r.attend(f, &j.options)
	if !r.choose(&j.options, f.End) {
		return nil, true
	}
	j.compare(r, f, quality)
	return j.tell(r), true
}

// compare adds one pane to the comparison of a fleet's arms.
func (j *Judge) compare(r *rollout, f *fleet.Frame, quality []*fleet.Frame) {
	c := r.current
	if c.Records == nil {
		c.Records, c.Heard = make([]record, len(j.measures)), f.End
	}
	c.Reasons &= 1 << Promoted
	j.recruit(r, f)
	if c.Reasons.Has(Promoted) {
		return
	}
	if len(j.arms[Canary]) > 0 && len(j.arms[Baseline]) > 0 {
		if c.Since == 0 {
			c.Since = f.End.Add(-j.options.Pane)
		}
		j.advance(r, c, f, quality)
		c.Panes++
		c.Until = f.End
	}
	if j.mixed(c) {
		c.Reasons.add(TrafficMix)
	}
	if c.Replicas[Canary] == 0 || f.End.Sub(c.Heard) >= rememberFor {
		c.Reasons.add(NoTraffic)
	}
	j.decide(c)
}

// advance gathers evidence from a pane in which replicas of both arms count. The
// prompts come first: while they differ between the arms, nothing else tells the
// versions apart.
func (j *Judge) advance(r *rollout, c *comparison, f *fleet.Frame, quality []*fleet.Frame) {
	for _, guards := range []bool{true, false} {
		for i := range j.measures {
			if m := &j.measures[i]; m.guards() == guards {
				j.observe(r, &c.Records[i], m, f, quality)
			}
		}
		if j.mixed(c) {
			return
		}
	}
}

// guards tells whether the measure is of what is asked, not of how it is
// answered.
func (m *Measure) guards() bool { return m.ways[0].part == fleet.PromptLength }

// mixed tells whether the arms are asked differently.
func (j *Judge) mixed(c *comparison) bool { return j.mix(c) >= 1/j.options.FalseFail }

// mix is the e-value against "both arms are asked the same".
func (j *Judge) mix(c *comparison) float64 {
	for i := range j.measures {
		if m := &j.measures[i]; m.guards() {
			e, _ := c.Records[i].e(m)
			return e
		}
	}
	return 1
}
