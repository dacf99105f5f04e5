// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// takeCanary reads a figure of some plans' runs, and what it stands on.
type takeCanary func(sets []*rolloutSet, r canaryRule) (value float64, unit, note string)

// controlled tells whether something that is wrong was found in the run.
func (o *canaryOutcome) controlled() bool {
	return !math.IsInf(o.failed[canaryDelta], 1) || !math.IsInf(o.relapse, 1) || !math.IsInf(o.mixed, 1) || len(o.measures) > 0
}

// runs are those of all sets.
func runs(sets []*rolloutSet) (all []*canaryOutcome) {
	for _, s := range sets {
		all = append(all, s.outcomes...)
	}
	return all
}

// countRuns is how many runs something is true of.
func countRuns(all []*canaryOutcome, is func(*canaryOutcome) bool) (n int) {
	for _, o := range all {
		if is(o) {
			n++
		}
	}
	return n
}

// share is in which share of the runs it came to something within so many minutes.
func shareWithin(all []*canaryOutcome, within float64, at func(*canaryOutcome) float64) (value float64, unit, note string) {
	times := make([]float64, 0, len(all))
	for _, o := range all {
		times = append(times, at(o))
	}
	slices.Sort(times)
	n := countRuns(all, func(o *canaryOutcome) bool { return !math.IsInf(at(o), 1) && at(o) <= within })
	note = fmt.Sprintf("%d of %d", n, len(all))
	if !math.IsInf(within, 1) {
		note += fmt.Sprintf(" within %v min", within)
	}
	if n > 0 {
		note += fmt.Sprintf(", median %s, 90 %% within %s", short(median(times)), short(ranked(times, 0.9)))
	}
	return float64(n) / float64(len(all)), "1", note
}

// falseFails is in which share of the runs of a plan a canary that is no worse is
// ever failed: of the plan in which it is highest.
func falseFails(sets []*rolloutSet, r canaryRule) (value float64, unit, note string) {
	var notes []string
	for _, s := range sets {
		n := countRuns(s.outcomes, func(o *canaryOutcome) bool { return !math.IsInf(o.failed[r], 1) })
		value = max(value, float64(n)/float64(len(s.outcomes)))
		text := fmt.Sprintf("%d of %d with %s, a look a minute for %d min", n, len(s.outcomes), podsName(s.pods), s.minutes)
		if r == canaryDelta && n > 0 {
			text += ", for " + drivers(s.outcomes)
		}
		notes = append(notes, text)
	}
	return value, "1", strings.Join(notes, "; ")
}

// drivers are the measures that runs were failed for, and how many for each.
func drivers(all []*canaryOutcome) string {
	counts := map[string]int{}
	for _, o := range all {
		if !math.IsInf(o.failed[canaryDelta], 1) {
			counts[o.driver]++
		}
	}
	return listed(counts)
}

// listed writes how many there are of each.
func listed(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}

// measuresFailed is in which share of the runs any measure, watched or not, is
// ever failed.
func measuresFailed(sets []*rolloutSet, _ canaryRule) (value float64, unit, note string) {
	counts := map[string]int{}
	all := runs(sets)
	for _, o := range all {
		for name := range o.measures {
			counts[name]++
		}
	}
	n := countRuns(all, func(o *canaryOutcome) bool { return len(o.measures) > 0 })
	note = fmt.Sprintf("%d of %d, watched or not", n, len(all))
	if n > 0 {
		note += "; for " + listed(counts)
	}
	return float64(n) / float64(len(all)), "1", note
}

// failedFor is in which share of the runs the canary is failed in time, and for
// the measure in which it is worse.
func failedFor(driver string, within float64) takeCanary {
	return func(sets []*rolloutSet, r canaryRule) (value float64, unit, note string) {
		return shareWithin(runs(sets), within, func(o *canaryOutcome) float64 {
			if r == canaryDelta && o.driver != driver {
				return math.Inf(1)
			}
			return o.failed[r]
		})
	}
}

// measureFailed is the same of a single measure.
func measureFailed(name string, within float64) takeCanary {
	return func(sets []*rolloutSet, _ canaryRule) (value float64, unit, note string) {
		return shareWithin(runs(sets), within, func(o *canaryOutcome) float64 { return o.failedMeasure(name) })
	}
}

// passedWithin is in which share of the runs the canary passes in time.
func passedWithin(within float64) takeCanary {
	return func(sets []*rolloutSet, _ canaryRule) (value float64, unit, note string) {
		return shareWithin(runs(sets), within, func(o *canaryOutcome) float64 { return o.passed })
	}
}

// mixedWithin is in which share of the runs prompts are found to differ in time.
func mixedWithin(within float64) takeCanary {
	return func(sets []*rolloutSet, _ canaryRule) (value float64, unit, note string) {
		return shareWithin(runs(sets), within, func(o *canaryOutcome) float64 { return o.mixed })
	}
}

// relapseFound is in which share of the runs that were not failed the canary is
// once it is slower.
func relapseFound(sets []*rolloutSet, _ canaryRule) (value float64, unit, note string) {
	all := slices.DeleteFunc(runs(sets), func(o *canaryOutcome) bool { return !math.IsInf(o.failed[canaryDelta], 1) })
	value, unit, note = shareWithin(all, relapseMinutes, func(o *canaryOutcome) float64 { return o.relapse })
	return value, unit, note + ", after two hours without fault"
}

// minutesToFail is the median time in which a slower canary is failed.
func minutesToFail(sets []*rolloutSet, r canaryRule) (value float64, unit, note string) {
	times := failTimes(sets[0].outcomes, r)
	return median(times), "min", fmt.Sprintf("found %d of %d, 90 %% within %s", found(times), len(times), short(ranked(times, 0.9)))
}

// failTimes are when a rule failed each run, rising.
func failTimes(all []*canaryOutcome, r canaryRule) (times []float64) {
	for _, o := range all {
		times = append(times, o.failed[r])
	}
	slices.Sort(times)
	return times
}

// cellsBehind is in how many of the plans we are worse than a peer: with more false
// fails of a canary that is no worse, or a later median time in which a slower one
// is failed.
func cellsBehind(peer canaryRule) takeCanary {
	return func(sets []*rolloutSet, _ canaryRule) (value float64, unit, note string) {
		var behind []string
		for _, s := range sets {
			of := func(r canaryRule) float64 {
				times := failTimes(s.outcomes, r)
				if s.canary == usual {
					return float64(found(times))
				}
				return median(times)
			}
			if mine, theirs := of(canaryDelta), of(peer); mine > theirs {
				behind = append(behind, fmt.Sprintf("%s %s to %s", s.name, short(mine), short(theirs)))
			}
		}
		note = fmt.Sprintf("of %d cells", len(sets))
		if len(behind) > 0 {
			note += ": " + strings.Join(behind, "; ")
		}
		return float64(len(behind)), "{cell}", note
	}
}
