// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import "github.com/llmfleet/llmfleet/internal/window"

// Load is one gauge of a replica over the window: requests are summed over
// ranks, a usage is their mean.
type Load struct {
	Mean      float64 // over time
	MeanKnown bool
	Now       float64 // at the window's end
	NowKnown  bool
	Busy      int // in how many of the newest panes it was above zero, of any rank
}

const loads = int(KVUsage-Waiting) + 1

// LoadOf is the index of Waiting, Running or KVUsage in MemberFrame.Load.
func LoadOf(s Signal) int { return int(s - Waiting) }

// isLoad tells whether the signal is one of Waiting, Running and KVUsage.
func isLoad(s Signal) bool { return s >= Waiting && s <= KVUsage }

// isLevel tells whether the signal is any other gauge.
func isLevel(s Signal) bool { return s.Kind() == Gauge && !isLoad(s) }

// loadSums gathers the gauges of a replica: its load, and the levels that were
// asked for.
type loadSums struct {
	load   [loads]loadSum
	levels []loadSum
}

// of is where the signal is gathered; nil if it is not asked for.
func (s *loadSums) of(f *Frame, signal Signal) *loadSum {
	if isLoad(signal) {
		return &s.load[LoadOf(signal)]
	}
	if i := f.Index(signal); i >= 0 && i < len(s.levels) {
		return &s.levels[i]
	}
	return nil
}

// tell writes what was gathered.
func (s *loadSums) tell(view *MemberFrame) {
	for i := range s.load {
		view.Load[i] = s.load[i].load(Waiting+Signal(i) == KVUsage)
	}
	for i := range s.levels {
		view.Levels = append(view.Levels, s.levels[i].load(false))
	}
}

// loadSum gathers one gauge over the ranks of a replica.
type loadSum struct {
	integral, known, longest float64
	now                      float64
	nowKnown, busy           int
}

func (s *loadSum) add(l window.Level) {
	s.integral += l.Integral
	s.known += l.Known
	s.longest = max(s.longest, l.Known)
	s.busy = max(s.busy, l.Busy)
	if l.NowKnown {
		s.now += l.Now
		s.nowKnown++
	}
}

// load is the sum of the ranks, or their mean. Ranks that were there for a part
// of the known time count for that part.
func (s *loadSum) load(mean bool) Load {
	l := Load{MeanKnown: s.longest > 0, NowKnown: s.nowKnown > 0, Now: s.now, Busy: s.busy}
	over := s.longest
	if mean {
		over = s.known
		l.Now /= max(1, float64(s.nowKnown))
	}
	if l.MeanKnown {
		l.Mean = s.integral / over
	}
	return l
}
