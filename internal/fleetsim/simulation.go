// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"fmt"
	"slices"
	"time"
)

// Simulation plays a scenario in simulated time. It is not safe for use by
// several goroutines at once.
type Simulation struct {
	scenario Scenario
	start    time.Time
	now      time.Duration
	fleets   []*fleetRun
	engines  []*Engine
	targets  []*Target
}

// fleetRun is one fleet in motion.
type fleetRun struct {
	engines  []*engine
	arrivals arrivalSource
	pending  arrival // the next arrival
	more     bool    // whether there is one
	router   router
}

// New prepares a scenario that begins at start, with every engine ready and
// idle. Traces are read here.
func New(s Scenario, start time.Time) (*Simulation, error) {
	s.Fleets, s.Faults = slices.Clone(s.Fleets), slices.Clone(s.Faults)
	s.setDefaults()
	if err := s.validate(); err != nil {
		return nil, err
	}
	sim := &Simulation{scenario: s, start: start}
	for i := range s.Fleets {
		f := &sim.scenario.Fleets[i]
		source, err := newArrivals(f, s.Seed)
		if err != nil {
			return nil, fmt.Errorf("fleet %s: %w", f.Name, err)
		}
		run := &fleetRun{arrivals: source, router: router{kind: f.Router, random: stream(s.Seed, f.Name, "router")}}
		run.pending, run.more = source.next()
		first := len(sim.engines)
		for replica := range f.Replicas {
			name := podName(f, replica)
			uptime := float64(loadingTime + 600 + 7*replica) // pods of a fleet rarely start at the same second
			e := newEngine(f, name, f.versionOf(replica), turns(s.Faults, f.Name, replica), s.Seed, float64(start.UnixNano())/1e9, uptime)
			run.engines = append(run.engines, e)
			sim.engines = append(sim.engines, &Engine{sim: e, replica: replica})
		}
		sim.targets = append(sim.targets, newTargets(f, sim.engines[first:])...)
		sim.fleets = append(sim.fleets, run)
	}
	return sim, nil
}

func podName(f *Fleet, replica int) string { return fmt.Sprintf("%s-%d", f.Name, replica) }

// Engines lists all engines, fleet by fleet in the scenario's order.
func (s *Simulation) Engines() []*Engine { return s.engines }

// Targets lists the pages that show the engines, in the same order: one each
// but under Ray, where a node's page shows several.
func (s *Simulation) Targets() []*Target { return s.targets }

// Now is how long the simulation has run.
func (s *Simulation) Now() time.Duration { return s.now }

// AdvanceTo plays until t after the beginning. It never goes back.
func (s *Simulation) AdvanceTo(t time.Duration) {
	if t <= s.now {
		return
	}
	s.now = t
	for _, f := range s.fleets {
		f.advance(t.Seconds())
	}
}

func (f *fleetRun) advance(t float64) {
	for f.more && f.pending.at <= t {
		if f.router.kind == LeastLoaded {
			f.advanceEngines(f.pending.at)
		}
		e := f.router.choose(f.engines)
		e.advance(f.pending.at)
		e.accept(f.pending)
		f.pending, f.more = f.arrivals.next()
	}
	f.advanceEngines(t)
}

func (f *fleetRun) advanceEngines(t float64) {
	for _, e := range f.engines {
		e.advance(t)
	}
}

func (e *engine) load() int { return len(e.waiting) + len(e.running) }

// Engine is one simulated replica.
type Engine struct {
	sim     *engine
	replica int
}

// Name of the replica's pod.
func (e *Engine) Name() string { return e.sim.name }

// Fleet is the name of the replica's fleet, Replica its number in it.
func (e *Engine) Fleet() string { return e.sim.fleet.Name }

// Replica is the engine's number in its fleet, from 0.
func (e *Engine) Replica() int { return e.replica }

// Snapshot is what an engine is doing and has measured since its process
// started, whatever its page shows.
type Snapshot struct {
	// Waiting and Running are numbers of requests, KVUsage is 0 to 1.
	Waiting, Running int
	KVUsage          float64
	// TTFT and ITL are in seconds, with the bounds of the page, or vLLM's where
	// the page has no such histogram.
	TTFT, ITL Histogram
}

// Snapshot copies the engine's state of this moment.
func (e *Engine) Snapshot() Snapshot {
	e.sim.refresh()
	return Snapshot{
		Waiting: len(e.sim.waiting),
		Running: len(e.sim.running),
		KVUsage: e.sim.values[kvUsage],
		TTFT:    e.sim.samples[ttft].snapshot(),
		ITL:     e.sim.samples[itl].snapshot(),
	}
}
