// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"math"
	"time"
)

// Gauge is one sampled gauge over a sliding window: its value at a pane's end
// and its mean over time. A sample holds until the next one, or until it is
// suspended or too old. Not safe for concurrent use.
type Gauge struct {
	slots []gaugeSlot
	head  int64   // newest pane that has a slot
	at    Instant // of the newest sample or suspension
	value float64 // of the newest sample; NaN while suspended
	// The newest sample that has left the slots: it is the value at the
	// window's end if the next one came later.
	formerAt    Instant
	formerValue float64
}

type gaugeSlot struct {
	integral float64 // of the value over the known time, by the nanosecond
	known    Instant // time with a known value
	at       Instant // of the pane's last sample; zero if it had none
	value    float64 // of the pane's last sample; NaN if suspended
}

// NewGauge makes an empty series.
func NewGauge(g Grid) Gauge {
	return Gauge{slots: make([]gaugeSlot, g.slots()), value: math.NaN()}
}

// At is the time of the newest sample.
func (x *Gauge) At() Instant { return x.at }

// Observe folds one sample in.
func (x *Gauge) Observe(g Grid, at Instant, value float64) Outcome {
	if x.at != 0 && at <= x.at {
		if at == x.at {
			return Duplicate
		}
		return OutOfOrder
	}
	x.hold(g, min(at, x.at.Add(MaxGap)))
	x.at, x.value = at, value
	if slot := x.slot(g, g.Pane(at)); slot != nil {
		slot.at, slot.value = at, value
		return Accepted
	}
	return Late
}

// Suspend makes the value unknown from at on, until the next sample: the
// series' target told that it has no value.
func (x *Gauge) Suspend(g Grid, at Instant) {
	if !math.IsNaN(x.value) {
		x.Observe(g, at, math.NaN())
	}
}

// hold spreads the newest value over the panes from its sample to until.
func (x *Gauge) hold(g Grid, until Instant) {
	if math.IsNaN(x.value) {
		return
	}
	for from := x.at; from < until; {
		k := g.Pane(from + 1)
		to := min(until, g.End(k))
		if slot := x.slot(g, k); slot != nil {
			slot.known += to - from
			slot.integral += x.value * float64(to-from)
		}
		from = to
	}
}

// slot returns pane k's cell, cleared if it held an older pane; nil if k has
// left the ring.
func (x *Gauge) slot(g Grid, k int64) *gaugeSlot {
	n := g.slots()
	if k <= x.head-n {
		return nil
	}
	for p := max(x.head+1, k-n+1); p <= k; p++ {
		slot := &x.slots[p%n]
		if slot.at > x.formerAt {
			x.formerAt, x.formerValue = slot.at, slot.value
		}
		*slot = gaugeSlot{}
	}
	x.head = max(x.head, k)
	return &x.slots[k%n]
}

// Level is a gauge over one window.
type Level struct {
	Integral float64 // of the value over the known time, by the second
	Known    float64 // seconds of the window in which the value is known
	Now      float64 // value at the window's end
	NowKnown bool
	LastAt   Instant // of the last sample, or of its suspension; zero if there is none at the window's end
	// Busy is in how many of the window's newest panes, of those with samples,
	// the last one was above zero.
	Busy int
}

// Read returns the gauge over the window ending with pane k. A sample older
// than maxAge at the window's end is no longer the value.
func (x *Gauge) Read(g Grid, k int64, maxAge time.Duration) Level {
	var (
		level         Level
		integral      float64
		known         Instant
		n, end        = g.slots(), g.End(k)
		lastAt        = x.formerAt
		lastValue     = x.formerValue
		newestIsAhead = x.at > end
	)
	for p := max(0, x.head-n+1); p <= min(k, x.head); p++ {
		slot := &x.slots[p%n]
		if p >= g.first(k) {
			integral += slot.integral
			known += slot.known
		}
		if slot.at != 0 {
			lastAt, lastValue = slot.at, slot.value
			if level.Busy++; p < g.first(k) || !(slot.value > 0) { // also when it is suspended
				level.Busy = 0
			}
		}
	}
	if !newestIsAhead {
		lastAt, lastValue = x.at, x.value
	}
	level.LastAt = lastAt
	if lastAt != 0 && !math.IsNaN(lastValue) {
		level.Now, level.NowKnown = lastValue, end.Sub(lastAt) < maxAge
		from := max(lastAt, g.End(g.first(k)-1))
		if held := min(end, lastAt.Add(maxAge)) - from; held > 0 && !newestIsAhead {
			integral += lastValue * float64(held)
			known += held
		}
	}
	level.Integral = integral / float64(time.Second)
	level.Known = time.Duration(known).Seconds()
	return level
}
