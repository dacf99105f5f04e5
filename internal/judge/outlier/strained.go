// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import "github.com/llmfleet/llmfleet/internal/fleet"

// What accelerators have to tell before they are blamed. Every machine has a few
// retransmissions, and is throttled now and then.
const (
	throttledShare = 0.1 // of the time, and twice what is usual
	slowClock      = 0.9 // of the usual clock
	manyReplays    = 100 // PCIe retransmissions in the window, and ten times what is usual
)

// strained tells whether the replica's own accelerators say why it is slow, and
// those of replicas that are well do not say the same.
func (a *Alarm) strained(f *fleet.Frame, i int) bool {
	if a.options.Strain == nil {
		return false
	}
	own := a.options.Strain(f.End, f.Members[i].Identity)
	if !own.Known {
		return false
	}
	if own.XIDChanged && own.XIDHardware || own.RemappedRows > 0 {
		return true
	}
	usual := a.totals.strain()
	switch {
	case own.ThrottleKnown && own.Throttled > throttledShare && own.Throttled > 2*usual.throttled:
		return true
	case own.ClockKnown && own.Clock < slowClock*usual.clock:
		return true
	case own.NVLinkErrors > 0 && usual.links == 0:
		return true
	}
	return own.PCIeReplays > manyReplays && float64(own.PCIeReplays) > 10*usual.replays
}
