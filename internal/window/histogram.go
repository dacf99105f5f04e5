// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"iter"
	"math"
	"slices"
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
	// cells hold the sum of the newest sample and its bucket counts, then, slot
	// after slot, the increase of each bucket and a trailer: marks, and the sum. One
	// flat array a series, of half words, keeps a replica's signal under its memory
	// budget; the upper halves of the newest counts follow at the end once there
	// are any.
	cells []uint32
	at    Instant // of the newest sample
	start uint32  // a hash of when counting began, as the newest sample says
	based bool    // the newest sample is one that the next may be an increase over
	wide  bool    // the newest counts have upper halves
}

const (
	sumWidth   = 2 // a float64's two halves
	marksWidth = 1

	marksResets    = 0xffff // in the low bits
	marksSumBroken = 1 << 16
	marksTold      = 1 << 17 // a sample came that could be counted
	marksStill     = 1 << 18 // the last of them was no higher than the one before
)

// NewHistogram makes an empty series with the given buckets.
func NewHistogram(g Grid, layout *Layout) Histogram {
	return Histogram{
		layout: layout,
		cells:  make([]uint32, layout.newest()+int(g.slots())*layout.stride()),
	}
}

// newest is how many cells come before the slots.
func (l *Layout) newest() int { return l.sums() + l.Width() }

// stride is how many cells a slot has.
func (l *Layout) stride() int { return l.Width() + marksWidth + l.sums() }

// sums is how many cells a sum takes.
func (l *Layout) sums() int {
	if l.total {
		return 0
	}
	return sumWidth
}

// Layout is the series' buckets.
func (h *Histogram) Layout() *Layout { return h.layout }

// At is the time of the newest sample.
func (h *Histogram) At() Instant { return h.at }

// Total is the number of observations in the newest cumulative sample, if there
// was one.
func (h *Histogram) Total() (n uint64, ok bool) {
	if !h.based {
		return 0, false
	}
	for _, c := range h.lower() {
		n += uint64(c)
	}
	for _, c := range h.upper() {
		n += uint64(c) << 32
	}
	return n, true
}

// lower are the lower halves of the bucket counts of the newest cumulative sample.
func (h *Histogram) lower() []uint32 {
	from := h.layout.sums()
	return h.cells[from : from+h.layout.Width()]
}

// upper are the upper halves, if any of them is not zero.
func (h *Histogram) upper() []uint32 {
	if !h.wide {
		return nil
	}
	return h.cells[len(h.cells)-h.layout.Width():]
}

// count is that of one bucket.
func (h *Histogram) count(i int) uint64 {
	n := uint64(h.cells[h.layout.sums()+i])
	if h.wide {
		n |= uint64(h.upper()[i]) << 32
	}
	return n
}

// base keeps counts for the next sample to be an increase over.
func (h *Histogram) base(counts []uint64) {
	h.based = true
	if !h.wide && slices.ContainsFunc(counts, func(c uint64) bool { return c > math.MaxUint32 }) {
		narrow := h.cells
		h.cells, h.wide = make([]uint32, len(narrow)+len(counts)), true
		copy(h.cells, narrow)
	}
	lower := h.lower()
	for i, c := range counts {
		lower[i] = uint32(c) //nolint:gosec // the lower half
	}
	for i := range h.upper() {
		h.upper()[i] = uint32(counts[i] >> 32)
	}
}

// sum is that of the newest sample.
func (h *Histogram) sum() float64 { return getSum(h.cells[:h.layout.sums()]) }

func (h *Histogram) setSum(v float64) { setSum(h.cells[:h.layout.sums()], v) }

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
	slot := h.slot(g, s.At)
	outcome, increase, counts := h.classify(g, s)
	if counts {
		outcome = h.credit(slot, s, increase, outcome)
	}
	if !s.Delta {
		h.base(s.Counts)
	}
	h.at, h.start = s.At, hashed(s.Start)
	h.setSum(s.Sum)
	return outcome
}

// hashed is a hash of a time that is only ever compared.
func hashed(t Instant) uint32 { return uint32(uint64(t) * 0x9e3779b97f4a7c15 >> 32) } //nolint:gosec // a hash

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

// classify decides what a sample is: an increase over the one before, or over
// zero, if it counts at all.
func (h *Histogram) classify(g Grid, s *Sample) (outcome Outcome, increase, counts bool) {
	switch {
	case s.Delta:
		return Accepted, false, true
	case h.at == 0:
		if oldest := g.End(g.first(g.Pane(s.At)) - 1); s.Start > oldest && s.Start < s.At {
			return Accepted, false, true
		}
		return First, false, false
	case s.At.Sub(h.at) > MaxGap:
		return Gap, false, false
	case !h.based: // the sample before was another process', see succeed
		return Reset, false, true
	}
	for i, c := range s.Counts {
		if c < h.count(i) {
			return Reset, false, true
		}
	}
	if hashed(s.Start) != h.start {
		return StartMoved, true, true
	}
	return Accepted, true, true
}

// credit adds the sample, or its increase over the one before, to its pane.
func (h *Histogram) credit(slot []uint32, s *Sample, increase bool, outcome Outcome) Outcome {
	for i, c := range s.Counts {
		if increase {
			c -= h.count(i)
		}
		if c > math.MaxUint32-uint64(slot[i]) {
			return Implausible
		}
	}
	sum, still := s.Sum, true
	for i, c := range s.Counts {
		if increase {
			c -= h.count(i)
		}
		still = still && c == 0
		slot[i] += uint32(c) //nolint:gosec // bounded above
	}
	if increase {
		sum -= h.sum()
	}
	marks, sums := &slot[len(s.Counts)], slot[len(s.Counts)+marksWidth:]
	*marks = *marks&^marksStill | marksTold
	if still {
		*marks |= marksStill
	}
	if outcome == Reset && *marks&marksResets < marksResets {
		*marks++
	}
	if h.layout.total {
		return outcome
	}
	if !(sum >= 0) || math.IsInf(sum, 1) { // also when it is NaN
		*marks |= marksSumBroken
		return BadSum
	}
	setSum(sums, getSum(sums)+sum)
	return outcome
}

// slot returns the cells of the pane of a time that is no older than the newest
// sample's. Those of the panes since then are cleared, for they held older ones.
func (h *Histogram) slot(g Grid, at Instant) []uint32 {
	k, slots := g.Pane(at), g.slots()
	for p := max(g.Pane(h.at)+1, k-slots+1); p <= k; p++ {
		clear(h.pane(p % slots))
	}
	return h.pane(k % slots)
}

// pane is what the slot of that number holds.
func (h *Histogram) pane(slot int64) []uint32 {
	stride := h.layout.stride()
	from := h.layout.newest() + int(slot)*stride
	return h.cells[from : from+stride]
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
		resets += trailer[0] & marksResets
		in.Sum += getSum(trailer[marksWidth:])
		in.SumKnown = in.SumKnown && trailer[0]&marksSumBroken == 0
	}
	if resets >= unreliableResets {
		return Increase{Unreliable: true}
	}
	for cells, trailer := range h.panes(g, from, to) {
		credit(counts, cells)
		switch marks := trailer[0]; {
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
	newest := g.Pane(h.at)
	return max(first, newest-g.slots()+1), min(last, newest)
}

// panes are what the slots of the panes from one to another hold: a cell a
// bucket, and the trailer. A division a pane would cost more than the reading.
func (h *Histogram) panes(g Grid, from, to int64) iter.Seq2[[]uint32, []uint32] {
	return func(yield func(cells, trailer []uint32) bool) {
		width, stride, begin := h.layout.Width(), h.layout.stride(), h.layout.newest()
		end := begin + int(g.slots())*stride
		at := begin + int(from%g.slots())*stride
		for p := from; p <= to; p++ {
			if !yield(h.cells[at:at+width], h.cells[at+width:at+stride]) {
				return
			}
			if at += stride; at == end {
				at = begin
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

// getSum is a sum in its two halves; 0 of a counter, which has none.
func getSum(halves []uint32) float64 {
	if len(halves) == 0 {
		return 0
	}
	return math.Float64frombits(uint64(halves[1])<<32 | uint64(halves[0]))
}

func setSum(halves []uint32, v float64) {
	if len(halves) == 0 {
		return
	}
	bits := math.Float64bits(v)
	halves[0], halves[1] = uint32(bits), uint32(bits>>32) //nolint:gosec // the two halves
}
