// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"math"
	"time"
)

// DecodeTime says how long an engine takes from one token of a request to the
// next, x, where run requests are in its batch that attend to context tokens:
//
//	x = noise·(Base + PerRunning·run + PerSquare·run² + PerContext·context) + PerPrefill·(uncached prompt tokens a second)
//
// By Little's law, run is the output tokens a second times x, and context grows
// with it: x stands on both sides. Past MaxRunning requests wait.
type DecodeTime struct {
	// Base, PerRunning, PerSquare and PerContext in seconds.
	Base, PerRunning, PerSquare, PerContext float64
	// PerPrefill in seconds for one token a second.
	PerPrefill float64
	MaxRunning float64
}

// work is what requests ask for: prompt tokens to compute, tokens to make, and
// over the latter the sum of the tokens that each attends to.
type work struct{ prefill, output, attended float64 }

func (w *work) add(other *work, times float64) {
	w.prefill += times * other.prefill
	w.output += times * other.output
	w.attended += times * other.attended
}

// of solves the equation for the work of one pane. Its right side rises with x,
// so the least solution is the one that a batch grows to from an empty one.
func (t *DecodeTime) of(w *work, noise float64) (itl, running float64) {
	const second = 1 / float64(DrawnPane/time.Second)
	made := second * w.output
	fixed := noise*t.Base + t.PerPrefill*second*w.prefill
	linear := noise * (t.PerRunning*made + t.PerContext*second*w.attended)
	square := noise * t.PerSquare * made * made
	if inside := (1-linear)*(1-linear) - 4*square*fixed; linear < 1 && inside >= 0 {
		itl = 2 * fixed / (1 - linear + math.Sqrt(inside))
		if running = made * itl; running <= t.MaxRunning {
			return itl, running
		}
	}
	running = t.MaxRunning
	context := running * w.attended / w.output
	return fixed + noise*(t.PerRunning*running+t.PerSquare*running*running+t.PerContext*context), running
}
