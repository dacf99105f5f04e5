// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"math"
	"slices"
)

// What a GPU shows of itself: made up, but rising and falling with the work.
const (
	gpuClock     = 1980 // MHz of the streaming multiprocessors
	gpuClockStep = 15   // MHz between two clocks that it can run at
	memoryClock  = 2619 // MHz
	idlePower    = 110  // W
	workPower    = 480  // W more at full load
	idleHeat     = 38   // degrees Celsius
	workHeat     = 30   // degrees more at full load
	hottest      = 87   // degrees at which the clock is lowered
	gpuMemoryMiB = 81559
	gpuUsedMiB   = 71680
)

// gpu is the accelerator of one replica. A new process leaves its counters as
// they are.
type gpu struct {
	index     int       // on its node
	busy      float64   // seconds of work
	load      rateMeter // busy seconds of the newest whole second
	xid       int       // the newest one; 0 before any
	throttles map[Mode][]float64
	rates     map[Mode]float64 // errors a second at each link

	settled   float64          // seconds up to which the next two are counted
	throttled map[Mode]float64 // seconds at a lower clock, by reason
	errors    map[Mode]float64 // errors of each link
}

func newGPU() *gpu {
	return &gpu{
		throttles: map[Mode][]float64{},
		rates:     map[Mode]float64{},
		throttled: map[Mode]float64{},
		errors:    map[Mode]float64{},
	}
}

// work counts a step that ended now and took so many seconds.
func (g *gpu) work(now, took float64) {
	g.busy += took
	g.load.add(now, took)
}

func (g *gpu) throttle(now float64, reason Mode, factor float64) {
	g.settle(now)
	g.throttles[reason] = append(g.throttles[reason], factor)
}

func (g *gpu) release(now float64, reason Mode, factor float64) {
	g.settle(now)
	g.throttles[reason] = without(g.throttles[reason], factor)
}

// rise changes by how many errors a second a link's counter rises.
func (g *gpu) rise(now float64, link Mode, rate float64) {
	g.settle(now)
	g.rates[link] += rate
}

// settle counts what went on since it was last called.
func (g *gpu) settle(now float64) {
	passed := now - g.settled
	g.settled = now
	for reason, factors := range g.throttles {
		if len(factors) > 0 {
			g.throttled[reason] += passed
		}
	}
	for link, rate := range g.rates {
		g.errors[link] += rate * passed
	}
}

// clock of the streaming multiprocessors, in MHz.
func (g *gpu) clock() float64 {
	slower := 1.0
	for _, factors := range g.throttles {
		for _, factor := range factors {
			slower *= factor
		}
	}
	return math.Floor(gpuClock/slower/gpuClockStep) * gpuClockStep
}

// usage is the busy share of the newest second, 0 to 1.
func (g *gpu) usage() float64 { return min(g.load.roll(g.settled), 1) }

// power in W: a GPU over its limit is held at what it draws without load's last
// quarter.
func (g *gpu) power() float64 {
	usage := g.usage()
	if len(g.throttles[Power]) > 0 {
		usage = min(usage, .75)
	}
	return idlePower + workPower*usage
}

// temperature in degrees Celsius.
func (g *gpu) temperature() float64 {
	if len(g.throttles[Thermal]) > 0 {
		return hottest
	}
	return math.Round(idleHeat + workHeat*g.usage())
}

// energy in mJ since the simulation began.
func (g *gpu) energy() float64 { return 1000 * (idlePower*g.settled + workPower*g.busy) }

// nodesOf lists the nodes of all engines, each once and in their order, and
// numbers the GPUs of each.
func nodesOf(engines []*Engine) (nodes []string, on map[string][]*Engine) {
	on = map[string][]*Engine{}
	for _, e := range engines {
		node := e.Node()
		if node == "" {
			continue
		}
		if !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
		e.sim.gpu.index = len(on[node])
		on[node] = append(on[node], e)
	}
	return nodes, on
}
