// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"fmt"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

const (
	pane        = time.Minute
	windowPanes = 5
)

// told is one signal that replicas tell, in these buckets.
type told struct {
	signal fleet.Signal
	layout *window.Layout
}

// frames are the closed frames of several fleets, from what their replicas
// count pane by pane. They use their memory again: a frame is as borrowed as
// one of a registry.
type frames struct {
	fleets []fleet.Frame
	panes  int // that have begun
	// history is, by fleet, replica and signal, the newest panes: what falls out
	// of the window is taken from what it tells.
	history [][][]ring
}

// ring is one signal in the panes of the window.
type ring struct {
	counts [windowPanes][]uint64
	sums   [windowPanes]float64
}

// newFrames makes frames of so many fleets, whose replicas all tell the same.
func newFrames(fleets, replicas int, tells []told) *frames {
	f := &frames{fleets: make([]fleet.Frame, fleets), history: make([][][]ring, fleets)}
	var signals []fleet.Signal
	for _, t := range tells {
		signals = append(signals, t.signal)
	}
	for i := range f.fleets {
		frame := &f.fleets[i]
		frame.Fleet = &fleet.Fleet{Keys: []fleet.Label{{Name: "model_name", Value: fmt.Sprintf("model-%d", i)}}}
		frame.Signals, frame.Pane = signals, pane
		frame.Members = make([]fleet.MemberFrame, replicas)
		f.history[i] = make([][]ring, replicas)
		for m := range frame.Members {
			member := &frame.Members[m]
			member.Identity = &fleet.Identity{Replica: fmt.Sprintf("model-%d-%d", i, m), Keys: frame.Fleet.Keys}
			member.Told, member.Recent = distributions(tells), distributions(tells)
			f.history[i][m] = make([]ring, len(tells))
			for s, t := range tells {
				for p := range windowPanes {
					f.history[i][m][s].counts[p] = make([]uint64, t.layout.Width())
				}
			}
		}
	}
	return f
}

func distributions(tells []told) []fleet.Distribution {
	all := make([]fleet.Distribution, len(tells))
	for i, t := range tells {
		all[i] = fleet.Distribution{Layout: t.layout, Counts: make([]uint64, t.layout.Width())}
	}
	return all
}

// begin opens the next pane. Every signal of every replica is to be told in it.
func (f *frames) begin() {
	f.panes++
	for i := range f.fleets {
		frame := &f.fleets[i]
		frame.End = window.Instant(f.panes) * window.Instant(pane)
		for m := range frame.Members {
			frame.Members[m].Warming = f.panes < windowPanes
		}
	}
}

// tell says what a replica counted of one signal in the open pane.
func (f *frames) tell(of, replica, signal int, counts ...uint64) {
	member := &f.fleets[of].Members[replica]
	oldest := f.history[of][replica][signal].counts[f.panes%windowPanes]
	window := member.Told[signal].Counts
	for b, c := range counts {
		window[b] += c - oldest[b]
	}
	copy(oldest, counts)
	copy(member.Recent[signal].Counts, counts)
}

// tellSum says what the observations of the open pane add up to.
func (f *frames) tellSum(of, replica, signal int, sum float64) {
	member := &f.fleets[of].Members[replica]
	recent, window := &member.Recent[signal], &member.Told[signal]
	oldest := &f.history[of][replica][signal].sums[f.panes%windowPanes]
	recent.Sum, recent.SumKnown = sum, true
	window.Sum, window.SumKnown = window.Sum+sum-*oldest, true
	*oldest = sum
}
