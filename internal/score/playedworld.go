// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"fmt"
	"slices"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/judge/outlier"
	"github.com/llmfleet/llmfleet/internal/window"
)

// defaultLatencies are the signals of the alarm that the product has by default.
var defaultLatencies = []fleet.Signal{fleet.TTFT, fleet.ITL}

// histograms and counters are what played worlds tell beside the latencies.
var (
	histograms = []fleet.Signal{fleet.PromptLength}
	counters   = []fleet.Signal{fleet.Errors, fleet.Finished, fleet.PrefixHits, fleet.PrefixQueries}
)

// looks are how often a pane gauges are read.
const looks = 6

// playedWorld is a world of simulated engines. Its fleets have one engine and
// one number of replicas. causes say what each kind of fault is to be
// found as.
func playedWorld(name string, s fleetsim.Scenario, panes int, causes map[fleetsim.FaultKind]outlier.Cause) *world {
	return &world{
		name: name, latencies: defaultLatencies, fleets: len(s.Fleets), replicas: s.Fleets[0].Replicas, panes: panes,
		start: func() (player, error) {
			sim, err := fleetsim.New(s, time.Unix(0, 0))
			if err != nil {
				return nil, err
			}
			p := &enginePlayer{sim: sim, panes: panes, causes: causes}
			p.learn()
			return p, p.find(&s)
		},
	}
}

// enginePlayer is a played world in motion.
type enginePlayer struct {
	sim     *fleetsim.Simulation
	told    []told
	panes   int
	played  int
	causes  map[fleetsim.FaultKind]outlier.Cause
	engines []engineWatch
	places  []place // of the engines
	is      truth
}

// engineWatch is what was last seen of one engine.
type engineWatch struct {
	totals           []total
	running, waiting [windowPanes]float64 // means of panes
}

// total is a histogram or counter since its process started.
type total struct {
	counts []uint64
	sum    float64
}

// learn finds out what the engines tell, and in which buckets.
func (p *enginePlayer) learn() {
	var layouts window.Layouts
	for _, signal := range slices.Concat(defaultLatencies, histograms, counters) {
		p.told = append(p.told, told{signal, layouts.Intern(p.sim.Engines()[0].Measured(signal).Bounds)})
	}
	for range p.sim.Engines() {
		p.engines = append(p.engines, engineWatch{totals: make([]total, len(p.told))})
	}
}

// find finds the engines' places and what strikes them.
func (p *enginePlayer) find(s *fleetsim.Scenario) error {
	places := map[string]place{}
	for _, e := range p.sim.Engines() {
		of := slices.IndexFunc(s.Fleets, func(f fleetsim.Fleet) bool { return f.Name == e.Fleet() })
		p.places = append(p.places, place{of, e.Replica()})
		places[e.Name()] = p.places[len(p.places)-1]
	}
	for _, fault := range p.sim.AnswerKey() {
		cause, known := p.causes[fault.Kind]
		if !known {
			return fmt.Errorf("there is no saying what a fault of kind %s is to be found as", fault.Kind)
		}
		p.is.spells = append(p.is.spells, spell{
			place: places[fault.Replica], from: int(fault.Time.Sub(time.Unix(0, 0)) / pane), to: p.panes, factor: fault.Factor, cause: cause,
		})
	}
	return nil
}

func (p *enginePlayer) tells() []told { return p.told }

func (p *enginePlayer) truth() truth { return p.is }

func (p *enginePlayer) play(f *frames) {
	slot := f.panes % windowPanes
	for i := range p.engines {
		p.engines[i].running[slot], p.engines[i].waiting[slot] = 0, 0
	}
	for range looks {
		p.played++
		p.sim.AdvanceTo(time.Duration(p.played) * pane / looks)
		for i, e := range p.sim.Engines() {
			now := e.Snapshot()
			p.engines[i].running[slot] += float64(now.Running) / looks
			p.engines[i].waiting[slot] += float64(now.Waiting) / looks
		}
	}
	for i, e := range p.sim.Engines() {
		p.tell(f, p.places[i], e, &p.engines[i])
	}
}

// tell writes one engine's pane into its frame.
func (p *enginePlayer) tell(f *frames, at place, e *fleetsim.Engine, seen *engineWatch) {
	now := e.Snapshot()
	member := &f.fleets[at.fleet].Members[at.replica]
	id := *member.Identity
	id.Node = e.Node()
	if revision := e.Revision(); revision != "" {
		id.Variant = []fleet.Label{{Name: "model_revision", Value: revision}}
	}
	member.Identity, member.Started, member.Realtime = &id, e.Started(), true
	slots := min(f.panes, windowPanes)
	member.Load[fleet.LoadOf(fleet.Running)] = loadOf(seen.running[:], slots, now.Running)
	member.Load[fleet.LoadOf(fleet.Waiting)] = loadOf(seen.waiting[:], slots, now.Waiting)
	for s, t := range p.told {
		total := totalOf(e, &now, t.signal)
		counts, sum := seen.totals[s].increaseTo(total)
		f.tell(at.fleet, at.replica, s, counts...)
		f.tellSum(at.fleet, at.replica, s, sum)
		seen.totals[s] = total
	}
}

func loadOf(means []float64, slots, now int) fleet.Load {
	l := fleet.Load{MeanKnown: true, Now: float64(now), NowKnown: true}
	for _, mean := range means {
		l.Mean += mean / float64(slots)
	}
	return l
}

// totalOf is what an engine has told of a signal since its process started.
func totalOf(e *fleetsim.Engine, now *fleetsim.Snapshot, s fleet.Signal) total {
	count := func(v float64) total { return total{counts: []uint64{uint64(v)}} }
	switch s {
	case fleet.Errors:
		return count(now.Failed)
	case fleet.Finished:
		return count(now.Finished + now.Failed)
	case fleet.PrefixHits:
		return count(now.PrefixHits)
	case fleet.PrefixQueries:
		return count(now.PrefixQueries)
	case fleet.GenerationTokens:
		return count(now.GeneratedTokens)
	default:
		h := e.Measured(s)
		return total{counts: h.Counts, sum: h.Sum}
	}
}

// increaseTo is what was added since the total, all of the new one if the
// process is another.
func (t total) increaseTo(now total) (counts []uint64, sum float64) {
	counts, sum = slices.Clone(now.counts), now.sum
	for i, c := range t.counts {
		if c > counts[i] {
			return now.counts, now.sum
		}
	}
	for i, c := range t.counts {
		counts[i] -= c
	}
	return counts, sum - t.sum
}
