// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package outlier judges a replica against its fleet: how slow each one is, and
// how that compares to the others. It reads one closed frame and writes a
// report; it knows neither telemetry nor time.
package outlier

import (
	"math"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// Baseline is what a replica is compared to.
type Baseline uint8

// The baselines.
const (
	Peers      Baseline = iota // the fleet without the replica itself
	WholeFleet                 // the fleet with the replica itself
	Median                     // the replica in the middle: less than half of them may be anything
)

// Options are how one fleet is judged.
type Options struct {
	Signals         []fleet.Signal // latencies, all of which the frame tells
	Quantiles       []float64
	Baseline        Baseline
	MinObservations uint64 // zero: what the quantile needs, see Enough
	MinReplicas     int
	Bounds          bool          // whether to compute the bounds of the ratio
	Work            bool          // whether to judge Works, those that the frame tells
	Window          time.Duration // what the frames are of
}

// Enough is how many observations a quantile has to stand on before it is
// told: MinObservations, or ceil(3/(1-q)), so that three lie above it.
func (o *Options) Enough(q float64) uint64 {
	if o.MinObservations > 0 {
		return o.MinObservations
	}
	return uint64(math.Ceil(3 / (1 - q) * (1 - rounding)))
}

// rounding forgives that 1-q is not exact: 3/(1-0.9) is a little above 30.
const rounding = 1e-9
