// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"fmt"
	"math"
	"slices"
)

// culpritTop1 is in which share of the bursts their culprit is named, of those
// in which nobody made the fleet slower than it did.
func culpritTop1(runs []*storyOutcome, r tenantRule) (value float64, unit, note string) {
	var right, silent, wrong, left float64
	for _, o := range runs {
		switch {
		case o.largest != o.culprit:
			left++
		case o.named[r] == o.culprit:
			right++
		case o.named[r] == nobody:
			silent++
		default:
			wrong++
		}
	}
	all := right + silent + wrong
	note = fmt.Sprintf("%v of %v, nobody is named in %v and another in %v", right, all, silent, wrong)
	if left > 0 {
		note += fmt.Sprintf("; without %v in which another made the fleet slower", left)
	}
	return right / all, "1", note
}

// accusedInStory is in which share of the hours somebody is accused.
func accusedInStory(runs []*storyOutcome, r tenantRule) (value float64, unit, note string) {
	return accusedShare(runs, func(o *storyOutcome) []accusation { return o.story[r] }, math.Inf(1))
}

// accusedInQuiet is the same of hours in which nothing happens.
func accusedInQuiet(runs []*storyOutcome, r tenantRule) (value float64, unit, note string) {
	return accusedShare(runs, func(o *storyOutcome) []accusation { return o.quiet[r] }, math.Inf(1))
}

// untrueInStory counts only accusations that are not true.
func untrueInStory(runs []*storyOutcome, r tenantRule) (value float64, unit, note string) {
	return accusedShare(runs, func(o *storyOutcome) []accusation { return o.story[r] }, untrueBelow)
}

// accusedShare is in which share of the hours somebody is accused who made the
// fleet slower by less than a share of its latency.
func accusedShare(runs []*storyOutcome, of func(*storyOutcome) []accusation, below float64) (value float64, unit, note string) {
	var hours, counted, all, untrue int
	for _, o := range runs {
		counts := false
		for _, a := range of(o) {
			all++
			if a.excess < untrueBelow {
				untrue++
			}
			counts = counts || a.excess < below
		}
		if len(of(o)) > 0 {
			hours++
		}
		if counts {
			counted++
		}
	}
	note = fmt.Sprintf("in %d of %d hours somebody is accused", hours, len(runs))
	if all > 0 {
		note += fmt.Sprintf("; of %d accusations %d are of those who made the fleet slower by less than %v", all, untrue, untrueBelow)
	}
	return float64(counted) / float64(len(runs)), "1", note
}

// foundRuns is in which share of the runs the culprit is flagged.
func foundRuns(runs []*storyOutcome, _ tenantRule) (value float64, unit, note string) {
	delays := figuresOf(runs, func(o *storyOutcome) float64 { return o.delay })
	return float64(found(delays)) / float64(len(delays)), "1", fmt.Sprintf("%d of %d", found(delays), len(delays))
}

// delayMedian is after how long the culprit is flagged.
func delayMedian(runs []*storyOutcome, _ tenantRule) (value float64, unit, note string) {
	return medianTime(runs, func(o *storyOutcome) float64 { return o.delay })
}

// clearMedian is after how long it no longer is.
func clearMedian(runs []*storyOutcome, _ tenantRule) (value float64, unit, note string) {
	return medianTime(flagged(runs), func(o *storyOutcome) float64 { return o.clear })
}

// onsetError is how far the beginning that we tell is from the true one.
func onsetError(runs []*storyOutcome, _ tenantRule) (value float64, unit, note string) {
	late := figuresOf(flagged(runs), func(o *storyOutcome) float64 { return o.onset })
	value, unit, _ = medianTime(flagged(runs), func(o *storyOutcome) float64 { return math.Abs(o.onset) })
	return value, unit, fmt.Sprintf("90 %% of %d lie %s to %s late, median %s", len(late), short(ranked(late, 0.05)), short(ranked(late, 0.95)), short(median(late)))
}

// excessError is how far our excess of the culprit is from the true one.
func excessError(runs []*storyOutcome, _ tenantRule) (value float64, unit, note string) {
	errs := figuresOf(flagged(runs), func(o *storyOutcome) float64 { return math.Abs(o.said - o.excess) })
	said := figuresOf(flagged(runs), func(o *storyOutcome) float64 { return o.said })
	excess := figuresOf(flagged(runs), func(o *storyOutcome) float64 { return o.excess })
	return median(errs), "1", fmt.Sprintf("said %s, true %s, medians of %d", short(median(said)), short(median(excess)), len(errs))
}

// bystanders is in which share of the bursts another tenant is flagged as well.
func bystanders(runs []*storyOutcome, _ tenantRule) (value float64, unit, note string) {
	n := 0
	for _, o := range runs {
		if len(o.bystanders) > 0 {
			n++
		}
	}
	return float64(n) / float64(len(runs)), "1", fmt.Sprintf("%d of %d bursts", n, len(runs))
}

// flagged are the runs in which the culprit was.
func flagged(runs []*storyOutcome) []*storyOutcome {
	return slices.DeleteFunc(slices.Clone(runs), func(o *storyOutcome) bool { return math.IsInf(o.delay, 1) })
}

// figuresOf are the figures of the runs, rising.
func figuresOf(runs []*storyOutcome, of func(*storyOutcome) float64) (values []float64) {
	for _, o := range runs {
		values = append(values, of(o))
	}
	slices.Sort(values)
	return values
}

// medianTime is the median of a figure in panes.
func medianTime(runs []*storyOutcome, of func(*storyOutcome) float64) (value float64, unit, note string) {
	all := figuresOf(runs, of)
	return median(all) * pane.Minutes(), "min", fmt.Sprintf("90 %% of %d within %s", len(all), short(ranked(all, 0.9)))
}

// ranked is a quantile of rising values, by rank.
func ranked(rising []float64, q float64) float64 {
	if len(rising) == 0 {
		return math.NaN()
	}
	return rising[int(q*float64(len(rising)-1))]
}
