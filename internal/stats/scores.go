// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import "math"

// NormalScores appends to dst a score for each bucket of a histogram, given its
// counts, 0 or more: the mean of the standard normal deviates that its share of the
// ranks has (van der Waerden 1952). They rise with the buckets, and depend on the
// order of values alone. If log latencies are normal, their sum is what tells a
// slower one best. Empty buckets have that of their lower end. Without
// observations all are 0.
func NormalScores(dst, counts []float64) []float64 {
	from := len(dst)
	dst = append(dst, counts...)
	scores := dst[from:]
	above := 0.0 // the bucket
	for i := len(scores) - 1; i >= 0; i-- {
		scores[i], above = above, above+scores[i]
	}
	total := above
	if !(total > 0) {
		clear(scores)
		return dst
	}
	below, lower, density := 0.0, -farthest, 0.0 // at the bucket's lower end
	for i, c := range counts {
		below += c
		upper := deviateAt(below, scores[i])
		next := math.Exp(-upper*upper/2) / math.Sqrt(2*math.Pi)
		scores[i] = lower
		if c > 0 {
			scores[i] = min(max((density-next)*total/c, lower), upper) // of next to nothing, rounding tells
		}
		lower, density = upper, next
	}
	return dst
}

// deviateAt is the standard normal deviate with so much below and above, as far as
// anything may be: the smaller of them tells it more exactly.
func deviateAt(below, above float64) float64 {
	z := math.Sqrt2 * math.Erfcinv(2*min(below, above)/(below+above))
	if below < above {
		z = -z
	}
	return min(max(z, -farthest), farthest)
}

// farthest is a deviate beyond those of all that is observed.
const farthest = 10.0
