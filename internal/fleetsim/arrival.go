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
	number         uint64 // in its fleet, from 1; 0 before the fleet takes it
	tenant         int    // its number in the roster
}

// arrivalSource yields arrivals in order of time until it runs dry.
type arrivalSource interface {
	next() (arrival, bool)
}

// newArrivals makes the requests of a fleet, with what surges add to them, and
// tells who sends them.
func newArrivals(f *Fleet, faults []Fault, seed uint64) (arrivalSource, *roster, error) {
	r := newRoster(f, seed)
	source, err := endlessArrivals(f, r, seed)
	if err != nil {
		return nil, nil, err
	}
	if r.size() > 0 && f.Arrivals.Format != ServeGen {
		source = &assigned{source: source, roster: r}
	}
	if source, err = newSurging(f, source, r, faults, seed); err != nil {
		return nil, nil, err
	}
	if most := f.Arrivals.Requests; most > 0 {
		source = &limited{source: source, left: most}
	}
	return source, r, nil
}

func endlessArrivals(f *Fleet, r *roster, seed uint64) (arrivalSource, error) {
	lengths := newLengths(f, seed)
	a := &f.Arrivals
	clock := stream(seed, f.Name, "arrival")
	switch a.Process {
	case Trace:
		return openTrace(a, lengths, clock, r)
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
	a := arrival{at: r.at}
	r.lengths.fill(&a)
	return a, true
}

// limited ends after a number of requests.
type limited struct {
	source arrivalSource
	left   int
}

func (l *limited) next() (arrival, bool) {
	if l.left == 0 {
		return arrival{}, false
	}
	l.left--
	return l.source.next()
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

func (l *lengths) fill(a *arrival) {
	a.prompt = tokens(&l.prompt, l.promptOf.draw(l.promptRand))
	a.output = tokens(&l.output, l.outputOf.draw(l.outputRand))
}

// tokens scales a draw of mean 1 to whole tokens, at least one.
func tokens(t *Tokens, draw float64) int {
	return int(min(max(math.Round(t.Mean*draw), 1), float64(t.Max)))
}
