// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/stats"
)

// totals are what all members of a frame come to, from which each suspect takes
// its own part: however many there are, the frame is added up once. They are made
// when they are first asked for.
type totals struct {
	alarm         *Alarm
	frame         *fleet.Frame
	made          bool
	errors        fraction // requests that failed, over all
	promptLengths fraction // the sum of prompt lengths, over prompts
	load          [loads]fraction
	hits          Figure       // of prefix caches
	usual         *usualStrain // nil before it is asked for
}

// untold is a sum to which nothing was added yet.
var untold = fraction{withheld: NotReported}

// sums are the totals, made up to date.
func (t *totals) sums() *totals {
	if t.made {
		return t
	}
	t.made, t.errors, t.promptLengths = true, untold, untold
	for l := range t.load {
		t.load[l] = untold
	}
	for i := range t.frame.Members {
		t.errors.add(t.errorsOf(i))
		t.promptLengths.add(t.promptsOf(i))
		for l := range t.load {
			t.load[l].add(t.loadOf(i, l))
		}
	}
	t.hits = hitRatio(t.frame, t.frame.Members)
	return t
}

// errorsOf are the requests of a replica that failed in the window, over all.
func (t *totals) errorsOf(i int) fraction {
	failed, all, told := t.alarm.errors(t.frame, t.frame.Members[i].Told)
	if !told {
		return untold
	}
	return fraction{part: float64(failed), whole: float64(all)}
}

// promptsOf is the sum of the lengths of a replica's prompts, over their number.
func (t *totals) promptsOf(i int) fraction {
	return Works[promptLength].of(t.frame, t.frame.Members[i].Told)
}

// loadOf is a replica's mean load, over one replica.
func (t *totals) loadOf(i, l int) fraction {
	load := &t.frame.Members[i].Load[l]
	if !load.MeanKnown {
		return untold
	}
	return fraction{part: load.Mean, whole: 1}
}

// usualStrain is how the accelerators fare of the replicas that are not flagged: each
// number is that of the replica in the middle.
type usualStrain struct{ throttled, clock, links, replays float64 }

// strain is how accelerators usually fare in the frame.
func (t *totals) strain() *usualStrain {
	if t.usual != nil {
		return t.usual
	}
	var throttled, clocks, links, replays []float64
	for i := range t.frame.Members {
		s := t.alarm.options.Strain(t.frame.End, t.frame.Members[i].Identity)
		if !s.Known || t.alarm.present[i].raised() != 0 {
			continue
		}
		links, replays = append(links, float64(s.NVLinkErrors)), append(replays, float64(s.PCIeReplays))
		if s.ThrottleKnown {
			throttled = append(throttled, s.Throttled)
		}
		if s.ClockKnown {
			clocks = append(clocks, s.Clock)
		}
	}
	t.usual = &usualStrain{stats.Median(throttled), stats.Median(clocks), stats.Median(links), stats.Median(replays)}
	return t.usual
}
