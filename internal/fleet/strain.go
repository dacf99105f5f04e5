// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"time"

	"github.com/llmfleet/llmfleet/internal/window"
)

// Strain is how the accelerators of one replica fared over one window. Those of
// a replica wait for each other at every layer, so that it is as slow as the one
// in the worst state: of times and clocks that one counts. Errors are added up;
// instances of one accelerator (MIG) each tell the whole one's.
type Strain struct {
	// Known: something tells of the replica's accelerators.
	Known bool
	// Throttled is for what share of the time in which it was watched an
	// accelerator was slowed down for power, heat or another limit. Reasons may
	// hold at the same time, so that it is the most that it can have been, and
	// may be above 1.
	Throttled     float64
	ThrottleKnown bool
	// Clock is the mean over time of the multiprocessors' clock, in Hz. An
	// accelerator without work has a low one, too: it tells beside its peers'.
	Clock      float64
	ClockKnown bool
	// XID is the code of the newest XID error in the window, if there was one; an
	// error of the hardware comes before any other.
	XID         int
	XIDChanged  bool
	XIDHardware bool // it speaks of the accelerator, and not of what runs on it
	// What was counted in the window; 0 also where nobody counts it.
	NVLinkErrors, PCIeReplays, RemappedRows uint64

	xidAt window.Instant
}

// Read returns how the accelerators of the identity's replica fared over the
// window that ends at end, a pane's end.
func (a *Accelerators) Read(end window.Instant, identity *Identity) Strain {
	a.mu.Lock()
	defer a.mu.Unlock()
	var s Strain
	h := a.holderOf(identity)
	if h == nil {
		return s
	}
	for _, x := range h.holds {
		x.read(end, &s)
	}
	return s
}

// read adds what the accelerator told.
func (x *Accelerator) read(end window.Instant, s *Strain) {
	start := end.Add(-x.store.options.Grid.Length())
	if x.presence.First > end || x.presence.Last <= start {
		return
	}
	s.Known = true
	if clock, ok := x.meanClock(end); ok && (!s.ClockKnown || clock < s.Clock) {
		s.Clock, s.ClockKnown = clock, true
	}
	s.fail(&x.xid.other, false, start, end)
	s.fail(&x.xid.hardware, true, start, end)
	throttled, known := x.gained(ThrottleTime, end)
	if watched := end.Sub(max(start, x.presence.First)); known && watched > 0 {
		held := time.Duration(throttled) * throttleResolution //nolint:gosec // a window of milliseconds
		s.Throttled, s.ThrottleKnown = max(s.Throttled, held.Seconds()/watched.Seconds()), true
	}
	s.NVLinkErrors += x.counted(NVLinkErrors, end)
	s.PCIeReplays += x.counted(PCIeReplays, end)
	s.RemappedRows += x.counted(RemappedRows, end)
}

// fail notes an error, if it is in the window and tells more than those before.
func (s *Strain) fail(e *xidError, hardware bool, start, end window.Instant) {
	if !e.within(start, end) || s.XIDHardware && !hardware || s.XIDHardware == hardware && e.at <= s.xidAt {
		return
	}
	s.XID, s.XIDChanged, s.XIDHardware, s.xidAt = e.code, true, hardware, e.at
}

// meanClock is the mean of the clock over the time in which it is known.
func (x *Accelerator) meanClock(end window.Instant) (hz float64, ok bool) {
	if x.clock == nil {
		return 0, false
	}
	g := x.store.options.Grid
	level := x.clock.Read(g, g.Pane(end), window.MaxGap)
	if level.Known > 0 {
		return level.Integral / level.Known, true
	}
	return level.Now, level.NowKnown // its first sample came at the very end
}

// gained is the increase of a signal; it is known once a counter was told twice.
func (x *Accelerator) gained(signal Signal, end window.Instant) (n uint64, known bool) {
	g := x.store.options.Grid
	for i := range x.counters {
		c := &x.counters[i]
		if c.signal != signal {
			continue
		}
		counts := [1]uint64{}
		increase := c.increase.Read(g, g.Pane(end), counts[:])
		n += counts[0]
		known = known || counts[0] > 0 || increase.Stalled > 0
	}
	return n, known
}

// counted is the increase of a signal, 0 where it is not known.
func (x *Accelerator) counted(signal Signal, end window.Instant) uint64 {
	n, _ := x.gained(signal, end)
	return n
}
