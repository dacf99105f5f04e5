// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"math"
	"math/rand/v2"
)

// arrival is one request as it reaches the fleet: seconds since the simulation
// began, and its lengths in tokens.
type arrival struct {
	at             float64
	prompt, output int
}

// arrivalSource yields arrivals in order of time until it runs dry.
type arrivalSource interface {
	next() (arrival, bool)
}

func newArrivals(f *Fleet, seed uint64) (arrivalSource, error) {
	lengths := newLengths(f, seed)
	a := &f.Arrivals
	clock := stream(seed, f.Name, "arrival")
	switch a.Process {
	case Trace:
		return openTrace(a, lengths, clock)
	case GammaSpaced:
		return &renewal{gap: newVariate(ShapeGamma, 1/math.Sqrt(a.Burstiness)), rate: a.Rate, clock: clock, lengths: lengths}, nil
	default:
		return &renewal{gap: newVariate(ShapeGamma, 1), rate: a.Rate, clock: clock, lengths: lengths}, nil
	}
}

// renewal is a process whose gaps are independent: gamma-spaced, and Poisson
// when the gamma has shape 1.
type renewal struct {
	gap     variate
	rate    float64 // requests a second
	clock   *rand.Rand
	lengths *lengths
	at      float64
}

func (r *renewal) next() (arrival, bool) {
	r.at += r.gap.draw(r.clock) / r.rate
	return r.lengths.fill(r.at), true
}

// lengths draws the prompt and output tokens of requests that do not bring
// their own.
type lengths struct {
	prompt, output         Tokens
	promptOf, outputOf     variate
	promptRand, outputRand *rand.Rand
}

func newLengths(f *Fleet, seed uint64) *lengths {
	return &lengths{
		prompt:     f.Prompt,
		output:     f.Output,
		promptOf:   newVariate(f.Prompt.Distribution, *f.Prompt.CV),
		outputOf:   newVariate(f.Output.Distribution, *f.Output.CV),
		promptRand: stream(seed, f.Name, "prompt"),
		outputRand: stream(seed, f.Name, "output"),
	}
}

func (l *lengths) fill(at float64) arrival {
	return arrival{
		at:     at,
		prompt: tokens(&l.prompt, l.promptOf.draw(l.promptRand)),
		output: tokens(&l.output, l.outputOf.draw(l.outputRand)),
	}
}

// tokens scales a draw of mean 1 to whole tokens, at least one.
func tokens(t *Tokens, draw float64) int {
	return int(min(max(math.Round(t.Mean*draw), 1), float64(t.Max)))
}

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
	kind   RouterKind
	turn   int
	random *rand.Rand
}

func (r *router) choose(engines []*engine) *engine {
	switch r.kind {
	case RandomChoice:
		return engines[r.random.IntN(len(engines))]
	case LeastLoaded:
		best := engines[0]
		for _, e := range engines[1:] {
			if e.load() < best.load() {
				best = e
			}
		}
		return best
	default:
		r.turn++
		return engines[(r.turn-1)%len(engines)]
	}
}
