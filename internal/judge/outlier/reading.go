// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"slices"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/stats"
)

// reading is what one replica of the frame observed in the pane: how much of n
// lies above each boundary.
type reading func(i int) (above [boundaries]float64, n float64, told bool)

// read prepares a pane of one signal; not ok if it says nothing.
func (a *Alarm) read(f *fleet.Frame, s int, at *[boundaries]boundary, tolerance float64) (reading, bool) {
	if s == len(a.options.Signals) {
		return a.readErrors(f, tolerance)
	}
	in := f.Index(a.options.Signals[s])
	if in < 0 || a.mixed { // engines measure latencies at different places
		return nil, false
	}
	a.pool.Gather(f, f.Recents(in))
	a.ruler.measure(&a.pool)
	a.ruler.split(&a.split, at, tolerance)
	return func(i int) (above [boundaries]float64, n float64, told bool) {
		d := &f.Members[i].Recent[in]
		switch {
		case d.Layout == nil || d.Unreliable || a.pool.Excludes(d.Layout):
			return above, 0, false
		case a.split.used == 0: // nobody observed anything
			return above, 0, true
		}
		counts := d.Counts
		if d.Layout != a.pool.Layout {
			if d.Observations() == 0 { // its buckets have no say in the pool's
				return above, 0, true
			}
			a.counts = a.pool.Regroup(a.counts, d)
			counts = a.counts
		}
		above, n = a.split.exceedancesOf(counts)
		return above, n, true
	}, true
}

// readErrors prepares a pane of the error ratio: one boundary, between requests
// that went well and those that failed.
func (a *Alarm) readErrors(f *fleet.Frame, tolerance float64) (reading, bool) {
	var failed, all uint64
	for _, members := range [2][]fleet.MemberFrame{f.Members, f.Departed} {
		for i := range members {
			if e, n, told := a.errors(f, members[i].Recent); told {
				failed += e
				all += n
			}
		}
	}
	a.split.used = 0
	if all == 0 {
		return nil, false
	}
	share := float64(failed) / float64(all)
	a.split.used, a.split.fresh[0] = 1, false
	a.split.null(0, share, moreOften(share, changeTolerance), moreOften(share, tolerance))
	return func(i int) (above [boundaries]float64, n float64, told bool) {
		e, all, told := a.errors(f, f.Members[i].Recent)
		above[0] = float64(e)
		return above, float64(all), told
	}, true
}

// errors are the requests of one replica that failed, and all that ended. Some
// engines show the counter of failures only after the first: who has none has no
// failures, where another of the fleet has one.
func (a *Alarm) errors(f *fleet.Frame, told []fleet.Distribution) (failed, all uint64, known bool) {
	if failed, all, known = errorsOf(f, told); known || !a.failures {
		return failed, all, known
	}
	if _, reason := find(f, told, fleet.Errors); reason != NotReported {
		return 0, 0, false
	}
	finished, reason := find(f, told, fleet.Finished)
	if reason != Given {
		return 0, 0, false
	}
	return 0, finished.Observations(), true
}

// countsErrors tells whether anyone in the fleet counts failed requests.
func countsErrors(f *fleet.Frame) bool {
	return slices.ContainsFunc(f.Members, func(m fleet.MemberFrame) bool {
		_, reason := find(f, m.Told, fleet.Errors)
		return reason == Given
	})
}

// moreOften is a share whose odds are so many times those of another: of what is
// rare, a share that many times as large.
func moreOften(share, times float64) float64 {
	return times * share / (1 + (times-1)*share)
}

// middling is how many replicas are looked at to find the one in the middle.
const middling = 99

// follow mutes the boundaries at which the replica in the middle is not where it
// usually is: how counts vary there has yet to be seen.
func (a *Alarm) follow(at *[boundaries]boundary, read reading) {
	if a.split.used == 0 {
		return
	}
	for j := range a.odds {
		a.odds[j] = a.odds[j][:0]
	}
	step := max(1, len(a.present)/middling)
	for i := 0; i < len(a.present); i += step {
		above, n, _ := read(i)
		if n < 1 {
			continue
		}
		for j := range above {
			a.odds[j] = append(a.odds[j], logOdds(above[j], n))
		}
	}
	for j := range at {
		if len(a.odds[j]) > 0 && !at[j].follow(stats.Median(a.odds[j])) {
			a.split.mute[j] = true
		}
	}
}
