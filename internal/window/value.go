// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package window

import "math"

// valueScale is how fine the buckets of single values are: 4.4 % wide.
const valueScale = 4

// ObserveValue folds one value of a gauge in, as a difference of one observation.
// A value that equals the one before is no observation. It may be zero, and not
// below; h has exponential buckets of unit 1, or none yet.
func (h *Histogram) ObserveValue(g Grid, ls *Layouts, at Instant, value float64) Outcome {
	e, counts := oneOf(value)
	sample := Sample{At: at, Delta: true, Sum: value, Counts: counts[:e.Width()]}
	repeated := h.at != 0 && value == h.sum()
	if repeated {
		clear(sample.Counts)
		sample.Sum = 0
	}
	outcome, _ := h.ObserveExponential(g, ls, e, &sample)
	if repeated {
		h.setSum(value)
	}
	return outcome
}

// oneOf is the bucket of a value, and the counts of that one observation.
func oneOf(value float64) (e Exponential, counts [3]uint64) {
	e = Exponential{Scale: valueScale, Unit: 1}
	if value == 0 {
		counts[0] = 1
		return e, counts
	}
	e.First, e.Buckets = int(math.Ceil(math.Ldexp(math.Log2(value), valueScale)))-1, 1
	counts[1] = 1
	return e, counts
}
