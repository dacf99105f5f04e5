// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"iter"
	"math"
)

// Sample is one reported state of a histogram. The slice is borrowed for the
// duration of the call.
type Sample struct {
	At    Instant
	Start Instant // when counting began, as the sender says; zero when unknown
	Delta bool    // counts are of (Start, At] only, not since Start
	Sum   float64
	// Counts has one count a bucket of the layout, not cumulative.
	Counts []uint64
}

// tooMany is where a bucket count stops being a count: a falling cumulative
// bucket arrives as 2^64 - n.
const tooMany = 1 << 62

// unreliableResets is how many resets in one window no restarting process
// explains: two processes are answering under one name.
const unreliableResets = 3

// Histogram is one histogram series over a sliding window: per pane the
// increase of every bucket and of the sum. Not safe for concurrent use.
type Histogram struct {
	layout *Layout
	// cells holds, slot after slot, the increase of each bucket and then a
	// trailer: the sum's two halves and the marks. One flat array a series
	// keeps a replica's signal under its memory budget.
	cells []uint32
	head  int64    // newest pane that has a slot
	last  []uint64 // bucket counts of the newest sample; nil before the first with these buckets
	at    Instant  // of the newest sample
	start Instant  // of the newest sample
	sum   float64  // of the newest sample
}

const (
	trailerSumLow = iota
	trailerSumHigh
	trailerMarks // resets in the low bits, then whether the sum is broken
	trailerWidth

	marksResets    = 0xffff
	marksSumBroken = 1 << 16
	marksTold      = 1 << 17 // a sample came that could be counted
	marksStill     = 1 << 18 // the last of them was no higher than the one before
)

// NewHistogram makes an empty series with the given buckets.
func NewHistogram(g Grid, layout *Layout) Histogram {
	return Histogram{
		layout: layout,
		cells:  make([]uint32, g.slots()*int64(layout.Width()+trailerWidth)),
	}
}

// Layout is the series' buckets.
func (h *Histogram) Layout() *Layout { return h.layout }

// At is the time of the newest sample.
func (h *Histogram) At() Instant { return h.at }

// Total is the number of observations in the newest cumulative sample, if there
// was one.
func (h *Histogram) Total() (n uint64, ok bool) {
	for _, c := range h.last {
		n += c
	}
	return n, h.last != nil
}

// Observe folds one sample in. The increase since the sample before belongs to
// the pane of this sample's time. A fall of any bucket is a reset of the whole
// histogram, and then the new value is the increase (Prometheus would judge
// each bucket by itself). A first sample counts only if the sender says that
// counting began inside the window and before the sample.
func (h *Histogram) Observe(g Grid, s *Sample) Outcome {
	if o := h.order(s); o != Accepted {
		return o
	}
	for _, c := range s.Counts {
		if c > tooMany {
			return BadBuckets
		}
	}
	outcome, base, counts := h.classify(g, s)
	if counts {
		outcome = h.credit(g, s, base, outcome)
	}
	if !s.Delta {
		h.last = append(h.last[:0], s.Counts...)
	}
	h.at, h.start, h.sum = s.At, s.Start, s.Sum
	return outcome
}

// order tells whether the sample comes after the one before.
func (h *Histogram) order(s *Sample) Outcome {
	switch {
	case h.at == 0 || s.At > h.at:
		if s.Delta && s.Start != 0 && h.at.Sub(s.Start) > s.At.Sub(h.at) {
			return OutOfOrder // the most of it was counted before
		}
		return Accepted
	case s.At == h.at:
		return Duplicate
	default:
		return OutOfOrder
	}
}

// classify decides what a sample is an increase over: base is nil for zero.
func (h *Histogram) classify(g Grid, s *Sample) (outcome Outcome, base []uint64, counts bool) {
	switch {
	case s.Delta:
		return Accepted, nil, true
	case h.at == 0:
		if oldest := g.End(g.first(g.Pane(s.At)) - 1); s.Start > oldest && s.Start < s.At {
			return Accepted, nil, true
		}
		return First, nil, false
	case s.At.Sub(h.at) > MaxGap:
		return Gap, nil, false
	case h.last == nil: // the sample before was another process', see succeed
		return Reset, nil, true
	}
	for i, c := range s.Counts {
		if c < h.last[i] {
			return Reset, nil, true
		}
	}
	if s.Start != h.start {
		return StartMoved, h.last, true
	}
	return Accepted, h.last, true
}

// credit adds the sample's increase over base to its pane.
func (h *Histogram) credit(g Grid, s *Sample, base []uint64, outcome Outcome) Outcome {
	slot := h.slot(g, g.Pane(s.At))
	if slot == nil {
		return Late
	}
	for i, c := range s.Counts {
		if base != nil {
			c -= base[i]
		}
		if c > math.MaxUint32-uint64(slot[i]) {
			return Implausible
		}
	}
	sum, still := s.Sum, true
	for i, c := range s.Counts {
		if base != nil {
			c -= base[i]
		}
		still = still && c == 0
		slot[i] += uint32(c) //nolint:gosec // bounded above
	}
	if base != nil {
		sum -= h.sum
	}
	trailer := slot[len(s.Counts):]
	trailer[trailerMarks] = trailer[trailerMarks]&^marksStill | marksTold
	if still {
		trailer[trailerMarks] |= marksStill
	}
	if outcome == Reset && trailer[trailerMarks]&marksResets < marksResets {
		trailer[trailerMarks]++
	}
	if !(sum >= 0) || math.IsInf(sum, 1) { // also when it is NaN
		trailer[trailerMarks] |= marksSumBroken
		return BadSum
	}
	setSum(trailer, getSum(trailer)+sum)
	return outcome
}

// slot returns the cells of pane k, which it clears if they held an older
// pane; nil if k has left the ring.
func (h *Histogram) slot(g Grid, k int64) []uint32 {
	slots := g.slots()
	if k <= h.head-slots {
		return nil
	}
	stride := int64(h.layout.Width() + trailerWidth)
	for p := max(h.head+1, k-slots+1); p <= k; p++ {
		i := p % slots * stride
		clear(h.cells[i : i+stride])
	}
	h.head = max(h.head, k)
	i := k % slots * stride
	return h.cells[i : i+stride]
}

// Increase is what a histogram gained in one window.
type Increase struct {
	Sum        float64
	SumKnown   bool
	Unreliable bool // too many resets: two processes under one name
	// Stalled is in how many panes, since the newest whose last sample rose,
	// samples came all the same.
	Stalled int
}

// Read adds the increase of each bucket over the window ending with pane k to
// counts (one a bucket, not cumulative) and returns the rest. An unreliable
// series adds nothing.
func (h *Histogram) Read(g Grid, k int64, counts []uint64) Increase {
	from, to := h.span(g, g.first(k), k)
	in := Increase{SumKnown: true}
	resets := uint32(0)
	for _, trailer := range h.panes(g, from, to) {
		resets += trailer[trailerMarks] & marksResets
		in.Sum += getSum(trailer)
		in.SumKnown = in.SumKnown && trailer[trailerMarks]&marksSumBroken == 0
	}
	if resets >= unreliableResets {
		return Increase{Unreliable: true}
	}
	for cells, trailer := range h.panes(g, from, to) {
		credit(counts, cells)
		switch marks := trailer[trailerMarks]; {
		case marks&marksStill != 0:
			in.Stalled++
		case marks&marksTold != 0:
			in.Stalled = 0
		}
	}
	return in
}

// ReadNewest adds the increase of each bucket over the newest panes of the
// window ending with pane k to counts.
func (h *Histogram) ReadNewest(g Grid, k, panes int64, counts []uint64) {
	from, to := h.span(g, max(g.first(k), k-panes+1), k)
	for cells := range h.panes(g, from, to) {
		credit(counts, cells)
	}
}

// span is those of the panes from first to last that have a slot.
func (h *Histogram) span(g Grid, first, last int64) (from, to int64) {
	return max(first, h.head-g.slots()+1), min(last, h.head)
}

// panes are what the slots of the panes from one to another hold: a cell a
// bucket, and the trailer. A division a pane would cost more than the reading.
func (h *Histogram) panes(g Grid, from, to int64) iter.Seq2[[]uint32, []uint32] {
	return func(yield func(cells, trailer []uint32) bool) {
		width := h.layout.Width()
		stride := width + trailerWidth
		at := int(from%g.slots()) * stride
		for p := from; p <= to; p++ {
			if !yield(h.cells[at:at+width], h.cells[at+width:at+stride]) {
				return
			}
			if at += stride; at == len(h.cells) {
				at = 0
			}
		}
	}
}

// credit adds cells to counts.
func credit(counts []uint64, cells []uint32) {
	for i, c := range cells {
		counts[i] += uint64(c)
	}
}

func getSum(trailer []uint32) float64 {
	return math.Float64frombits(uint64(trailer[trailerSumHigh])<<32 | uint64(trailer[trailerSumLow]))
}

func setSum(trailer []uint32, v float64) {
	bits := math.Float64bits(v)
	trailer[trailerSumLow], trailer[trailerSumHigh] = uint32(bits), uint32(bits>>32) //nolint:gosec // the two halves
}
