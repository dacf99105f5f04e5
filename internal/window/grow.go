// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package window

import "math"

// ObserveExponential folds one sample with exponential buckets in, as Observe
// does one with h's own; h has exponential ones, or none yet. They grow with
// those of the samples: to a wider range, a larger zero bucket, a lower scale;
// what was counted is kept.
//
// Counting began anew also where a cumulative sample has finer buckets or a
// smaller zero bucket than the one before, or its zero bucket ends inside of a
// bucket that was not empty: no process does that in the midst of its life, and
// Prometheus takes it for a reset, too. Then the series goes on with the new
// buckets, and former is the one with those so far.
func (h *Histogram) ObserveExponential(g Grid, ls *Layouts, e Exponential, s *Sample) (outcome Outcome, former *Histogram) {
	if o := h.order(s); o != Accepted {
		return o, nil
	}
	if !countable(s.Counts) {
		return BadBuckets, nil
	}
	switch {
	case h.layout == nil:
		*h = NewHistogram(g, ls.InternExponential(e))
	case !s.Delta && h.restarted(e):
		former = h.succeed(g, ls.InternExponential(e))
	case !h.layout.exponential.holds(e):
		h.widen(g, ls.InternExponential(h.layout.exponential.join(e)))
	}
	memory := ls.borrow(h.layout.Width())
	defer ls.giveBack(memory)
	own := *s
	own.Counts = *memory
	h.layout.exponential.Add(own.Counts, e, s.Counts)
	return h.Observe(g, &own), former
}

// countable tells whether all counts together are a count.
func countable(counts []uint64) bool {
	total := uint64(0)
	for _, c := range counts {
		if c > tooMany-total {
			return false
		}
		total += c
	}
	return true
}

// restarted tells whether the buckets of a cumulative sample alone show that
// counting began anew. A scale that was lowered only for the width of the range
// could not be higher with this sample either.
func (h *Histogram) restarted(e Exponential) bool {
	own := h.layout.exponential
	switch {
	case e.Scale > own.Scale && own.Scale < MaxScale && 2*own.join(e).round().Buckets <= maxBuckets:
		return true
	case e.ZeroThreshold < own.ZeroThreshold:
		return true
	}
	i, inside := own.straddling(e.ZeroThreshold)
	return inside && h.based && h.count(1+i-own.First) > 0
}

// succeed makes h the empty successor of another process' histogram, which it
// returns. Its next sample is a reset, unless it comes too late. The resets so
// far are kept, for all of a window count together.
func (h *Histogram) succeed(g Grid, to *Layout) *Histogram {
	former := *h
	*h = NewHistogram(g, to)
	h.at, h.start = former.at, former.start
	h.setSum(former.sum())
	for i := range g.slots() {
		*h.marks(i) = *former.marks(i) & marksResets
	}
	return &former
}

// widen regroups all that was counted to a layout that holds the present one.
func (h *Histogram) widen(g Grid, to *Layout) {
	wide := NewHistogram(g, to)
	wide.at, wide.start = h.at, h.start
	wide.setSum(h.sum())
	width := h.layout.Width()
	narrow, grouped := make([]uint64, width), make([]uint64, to.Width())
	for i := range g.slots() {
		from, into := h.pane(i), wide.pane(i)
		for j, c := range from[:width] {
			narrow[j] = uint64(c)
		}
		clear(grouped)
		to.Regroup(grouped, h.layout, narrow)
		for j, c := range grouped {
			into[j] = uint32(min(c, math.MaxUint32))
		}
		copy(into[len(grouped):], from[width:])
	}
	if h.based {
		for j := range narrow {
			narrow[j] = h.count(j)
		}
		clear(grouped)
		to.Regroup(grouped, h.layout, narrow)
		wide.base(grouped)
	}
	*h = wide
}

// marks are those of a slot.
func (h *Histogram) marks(slot int64) *uint32 { return &h.pane(slot)[h.layout.Width()] }
