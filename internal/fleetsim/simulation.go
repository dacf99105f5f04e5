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
	log      requestLog
}

// fleetRun is one fleet in motion.
type fleetRun struct {
	fleet    *Fleet
	log      *requestLog
	roster   *roster
	engines  []*engine
	arrivals arrivalSource
	requests uint64  // that have arrived
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
	for i := range s.Faults {
		s.Faults[i].choose(s.Fleets, s.Seed)
	}
	sim := &Simulation{scenario: s, start: start, log: requestLog{start: start}}
	for i := range s.Fleets {
		if err := sim.add(&sim.scenario.Fleets[i]); err != nil {
			return nil, err
		}
	}
	sim.targets = append(sim.targets, newGPUTargets(sim.engines)...)
	if s.GatewayPage {
		page := &gatewayPage{}
		sim.Watch(page.count)
		sim.targets = append(sim.targets, &Target{name: gatewayName, dialect: &dialect{path: "/metrics"}, gateway: page})
	}
	sim.targets = append(sim.targets, newPodTargets(s.Faults, sim.engines)...)
	return sim, nil
}

// add prepares one fleet.
func (s *Simulation) add(f *Fleet) error {
	seed, faults := s.scenario.Seed, s.scenario.Faults
	source, roster, err := newArrivals(f, faults, seed)
	if err != nil {
		return fmt.Errorf("fleet %s: %w", f.Name, err)
	}
	run := &fleetRun{fleet: f, log: &s.log, roster: roster, arrivals: source}
	run.pending, run.more = source.next()
	first := len(s.engines)
	for replica := range f.Replicas {
		e := newEngine(run, replica, turns(faults, f, replica), seed, float64(s.start.UnixNano())/1e9)
		run.engines = append(run.engines, e)
		s.engines = append(s.engines, &Engine{sim: e})
	}
	run.router = newRouter(f, run.engines, faults, seed)
	s.targets = append(s.targets, newTargets(f, s.engines[first:])...)
	s.fleets = append(s.fleets, run)
	return nil
}

func podName(f *Fleet, replica int) string { return fmt.Sprintf("%s-%d", f.Name, replica) }

// Engines lists all engines, fleet by fleet in the scenario's order.
func (s *Simulation) Engines() []*Engine { return s.engines }

// Targets lists all pages: first those that show the engines, in the same order,
// one each but under Ray, where a node's page shows several; then those that
// show GPUs, one for each node; then the gateway's, if there is one; then those
// of pods that take the place of others.
func (s *Simulation) Targets() []*Target { return s.targets }

// Now is how long the simulation has run.
func (s *Simulation) Now() time.Duration { return s.now }

// AdvanceTo plays until t after the beginning. It never goes back.
func (s *Simulation) AdvanceTo(t time.Duration) {
	for s.log.watched() && s.now+playStep < t {
		s.play(s.now + playStep)
	}
	if s.now < t {
		s.play(t)
	}
}

func (s *Simulation) play(t time.Duration) {
	s.now = t
	for _, f := range s.fleets {
		f.advance(t.Seconds())
	}
	s.log.handOut(t)
}

func (f *fleetRun) advance(t float64) {
	for f.more && f.pending.at <= t {
		a := f.pending
		f.pending, f.more = f.arrivals.next()
		f.requests++
		a.number = f.requests
		f.take(a)
	}
	f.advanceEngines(t)
}

// take sends a request to an engine, if the gateway lets it through.
func (f *fleetRun) take(a arrival) {
	if f.roster.turnsAway(a) {
		f.turnAway(a)
		return
	}
	if f.router.kind == LeastLoaded {
		f.advanceEngines(a.at)
	}
	e := f.router.choose(a)
	e.advance(a.at)
	e.accept(a)
}

func (f *fleetRun) advanceEngines(t float64) {
	for _, e := range f.engines {
		e.advance(t)
	}
}

func (e *engine) load() int { return len(e.waiting) + len(e.running) }

// Engine is one simulated replica.
type Engine struct {
	sim *engine
}

// Name of the replica's pod at this moment: a rollout may replace it.
func (e *Engine) Name() string { return e.sim.name }

// Fleet is the name of the replica's fleet, Replica its number in it.
func (e *Engine) Fleet() string { return e.sim.fleet.Name }

// Replica is the engine's number in its fleet, from 0.
func (e *Engine) Replica() int { return e.sim.replica }

// Node that the replica runs on; empty if the scenario does not say.
func (e *Engine) Node() string { return e.sim.fleet.nodeOf(e.sim.replica) }
