// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
)

// RouterKind names how the replica of a request is chosen.
type RouterKind string

// The routers.
const (
	RoundRobin   RouterKind = "round_robin"
	RandomChoice RouterKind = "random"
	// LeastLoaded takes the replica with the fewest requests on board.
	LeastLoaded RouterKind = "least_loaded"
)

// router sends arrivals to engines.
type router struct {
	kind    RouterKind
	random  *rand.Rand
	all     group
	detours []*detour
}

// group is engines that requests are spread over.
type group struct {
	engines []*engine
	turn    int
}

// newRouter prepares the router of a fleet with the faults that are the
// router's.
func newRouter(f *Fleet, engines []*engine, faults []Fault, seed uint64) router {
	r := router{kind: f.Router, random: stream(seed, f.Name, "router"), all: group{engines: engines}}
	for i := range faults {
		if fault := &faults[i]; fault.routes() && (fault.Fleet == "" || fault.Fleet == f.Name) {
			r.detours = append(r.detours, newDetour(f, engines, fault, stream(seed, f.Name, fmt.Sprintf("detour %d", i))))
		}
	}
	return r
}

// choose returns the engine that takes a request. Of several detours in force
// the first decides; all of them see each request.
func (r *router) choose(a arrival) *engine {
	var to *group
	for _, d := range r.detours {
		if g := d.group(a); to == nil {
			to = g
		}
	}
	if to == nil {
		to = &r.all
	}
	return r.among(to)
}

func (r *router) among(g *group) *engine {
	switch r.kind {
	case RandomChoice:
		return g.engines[r.random.IntN(len(g.engines))]
	case LeastLoaded:
		best := g.engines[0]
		for _, e := range g.engines[1:] {
			if e.load() < best.load() {
				best = e
			}
		}
		return best
	default:
		g.turn++
		return g.engines[(g.turn-1)%len(g.engines)]
	}
}

// detour parts the requests between the replicas that a fault strikes and the
// others.
type detour struct {
	from, to       float64 // seconds; +Inf when it stays
	struck, others group
	chance         float64 // share of requests that go to the struck
	share          float64 // of the requests that the fault applies to
	longest        *recent // nil when any request may go to the struck
	random         *rand.Rand
}

func newDetour(f *Fleet, engines []*engine, fault *Fault, random *rand.Rand) *detour {
	d := &detour{from: fault.From.Seconds(), to: math.Inf(1), share: cmp.Or(fault.Share, 1), random: random}
	if fault.To != 0 {
		d.to = fault.To.Seconds()
	}
	for replica, e := range engines {
		side := &d.others
		if fault.strikes(f, replica) {
			side = &d.struck
		}
		side.engines = append(side.engines, e)
	}
	weight := float64(len(d.struck.engines))
	switch fault.Kind {
	case NewRevision:
		d.chance, d.share = fault.Share, 1
		return d
	case Overload:
		weight *= fault.Factor
	default: // LongPrompts
		d.longest = new(recent)
	}
	d.chance = weight / (weight + float64(len(d.others.engines)))
	return d
}

// group returns the engines that a request is for; nil when it goes where it
// would without the fault.
func (d *detour) group(a arrival) *group {
	rank := 0.0
	if d.longest != nil {
		rank = d.longest.rank(a.prompt)
	}
	if len(d.struck.engines) == 0 || a.at < d.from || a.at >= d.to || d.random.Float64() >= d.share {
		return nil
	}
	if d.longest == nil {
		rank = d.random.Float64()
	}
	if rank < d.chance {
		return &d.struck
	}
	return &d.others
}

// recent holds the prompt lengths of a fleet's newest requests, in tokens.
type recent struct {
	lengths []int
	oldest  int
}

// rank is the share of the newest requests with a longer prompt, those of equal
// length counted by half: this one among them, which it takes in.
func (r *recent) rank(prompt int) float64 {
	const remembered = 256
	if len(r.lengths) < remembered {
		r.lengths = append(r.lengths, prompt)
	} else {
		r.lengths[r.oldest] = prompt
		r.oldest = (r.oldest + 1) % remembered
	}
	longer := 0.0
	for _, length := range r.lengths {
		switch {
		case length > prompt:
			longer++
		case length == prompt:
			longer += .5
		}
	}
	return longer / float64(len(r.lengths))
}
