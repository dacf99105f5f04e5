// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"math"
	"slices"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/stats"
	"github.com/llmfleet/llmfleet/internal/window"
)

// fleetAlarm is what the alarm remembers of one fleet.
type fleetAlarm struct {
	signals []signal
	members map[string]*member
	panes   int // of the current block
	blocks  int // that ended
	last    window.Instant
	pane    time.Duration
	live    int // signals of replicas that are watched
	seen    window.Instant
	load    line // of inter-token latency over the batch
}

// signal is what the alarm remembers of one signal of a whole fleet. It is plain
// numbers, so that it can be stored as it is.
type signal struct {
	Boundaries [boundaries]boundary // of the next pane
	Dispersion dispersion
	// Spread is the standard deviation of the replicas' persistent log ratios.
	Spread float64
}

// member is what the alarm remembers of one replica.
type member struct {
	watch
	streams []stream // by signal
	seen    window.Instant
}

// watch is how a replica is watched. It is plain numbers, so that it can be
// stored as it is.
type watch struct {
	Born    window.Instant // since when
	Started float64        // of its process, in seconds since the Unix epoch
	Held    int32          // panes in which nothing counts
	Known   bool           // it was flagged before
	Told    bool           // any of its signals, in the newest pane
	Blamed  [CauseCount]float32
}

// dubious is evidence that boundaries are not moved under; a healthy replica has
// it now and then.
const dubious = 30

// restartPanes are how many panes after a restart say nothing of a replica.
const restartPanes = 2

// restarted tells whether the replica's process is another than before.
func (m *member) restarted(f *fleet.MemberFrame) bool {
	restarted := m.Started != 0 && f.Started > m.Started
	m.Started = max(m.Started, f.Started)
	return restarted
}

// raised are the signals that flag the replica now, a bit each.
func (m *member) raised() (bits uint8) {
	for s := range m.streams {
		if m.streams[s].Raised != 0 {
			bits |= 1 << s
		}
	}
	return bits
}

func newFleetAlarm(signals int) *fleetAlarm {
	return &fleetAlarm{signals: make([]signal, signals), members: make(map[string]*member)}
}

// endsBlock tells whether the current pane is the last of its block.
func (of *fleetAlarm) endsBlock() bool { return of.panes >= of.blockLength() }

func (of *fleetAlarm) blockLength() int {
	if of.blocks < blockPanes/firstBlockPanes {
		return firstBlockPanes
	}
	return blockPanes
}

// move forgets what was learned of a signal at the boundaries that moved, a bit
// each.
func (of *fleetAlarm) move(s int, moved uint8) {
	for j := range boundaries {
		if moved>>j&1 == 0 {
			continue
		}
		of.signals[s].Dispersion.move(j)
		for _, m := range of.members {
			m.streams[s].move(j)
		}
	}
}

// endBlock learns from the block of one signal how much counts vary, what each
// replica's own offset is, and how much replicas differ for good.
func (a *Alarm) endBlock(of *fleetAlarm, f *fleet.Frame, s int) {
	used := a.boundariesOf(s)
	a.learnDispersion(of, s, used)
	decay := float32(math.Exp2(-float64(of.panes) * of.pane.Seconds() / offsetMemory))
	for _, m := range a.present {
		m.streams[s].endBlock(used, decay)
	}
	if s < len(a.options.Signals) {
		a.learnLatency(of, f, s, decay)
	}
}

// boundariesOf is at how many boundaries a signal is split.
func (a *Alarm) boundariesOf(s int) int {
	if s == len(a.options.Signals) {
		return 1 // requests fail, or do not
	}
	return boundaries
}

func (a *Alarm) learnDispersion(of *fleetAlarm, s, used int) {
	d := &of.signals[s].Dispersion
	if used == 1 {
		d.trust(0) // who has no errors cannot show how they come
	}
	for j := range used {
		squares := a.squares[j][:0]
		for _, m := range a.present {
			if square, ok := m.streams[s].scatter(j); ok && m.streams[s].Raised == 0 {
				squares = append(squares, square)
			}
		}
		d.learn(j, squares, of.panes)
		a.squares[j] = squares
	}
}

// learnLatency learns the spread of the replicas' medians, and moves boundaries
// that are of no use any more: by the window, as one pane of a small fleet says
// little of its tail.
func (a *Alarm) learnLatency(of *fleetAlarm, f *fleet.Frame, s int, decay float32) {
	at := f.Index(a.options.Signals[s])
	signal, ratios := &of.signals[s], a.ratios[:0]
	for i, m := range a.present {
		stream := &m.streams[s]
		if ratio, known := a.gauge.median(i, at); known {
			stream.learnRatio(ratio, decay)
		}
		if stream.RatioWeight > 0 {
			ratios = append(ratios, float64(stream.LogRatio/stream.RatioWeight))
		}
	}
	signal.Spread = stats.RobustSpread(ratios)
	a.ratios = ratios
	if signal.Boundaries[0].Value != 0 {
		a.ruler.measure(a.gauge.pool(at))
		suspects := slices.ContainsFunc(a.present, func(m *member) bool { return m.raised() != 0 || a.strongest(m) > dubious })
		of.move(s, a.ruler.choose(&signal.Boundaries, suspects))
	}
}
