// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"math"

	"github.com/llmfleet/llmfleet/internal/window"
)

// observation is what one pane tells of the fleet, per replica.
type observation struct {
	End     window.Instant
	Running float64 // requests in the batch; negative if it is not told
	Prompt  float64 // P: uncached prompt tokens a second
	ITL     float64 // seconds
}

// reach is how many panes tokens and latency may be told apart, either way. A
// latency that is told when a request ends is behind the tokens; a gateway that
// counts tokens when a request ends is behind the latency.
const reach = 2

// lags are the panes by which latency is told after the tokens, those to be
// preferred first.
var lags = [...]int{0, 1, -1, 2, -2}

// fit is ITL = a + b·running + g·P at one lag, by least squares that forget:
// decayed means and sums of products of deviations (Welford 1962; West 1979), of
// which the coefficients follow at any time. A pane counts by the inverse square
// of its latency: errors are in proportion to it, and one pane of a fleet that is
// full would outweigh ten of a usual one.
type fit struct {
	Weight, Squares      float64 // sum of weights, and of their squares
	Running, Prompt, ITL float64 // means
	// Sums of products of deviations.
	RR, RP, PP, RI, PI, II float64
	Batched                bool // running was told
}

// deviation is how far one pane lies from the means before it, for tenants to
// keep sums that go with the fit's.
type deviation struct {
	known                bool
	part                 float64 // of the weight of all panes
	carry                float64 // what a product of deviations counts for
	running, prompt, itl float64
}

// forget lets all that was seen count less.
func (f *fit) forget(decay float64) {
	f.Weight *= decay
	f.Squares *= decay * decay
	for _, sum := range [...]*float64{&f.RR, &f.RP, &f.PP, &f.RI, &f.PI, &f.II} {
		*sum *= decay
	}
}

// add takes a pane. Where running is not told it is taken to be as ever.
func (f *fit) add(running, prompt, itl float64) deviation {
	switch {
	case running < 0:
		running = f.Running
	case !f.Batched:
		f.Batched, f.Running = true, running
	}
	weight := 1 / (itl * itl)
	before := f.Weight
	f.Weight += weight
	f.Squares += weight * weight
	part := weight / f.Weight
	carry := before * part
	r, p, i := running-f.Running, prompt-f.Prompt, itl-f.ITL
	f.Running += part * r
	f.Prompt += part * p
	f.ITL += part * i
	f.RR += carry * r * r
	f.RP += carry * r * p
	f.PP += carry * p * p
	f.RI += carry * r * i
	f.PI += carry * p * i
	f.II += carry * i * i
	return deviation{known: true, part: part, carry: carry, running: r, prompt: p, itl: i}
}

// panes is how many panes of equal weight would tell as much.
func (f *fit) panes() float64 {
	if f.Squares == 0 {
		return 0
	}
	return f.Weight * f.Weight / f.Squares
}

// moves tells whether a sum of squared deviations is more than rounding.
func (f *fit) moves(squares, mean float64) bool {
	const rounding = 1e-6
	return squares > f.Weight*(rounding*mean)*(rounding*mean)
}

// line is what a fit says.
type line struct {
	batch     float64 // b: seconds for one more request in a replica's batch
	slope     float64 // g: seconds for one more prompt token a second and replica
	left      float64 // sum of squares of what the line does not explain
	certainty float64 // g over its standard error
}

const (
	// still is the share of its mean that running has to move by to matter.
	still = 0.01
	// coefficients of the fit.
	coefficients = 3
	// exact is the least share of a variance that is taken to be unexplained,
	// however exact the numbers are.
	exact = 1e-6
)

// solve finds the line. It explains nothing where nothing moves.
//
// What the batch and the prompt tokens could both explain is put down to the
// tokens: b is by what running does of its own, over all that it does. They move
// together by nature, as requests bring both, and as latency that tokens make
// makes batches; least squares that share it out freely give the batch too much,
// and nothing to a tenant that comes with prompts alone.
func (f *fit) solve() line {
	n := f.panes()
	if n <= coefficients || !f.moves(f.PP, f.Prompt) || !f.moves(f.II, f.ITL) {
		return line{}
	}
	free := f.PP // variation of P that running does not share
	var l line
	if rr := f.RR + f.Weight*still*f.Running*still*f.Running; rr > 0 {
		l.batch = max(0, (f.RI-f.RP*f.PI/f.PP)/rr)
		free -= f.RP * f.RP / rr
	}
	with := f.PI - l.batch*f.RP
	l.slope = with / f.PP
	l.left = max(f.leftBy(l.batch)-l.slope*with, exact*f.II)
	l.certainty = l.slope / math.Sqrt(l.left/((n-coefficients)*free))
	return l
}

// leftBy is the sum of squared deviations of ITL - b·running.
func (f *fit) leftBy(batch float64) float64 {
	return max(0, f.II-batch*(2*f.RI-batch*f.RR))
}

// t is the statistic of the correlation of two figures of the panes, of which
// these are the sums of products of deviations.
func (f *fit) t(xx, xy, yy float64) float64 {
	squares := xx * yy
	if !(squares > 0) || !f.moves(f.II, f.ITL) {
		return 0
	}
	r := max(-1, min(1, xy/math.Sqrt(squares)))
	return r * math.Sqrt(max(0, f.panes()-2)/max(exact, 1-r*r))
}
