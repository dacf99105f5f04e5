// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"math"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// AlarmOptions are when a replica is flagged as an outlier.
type AlarmOptions struct {
	// FalseAlarmsPerWeek is how many onsets a week there may be, at most and on
	// average, while no replica is slower than tolerated: of all fleets, replicas
	// and signals together.
	FalseAlarmsPerWeek float64
	// Tolerance is how many times slower than its fleet a replica may have been
	// all along.
	Tolerance float64
	// Signals are the latencies that raise the alarm. The error ratio always does.
	Signals []fleet.Signal
	// ClearAfter is for how long a flagged replica has to be well to be clear.
	ClearAfter time.Duration
	// Warmup is how long a replica is watched before it can be flagged.
	Warmup time.Duration
	// Strain tells how the accelerators of a replica fared over the window that
	// ends at end; nil: nothing is known of any.
	Strain func(end window.Instant, of *fleet.Identity) fleet.Strain
}

// Alarm flags the replicas that are slower than tolerated, or fail more of their
// requests, at a rate of false alarms that is set and not hoped for. In each pane
// it asks of each replica, signal and boundary: could so many of the replica's
// observations lie above it, if the replica were like its fleet? Two detectors
// gather the answers. One finds that a replica became slower than it was, the
// other that it is slower than tolerated.
//
// It remembers what it has seen, so it is given all frames, one evaluation after
// the other: Begin, then Judge for each fleet. Evidence is gathered from those in
// which a pane of its own ends. Not safe for concurrent use.
type Alarm struct {
	options   AlarmOptions
	fleets    map[string]*fleetAlarm
	threshold float64 // of a detector
	nodes     nodes
	now       window.Instant
	turned    bool
	suspects  bool
	verdicts  Verdicts
	memory
}

// memory is what one judgement needs and the next may use again.
type memory struct {
	pool    fleet.Pool
	ruler   ruler
	split   split
	squares [boundaries][]float64
	odds    [boundaries][]float64
	ratios  []float64
	gauge   yardstick
	totals  totals
	present []*member // of the replicas of the frame, in its order
	mixed   bool      // the frame has several engines
	// failures: someone in the frame counts failed requests.
	failures bool
	counts   []uint64
	causes   causes
}

// NewAlarm makes an alarm that has seen nothing.
func NewAlarm(o AlarmOptions) *Alarm {
	return &Alarm{options: o, fleets: make(map[string]*fleetAlarm), threshold: leastThreshold}
}

const (
	week = 7 * 24 * time.Hour
	// detectors are how many watch one signal of one replica.
	detectors = 2
	// fewest replicas that can be told apart: of two, either may be the outlier.
	fewest = 3
	// leastThreshold keeps the threshold a threshold, where next to nothing is
	// watched.
	leastThreshold = 100
)

// Begin begins an evaluation. The budget of false alarms is for all that is
// watched together, so the threshold of each detector follows from their number:
//
//	A = live signals of replicas · detectors · panes a week / false alarms a week
//
// A detector under its null reaches A in a pane with probability 1/A at most, on
// average over time.
func (a *Alarm) Begin() {
	forget(a.fleets, a.now, func(f *fleetAlarm) window.Instant { return f.seen })
	var steps float64 // of all detectors in a week
	for _, f := range a.fleets {
		if f.pane > 0 {
			steps += float64(f.live*detectors) * (week.Seconds() / f.pane.Seconds())
		}
	}
	a.turned, a.suspects = false, false
	a.threshold = max(steps/a.options.FalseAlarmsPerWeek, leastThreshold)
	a.nodes.turn()
}

// Suspects tells, after an evaluation, whether any replica is flagged or near it:
// then the next frames should tell CauseSignals.
func (a *Alarm) Suspects() bool { return a.suspects }

// Turned tells whether a flag turned on or off in the evaluation.
func (a *Alarm) Turned() bool { return a.turned }

const (
	// forgetAfter is how long what was learned of a replica, or of a whole fleet,
	// is kept that is not heard from.
	forgetAfter = time.Hour
	// spare is how many of those are kept so long, however few are there.
	spare = 64
)

// forget drops what has been away for long; and what has been away for a little,
// if more is away than is there: names that come and go must not fill the memory.
func forget[T any](known map[string]T, now window.Instant, seen func(T) window.Instant) {
	drop := func(after time.Duration) (present int) {
		for key, v := range known {
			switch away := now.Sub(seen(v)); {
			case away > after:
				delete(known, key)
			case away == 0:
				present++
			}
		}
		return present
	}
	if present := drop(forgetAfter); len(known) > 2*present+spare {
		drop(window.MaxGap)
	}
}

// Judge judges one fleet. Between panes of the alarm's own the verdicts stay as
// they are.
func (a *Alarm) Judge(f *fleet.Frame) *Verdicts {
	a.now = f.End
	key := f.Fleet.Key()
	of := a.fleets[key]
	if of == nil {
		of = newFleetAlarm(len(a.options.Signals) + 1)
		a.fleets[key] = of
	}
	a.attend(of, f)
	a.gauge.begin(f)
	a.failures = countsErrors(f)
	a.totals = totals{alarm: a, frame: f}
	if f.Pane > 0 && f.End >= of.last.Add(f.Pane) {
		of.last, of.pane = f.End, f.Pane
		a.step(of, f)
	}
	return a.report(f)
}

// attend finds what is remembered of the frame's replicas.
func (a *Alarm) attend(of *fleetAlarm, f *fleet.Frame) {
	of.seen = f.End
	a.present = a.present[:0]
	for i := range f.Members {
		m := &f.Members[i]
		known := of.members[m.Identity.Replica]
		if known == nil {
			known = &member{watch: watch{Born: f.End}, streams: make([]stream, len(of.signals))}
			of.members[m.Identity.Replica] = known
		}
		known.seen = f.End
		if known.restarted(m) {
			known.Held = restartPanes
		}
		a.present = append(a.present, known)
	}
}

// step adds one pane of evidence.
func (a *Alarm) step(of *fleetAlarm, f *fleet.Frame) {
	of.live = 0
	if len(f.Members) < fewest {
		return
	}
	of.panes++
	for _, m := range a.present {
		m.Told = false
	}
	a.mixed = engines(f) > 1
	ends := of.endsBlock()
	for s := range of.signals {
		a.watch(of, f, s)
		if ends {
			a.endBlock(of, f, s)
		}
	}
	if ends {
		of.panes = 0
		of.blocks++
	}
	for i, m := range a.present {
		m.Held = max(0, m.Held-1)
		a.blame(of, f, i)
	}
	of.load.learn(f, func(i int) bool { return a.suspected(a.present[i]) })
	forget(of.members, f.End, func(m *member) window.Instant { return m.seen })
}

// suspected tells whether the replica is flagged, or there is some evidence that
// it should be.
func (a *Alarm) suspected(m *member) bool { return m.raised() != 0 || a.strongest(m) > suspicious }

// watch adds one pane of one signal.
func (a *Alarm) watch(of *fleetAlarm, f *fleet.Frame, s int) {
	signal := &of.signals[s]
	tolerance := a.tolerance(signal)
	reading, ok := a.read(f, s, &signal.Boundaries, tolerance)
	if !ok {
		return
	}
	if s < len(a.options.Signals) {
		a.follow(&signal.Boundaries, reading)
	}
	for i, m := range a.present {
		above, n, told := reading(i)
		if !told {
			continue
		}
		of.live++
		m.Told = true
		if m.Held > 0 {
			m.streams[s].restart()
			continue
		}
		stream := &m.streams[s]
		stream.update(&a.split, &above, n, &signal.Dispersion.Factor, a.warm(m))
		a.decide(stream, f, i, s, tolerance)
	}
	if s < len(a.options.Signals) && signal.Boundaries[0].Value == 0 {
		a.ruler.choose(&signal.Boundaries, false)
	}
}

// tolerance is how much slower than its fleet a replica may have been all along:
// as configured, or what replicas of the fleet differ by as it is.
func (a *Alarm) tolerance(s *signal) float64 {
	return max(a.options.Tolerance, math.Exp(spreads*s.Spread))
}

// spreads is how many standard deviations of the fleet's own spread are no reason
// for an alarm.
const spreads = 3

// warm tells whether a replica has been watched for long enough.
func (a *Alarm) warm(m *member) bool { return a.now.Sub(m.Born) >= a.options.Warmup }

// decide raises the alarm, or clears it: after the replica was well for long
// enough, and all of that time. Who is no slower than is worth an alarm, or
// tolerated after one, is taken as it is: it would be found again and again.
func (a *Alarm) decide(s *stream, f *fleet.Frame, i, at int, tolerance float64) {
	strongest := s.strongest(a.boundariesOf(at))
	raise := strongest >= a.threshold
	if !raise && s.Raised == 0 || !a.warm(a.present[i]) {
		return
	}
	switch ratio, known := a.worse(f, i, at); {
	case raise && known && ratio > gate:
		a.turned = a.turned || s.Raised == 0
		s.Raised, s.Found = f.End, float32(a.weight(strongest))
		s.restart()
		a.present[i].Known = true
	case s.Raised == 0:
		if known {
			s.relearn()
		}
	case !known || ratio >= tolerance:
		s.Raised = f.End // nothing shows that it is well
	case f.End.Sub(s.Raised) >= a.options.ClearAfter:
		a.turned = true
		s.Raised = 0
		s.relearn()
	}
}

// worse is how many times slower a replica is than its peers, or fails more
// often.
func (a *Alarm) worse(f *fleet.Frame, i, s int) (ratio float64, known bool) {
	if s < len(a.options.Signals) {
		return a.gauge.slower(i, f.Index(a.options.Signals[s]))
	}
	own := a.totals.errorsOf(i)
	peers := a.totals.sums().errors.without(own)
	if own.whole == 0 || peers.whole == 0 {
		return 0, false
	}
	return own.part / own.whole / max(peers.part/peers.whole, negligible), true
}

// negligible is a share of failed requests that is none.
const negligible = 0.01

// gate is what a replica has to be slower by to be worth an alarm, whatever the
// evidence that it is.
const gate = 1.1
