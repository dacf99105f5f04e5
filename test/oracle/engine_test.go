// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"math"
	"time"
)

// engine is the inside of a pod: what its histogram stands at.
type engine interface {
	// serve answers requests for a while.
	serve(g *generator, during time.Duration)
	// restart begins anew, and answers requests for a while.
	restart(g *generator, during time.Duration)
	// show writes the histogram of a page.
	show(*scrape)
}

// sigma is how far latencies are spread: they are lognormal.
const sigma = 0.8

// engine draws the engine of a pod.
func (g *generator) engine() engine {
	median := 0.3 * math.Exp(0.5*g.NormFloat64())
	rate := []float64{0.02, 0.2, 2, 20}[g.IntN(4)] * (0.5 + g.Float64())
	if g.form == exponential {
		return g.exponentialEngine(median, rate)
	}
	e := &explicitEngine{counts: make([]uint64, len(g.bounds)+1), mean: median * math.Exp(sigma*sigma/2), free: g.form == custom}
	below := 0.0
	for _, bound := range g.bounds {
		share := 0.5 * math.Erfc(-math.Log(bound/median)/sigma/math.Sqrt2)
		e.rates = append(e.rates, rate*(share-below))
		below = share
	}
	e.rates = append(e.rates, rate*(1-below))
	return e
}

// explicitEngine has buckets with listed bounds.
type explicitEngine struct {
	counts []uint64  // one a bucket, not cumulative
	sum    float64   // seconds
	mean   float64   // of the latency, seconds
	rates  []float64 // requests a second, one a bucket
	free   bool      // whether a restart may leave a bucket higher than it was
}

// serve adds to each bucket by itself: arrivals are Poisson, so the buckets are independent of each other.
func (e *explicitEngine) serve(g *generator, during time.Duration) {
	for i, rate := range e.rates {
		n := g.poisson(rate * during.Seconds())
		e.counts[i] += n
		e.sum += e.mean * float64(n)
	}
}

func (e *explicitEngine) restart(g *generator, during time.Duration) {
	previous := e.counts
	e.counts = make([]uint64, len(previous))
	e.serve(g, during)
	if !e.free {
		e.counts = afterRestart(e.counts, cumulative(previous))
	}
	e.sum = e.mean * float64(total(e.counts))
}

func (e *explicitEngine) show(s *scrape) { s.buckets, s.sum = cumulative(e.counts), e.sum }

// afterRestart keeps of the counts of a fresh engine as many as leave every cumulative bucket below what it was, or at
// zero. Only then do Prometheus, which looks at each bucket alone, and a reset of the histogram as a whole say the
// same; the other restarts have their own test.
func afterRestart(fresh, previous []uint64) []uint64 {
	kept := make([]uint64, len(fresh))
	for i := range fresh {
		room := uint64(math.MaxUint64)
		for j := i; j < len(previous); j++ {
			below := total(kept[:min(j+1, len(kept))])
			free := uint64(0)
			if previous[j] > below+1 {
				free = previous[j] - below - 1
			}
			room = min(room, free)
		}
		kept[i] = min(fresh[i], room)
	}
	return kept
}

// cumulative returns the running sums of counts.
func cumulative(counts []uint64) []uint64 {
	sums := make([]uint64, len(counts))
	var sum uint64
	for i, n := range counts {
		sum += n
		sums[i] = sum
	}
	return sums
}

func total(counts []uint64) (sum uint64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}
