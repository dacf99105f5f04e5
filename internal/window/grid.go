// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package window is event time: it turns what engines report as ever-growing
// histograms and sampled gauges into what happened in a sliding window.
//
// Time always comes in as an argument; nothing here reads a clock. A window is
// made of panes (start, end], aligned to the interval since the Unix epoch, and
// is read at a pane's end. Over panes, the increase of a histogram equals
// PromQL's increase(x[w] anchored) at that instant, with two differences: a
// histogram is reset as a whole, and an increase over a gap longer than MaxGap
// contributes nothing.
package window

import "time"

// Instant is a point in event time, in nanoseconds since the Unix epoch. Zero
// means unknown.
type Instant int64

// MaxGap is the longest time between two samples over which an increase is
// believed. It is PromQL's default lookback: past it, an anchored range has no
// anchor.
const MaxGap = 5 * time.Minute

// Add returns t moved by d.
func (t Instant) Add(d time.Duration) Instant { return t + Instant(d) }

// Sub returns the time from u to t.
func (t Instant) Sub(u Instant) time.Duration { return time.Duration(t - u) }

// Grid is the geometry of a sliding window: panes of one interval, so many of
// them in a window, and so many more that may fill before the window's last
// pane is judged.
type Grid struct {
	interval Instant
	panes    int64
	ahead    int64
}

// NewGrid makes the geometry of windows of the given length in panes of the
// given interval; length is a multiple of interval. Samples may arrive up to
// twice the lateness past the end of the pane that is judged next: once because
// the judgement waits so long, once because a sample may be so far ahead.
func NewGrid(interval, length, lateness time.Duration) Grid {
	ahead := (2*lateness + interval - 1) / interval
	return Grid{
		interval: Instant(interval),
		panes:    int64(length / interval),
		ahead:    max(1, int64(ahead)),
	}
}

// Interval is the length of a pane.
func (g Grid) Interval() time.Duration { return time.Duration(g.interval) }

// Length is the length of the window.
func (g Grid) Length() time.Duration { return time.Duration(g.interval * Instant(g.panes)) }

// Pane is the pane that holds t: pane k is ((k-1)·interval, k·interval].
func (g Grid) Pane(t Instant) int64 { return int64((t + g.interval - 1) / g.interval) }

// End is the last instant of pane k.
func (g Grid) End(k int64) Instant { return Instant(k) * g.interval }

// slots is how many panes a series keeps at a time.
func (g Grid) slots() int64 { return g.panes + g.ahead }

// first is the oldest pane of the window that ends with pane k.
func (g Grid) first(k int64) int64 { return k - g.panes + 1 }

// Horizon is what a sample's time is held against: the end of the pane judged
// last. The zero Horizon accepts nothing; open it at start.
type Horizon struct {
	earliest Instant // a sample at or before it belongs to no window still to be judged
	latest   Instant // a sample after it claims to come from the future
}

// NewHorizon is the horizon after the pane ending at end was judged, at the
// earliest end + lateness by the wall clock. Until the next judgement, one
// interval later, samples of (end + interval - length, end + interval +
// 2·lateness] are taken.
func NewHorizon(g Grid, end Instant, lateness time.Duration) Horizon {
	next := end + g.interval
	return Horizon{
		earliest: next - Instant(g.Length()),
		latest:   next.Add(2 * lateness),
	}
}

// Admit tells whether a sample of time t can still count.
func (h Horizon) Admit(t Instant) Outcome {
	switch {
	case t <= h.earliest:
		return Late
	case t > h.latest:
		return Future
	default:
		return Accepted
	}
}

// Outcome is what became of one sample.
type Outcome uint8

// The outcomes. All but Accepted, Reset and StartMoved mean that some part of
// the sample was not used.
const (
	Accepted     Outcome = iota
	Reset                // the counter fell: the new value counts from zero
	StartMoved           // the start timestamp moved and no value fell: the increase counts as ever
	First                // first sample of a series: the baseline, counts nothing
	Duplicate            // same timestamp as the sample before
	OutOfOrder           // older than the sample before
	Late                 // older than every window still to be judged
	Future               // too far ahead of the clock
	Gap                  // more than MaxGap after the sample before: the new baseline, counts nothing
	BadBuckets           // bucket counts that no histogram can have
	BadSum               // the sum fell while the count rose: the count is used, the sum is not
	Implausible          // more observations in one pane than can be counted
	OutcomeCount         // how many outcomes there are; not an outcome
)

var outcomeNames = [OutcomeCount]string{
	Accepted: "accepted", Reset: "reset", StartMoved: "start_moved", First: "first", Duplicate: "duplicate",
	OutOfOrder: "out_of_order", Late: "late", Future: "future", Gap: "gap", BadBuckets: "bad_buckets",
	BadSum: "bad_sum", Implausible: "implausible",
}

// Used tells whether the sample, or a part of it, was used.
func (o Outcome) Used() bool {
	switch o {
	case Accepted, Reset, StartMoved, First, Gap, BadSum:
		return true
	default:
		return false
	}
}

// String is the outcome's name as it stands in self-telemetry.
func (o Outcome) String() string {
	if o >= OutcomeCount {
		return "unknown"
	}
	return outcomeNames[o]
}
