// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"iter"

	"github.com/llmfleet/llmfleet/internal/window"
)

// Distribution is what one latency did in the window, over all ranks.
type Distribution struct {
	// Layout is nil if the replica told nothing of the signal.
	Layout *window.Layout
	// Counts has one count a bucket, not cumulative.
	Counts []uint64
	// Sum is in the signal's unit.
	Sum      float64
	SumKnown bool
	// Unreliable: two processes answer under one name, so nothing is counted.
	Unreliable bool
	// Stalled is in how many panes, since the newest whose last sample counted
	// anything, samples came all the same; of any rank, the fewest.
	Stalled int
	// Ever: something was counted, in the window or before.
	Ever bool
}

// Observations is how many observations the distribution has.
func (d *Distribution) Observations() uint64 {
	var n uint64
	for _, c := range d.Counts {
		n += c
	}
	return n
}

// Distributions yields all that is to be counted of one signal over the window,
// by its index: bucketed, reliable and not empty; of replicas that are there and
// of departed ones.
func (f *Frame) Distributions(signal int) iter.Seq[*Distribution] {
	return f.countable(func(m *MemberFrame) *Distribution { return &m.Told[signal] })
}

// Recents yields the same over the alarm's pane.
func (f *Frame) Recents(signal int) iter.Seq[*Distribution] {
	return f.countable(func(m *MemberFrame) *Distribution { return &m.Recent[signal] })
}

func (f *Frame) countable(of func(*MemberFrame) *Distribution) iter.Seq[*Distribution] {
	return func(yield func(*Distribution) bool) {
		for _, members := range [2][]MemberFrame{f.Members, f.Departed} {
			for i := range members {
				d := of(&members[i])
				if d.Layout != nil && d.Layout.Bucketed() && !d.Unreliable && !empty(d.Counts) && !yield(d) {
					return
				}
			}
		}
	}
}
