// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"fmt"
	"math"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/judge/outlier"
)

// world is fleets whose truth is known, as one collector sees them.
type world struct {
	name string
	// latencies raise the alarm; errors do as well.
	latencies []fleet.Signal
	fleets    int
	replicas  int // of each fleet
	panes     int
	// start puts the world into motion.
	start func() (player, error)
}

// player plays a world.
type player interface {
	// tells are the signals of frames, the world's latencies first.
	tells() []told
	// play fills the frames with the next pane.
	play(*frames)
	// truth is what a judge should find, and what is no false alarm.
	truth() truth
}

// truth is what is true of a world.
type truth struct {
	// spells are when replicas are slow for a reason. A replica is healthy until
	// its first: after one, it may rightly be flagged for a while.
	spells []spell
	// never are the replicas that are never healthy: they are slower than
	// tolerated all along, by chance.
	never []place
}

// place is a replica of a world.
type place struct{ fleet, replica int }

// spell is when a replica is slow: in the panes from one to before another.
type spell struct {
	place

	from, to int
	factor   float64
	cause    outlier.Cause // NoCause if there is no telling
}

// tolerance and alarmOptions are those that the product has by default, but for
// the signals.
const tolerance = 1.25

func (w *world) alarmOptions() outlier.AlarmOptions {
	return outlier.AlarmOptions{
		FalseAlarmsPerWeek: 1, Tolerance: tolerance, Signals: w.latencies,
		ClearAfter: 10 * time.Minute, Warmup: warmup * pane,
	}
}

// run plays the world through our alarm and through the peers.
func (w *world) run() (*outcome, error) {
	player, err := w.start()
	if err != nil {
		return nil, fmt.Errorf("world %s: %w", w.name, err)
	}
	f := newFrames(w.fleets, w.replicas, player.tells())
	alarm := outlier.NewAlarm(w.alarmOptions())
	peers := newPeers(w.fleets, w.replicas, len(w.latencies))
	watch := newWatch(w, player.truth())
	said := newFlags(w.replicas)
	for t := range w.panes {
		f.begin()
		player.play(f)
		alarm.Begin()
		for i := range f.fleets {
			if err := said.take(alarm.Judge(&f.fleets[i])); err != nil {
				return nil, fmt.Errorf("world %s, pane %d, fleet %d: %w", w.name, t, i, err)
			}
			peers.judge(i, &f.fleets[i], &said.on)
			watch.note(t, i, said)
		}
	}
	return &watch.outcome, nil
}

// flags are who is flagged in one fleet, by rule and replica, and why we think
// that is.
type flags struct {
	on     [ruleCount][]bool
	causes []outlier.Cause
}

func newFlags(replicas int) *flags {
	f := &flags{causes: make([]outlier.Cause, replicas)}
	for r := range f.on {
		f.on[r] = make([]bool, replicas)
	}
	return f
}

// take reads what our alarm says. Evidence that is no number is an error: an
// alarm that cannot count is never raised.
func (f *flags) take(verdicts *outlier.Verdicts) error {
	for i, v := range verdicts.Replicas {
		if math.IsNaN(v.Evidence.Value) || math.IsInf(v.Evidence.Value, 0) {
			return fmt.Errorf("the evidence of replica %d is %v", i, v.Evidence.Value)
		}
		f.on[ours][i] = v.Outlier.Withheld == outlier.Given && v.Outlier.Value == 1
		f.causes[i] = v.Cause
	}
	return nil
}
