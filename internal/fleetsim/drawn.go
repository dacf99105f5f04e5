// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// DrawnPane is the length of a drawn fleet's pane: a step of the slow drift.
	DrawnPane = driftPeriod * time.Second

	panesADay = int(24 * time.Hour / DrawnPane)
)

// Drawn is a fleet without engines: what its replicas observe is drawn from
// distributions, pane by pane. It plays weeks of a thousand replicas in seconds,
// and what is true of it is known in closed form.
//
// All latencies of replica i in pane t are multiplied by
//
//	exp(PodNoise·a_i + DriftNoise·b_it + LatencySwing·sin(2πt/day)) · factors of its slowdowns
//
// with a_i standard normal, and b_it a first-order autoregressive process of
// variance 1 and coefficient 0.8 a pane.
type Drawn struct {
	// Name of the fleet; replica i is Name-i.
	Name string
	// Replicas is how many there are.
	Replicas int
	// Rate is how many requests a replica finishes in a pane, on average over a
	// day: a Poisson process.
	Rate float64
	// RateSwing is by which share of Rate load rises and falls with the day,
	// below 1; LatencySwing is by how much latencies do, on the log scale.
	RateSwing, LatencySwing float64
	// ErrorRatio is which share of requests ends with an error.
	ErrorRatio float64
	// Latencies that a request is observed in, once each.
	Latencies []DrawnLatency
	// PodNoise and DriftNoise are those of Latency.
	PodNoise, DriftNoise float64
	// Slowdowns of single replicas.
	Slowdowns []Slowdown
}

// DrawnLatency is the distribution of one latency, and the buckets it is
// counted in.
type DrawnLatency struct {
	// Bounds are upper bounds in seconds, rising.
	Bounds []float64
	// Mean in seconds, and coefficient of variation above 0.
	Mean, CV float64
	// Distribution is the shape.
	Distribution Shape
}

// Slowdown makes a replica Factor times as slow in the panes from From to
// before To, counted from 0.
type Slowdown struct {
	Replica, From, To int
	Factor            float64
}

// Drawing is a drawn fleet in motion. Not safe for concurrent use.
type Drawing struct {
	plan     Drawn
	pane     int // the next one
	buckets  []bucketDraw
	replicas []drawnReplica
}

// drawnReplica is one replica and its newest pane.
type drawnReplica struct {
	requests  *rand.Rand
	drifts    *rand.Rand
	offset    float64 // log
	drift     float64 // log
	slowdowns []Slowdown
	toError   float64 // requests until the next that fails
	counts    [][]uint64
	finished  uint64
	failed    uint64
}

// Draw puts a fleet into motion, before its first pane. Every replica draws
// from streams of its own, so a slowdown changes nothing but the replica it
// strikes.
func Draw(plan Drawn, seed uint64) (*Drawing, error) {
	if err := plan.validate(); err != nil {
		return nil, err
	}
	d := &Drawing{plan: plan, replicas: make([]drawnReplica, plan.Replicas)}
	for i := range plan.Latencies {
		d.buckets = append(d.buckets, newBucketDraw(&plan.Latencies[i]))
	}
	for i := range d.replicas {
		name := fmt.Sprintf("%s-%d", plan.Name, i)
		r := &d.replicas[i]
		r.requests = stream(seed, name, "requests")
		r.drifts = stream(seed, name, "drift")
		r.offset = plan.PodNoise * stream(seed, name, "offset").NormFloat64()
		r.drift = plan.DriftNoise * r.drifts.NormFloat64()
		r.toError = nextError(r.requests, plan.ErrorRatio)
		for _, s := range plan.Slowdowns {
			if s.Replica == i {
				r.slowdowns = append(r.slowdowns, s)
			}
		}
		for _, l := range plan.Latencies {
			r.counts = append(r.counts, make([]uint64, len(l.Bounds)+1))
		}
	}
	return d, nil
}

func (p *Drawn) validate() error {
	var errs mistakes
	if p.Replicas < 1 || !(p.Rate > 0) || len(p.Latencies) == 0 {
		errs.add(p.Name, "has %d replicas, %v requests a pane and %d latencies: it needs some of each", p.Replicas, p.Rate, len(p.Latencies))
	}
	for i, l := range p.Latencies {
		key := fmt.Sprintf("%s.latencies[%d]", p.Name, i)
		oneOf(&errs, key+".distribution", l.Distribution, ShapeLognormal, ShapeGamma, ShapeWeibull)
		if !(l.Mean > 0) || !(l.CV > 0) || len(l.Bounds) == 0 || !slices.IsSorted(l.Bounds) {
			errs.add(key, "needs a mean and a cv above 0, and rising bounds")
		}
	}
	for i, s := range p.Slowdowns {
		if s.Replica < 0 || s.Replica >= p.Replicas || !(s.Factor > 0) {
			errs.add(fmt.Sprintf("%s.slowdowns[%d]", p.Name, i), "needs a replica of the fleet and a factor above 0")
		}
	}
	return errors.Join(errs...)
}

// Next draws the next pane of all replicas.
func (d *Drawing) Next() {
	day := math.Sin(2 * math.Pi * float64(d.pane) / float64(panesADay))
	rate := d.plan.Rate * (1 + d.plan.RateSwing*day)
	for i := range d.replicas {
		r := &d.replicas[i]
		if d.pane > 0 {
			r.drift = driftMemory*r.drift + d.plan.DriftNoise*math.Sqrt(1-driftMemory*driftMemory)*r.drifts.NormFloat64()
		}
		factor := r.offset + r.drift + d.plan.LatencySwing*day
		for _, s := range r.slowdowns {
			if s.From <= d.pane && d.pane < s.To {
				factor += math.Log(s.Factor)
			}
		}
		d.serve(r, rate, factor)
	}
	d.pane++
}

// serve draws one replica's requests of a pane, each as many times slower as
// the logarithm says.
func (d *Drawing) serve(r *drawnReplica, rate, logFactor float64) {
	for l := range d.buckets {
		d.buckets[l].slowDown(logFactor)
		clear(r.counts[l])
	}
	r.finished, r.failed = poisson(r.requests, rate), 0
	for range r.finished {
		if r.toError--; r.toError < 0 {
			r.failed++
			r.toError = nextError(r.requests, d.plan.ErrorRatio)
		}
		for l := range d.buckets {
			r.counts[l][d.buckets[l].draw(r.requests)]++
		}
	}
}

// nextError draws how many requests end well before one fails: geometric.
func nextError(r *rand.Rand, ratio float64) float64 {
	if ratio == 0 {
		return math.Inf(1)
	}
	return math.Floor(r.ExpFloat64() / -math.Log1p(-ratio))
}

// Counts are the newest pane's observations of one latency by one replica: one
// count a bucket, not cumulative. The next pane overwrites them.
func (d *Drawing) Counts(replica, latency int) []uint64 { return d.replicas[replica].counts[latency] }

// Requests are how many requests one replica finished in the newest pane, and
// how many of those with an error.
func (d *Drawing) Requests(replica int) (finished, failed uint64) {
	r := &d.replicas[replica]
	return r.finished, r.failed
}

// Factor is how many times slower a replica is than the fleet is meant to be,
// all along.
func (d *Drawing) Factor(replica int) float64 { return math.Exp(d.replicas[replica].offset) }
