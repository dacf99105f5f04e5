// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"fmt"
	"math"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/window"
)

// drawnPlan is a world whose observations are drawn.
type drawnPlan struct {
	name      string
	fleets    int
	replicas  int // of each fleet
	panes     int
	latencies []fleet.Signal
	engine    fleetsim.EngineKind
	shape     fleetsim.Shape
	noise     float64 // between pods, and of each over time, on the log scale
	requests  float64 // of a replica in a pane
	spells    []spell
}

// typical is the median of a latency in seconds, and its spread on the log scale
// if it is log-normal; other shapes have the same mean and variance.
var typical = map[fleet.Signal]struct{ median, sigma float64 }{
	fleet.TTFT: {0.3, 0.6},
	fleet.ITL:  {0.03, 0.3},
	fleet.E2E:  {4, 0.6},
}

const (
	rateSwing    = 0.3
	latencySwing = 0.2
	errorRatio   = 0.002
)

// drawnWorld makes a world of a plan.
func drawnWorld(p drawnPlan, seed uint64) *world {
	plan := fleetsim.Drawn{
		Replicas: p.replicas, Rate: p.requests, RateSwing: rateSwing, LatencySwing: latencySwing, ErrorRatio: errorRatio,
		PodNoise: p.noise, DriftNoise: p.noise,
	}
	w := &world{name: p.name, latencies: p.latencies, fleets: p.fleets, replicas: p.replicas, panes: p.panes}
	for _, s := range p.latencies {
		l := typical[s]
		plan.Latencies = append(plan.Latencies, fleetsim.DrawnLatency{
			Bounds: fleetsim.Bounds(p.engine, s), Mean: l.median * math.Exp(l.sigma*l.sigma/2), CV: math.Sqrt(math.Expm1(l.sigma * l.sigma)), Distribution: p.shape,
		})
	}
	w.start = func() (player, error) { return startDrawn(p, plan, seed) }
	return w
}

// drawnPlayer is a drawn world in motion.
type drawnPlayer struct {
	fleets    []*fleetsim.Drawing
	told      []told
	latencies int
	is        truth
}

func startDrawn(p drawnPlan, plan fleetsim.Drawn, seed uint64) (player, error) {
	d := &drawnPlayer{latencies: len(p.latencies), is: truth{spells: p.spells}}
	var layouts window.Layouts
	for i, s := range p.latencies {
		d.told = append(d.told, told{s, layouts.Intern(plan.Latencies[i].Bounds)})
	}
	d.told = append(d.told, told{fleet.Errors, layouts.Intern(nil)}, told{fleet.Finished, layouts.Intern(nil)})
	for i := range p.fleets {
		plan.Name = fmt.Sprintf("%s-%d", p.name, i)
		plan.Slowdowns = nil
		for _, s := range p.spells {
			if s.fleet == i {
				plan.Slowdowns = append(plan.Slowdowns, fleetsim.Slowdown{Replica: s.replica, From: s.from, To: s.to, Factor: s.factor})
			}
		}
		drawing, err := fleetsim.Draw(plan, seed)
		if err != nil {
			return nil, err
		}
		d.fleets = append(d.fleets, drawing)
		for m := range p.replicas {
			if drawing.Factor(m) > tolerance {
				d.is.never = append(d.is.never, place{i, m})
			}
		}
	}
	return d, nil
}

func (d *drawnPlayer) tells() []told { return d.told }

func (d *drawnPlayer) truth() truth { return d.is }

func (d *drawnPlayer) play(f *frames) {
	for i, drawing := range d.fleets {
		drawing.Next()
		for m := range f.fleets[i].Members {
			for s := range d.latencies {
				f.tell(i, m, s, drawing.Counts(m, s)...)
			}
			finished, failed := drawing.Requests(m)
			f.tell(i, m, d.latencies, failed)
			f.tell(i, m, d.latencies+1, finished)
		}
	}
}
