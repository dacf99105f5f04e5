// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"slices"
)

// Survival is the survival function of bucketed observations: which share of them
// lies above a value. The zero value has observed nothing. It is measured anew for
// each pane, and allocates only while it meets more bounds than before.
type Survival struct {
	bounds []float64
	above  []float64 // observations above each bound
	total  float64
}

// Measure reads a histogram: B finite bounds, strictly ascending, and B+1 counts,
// of the observations in each bucket and last of those above all bounds. It keeps
// bounds, which must not change until the next Measure, and no counts.
func (s *Survival) Measure(bounds []float64, counts []uint64) {
	var total uint64
	for _, c := range counts {
		total += c
	}
	s.bounds, s.total = bounds, float64(total)
	s.above = slices.Grow(s.above[:0], len(bounds))[:len(bounds)]
	above := s.total
	for i := range bounds {
		above -= float64(counts[i])
		s.above[i] = above
	}
}

// Total is how many observations there are.
func (s *Survival) Total() float64 { return s.total }

// Above is how many observations lie above bound i.
func (s *Survival) Above(i int) float64 { return s.above[i] }

// Exceeding is between which shares, 0 to 1, of the observations lie above a value.
//
// At a bound both are the share above it. Between the bounds of a bucket both are
// interpolated as that of a log-normal latency would be: on the scale of normal
// quantiles, linear in the logarithm of the value. Where that does not tell, low
// is as if all of the value's bucket lay at or below it, and high as if all lay
// above: in the buckets without a positive lower or a finite upper bound, and in
// one that holds most observations with next to none on one side of it. Without
// observations they are 0 and 1.
func (s *Survival) Exceeding(value float64) (low, high float64) {
	if s.total == 0 {
		return 0, 1
	}
	i, exact := slices.BinarySearch(s.bounds, value)
	low, high = 0, 1
	if i < len(s.bounds) {
		low = s.above[i] / s.total
	}
	switch {
	case exact:
		return low, low
	case i > 0:
		high = s.above[i-1] / s.total
	}
	if i == 0 || i == len(s.bounds) || s.bounds[i-1] <= 0 || s.blurred(i) {
		return low, high
	}
	lower, upper := s.bounds[i-1], s.bounds[i]
	part := math.Log(upper/value) / math.Log(upper/lower)
	below, above := s.deviate(i-1), s.deviate(i)
	share := math.Erfc((above+(below-above)*part)/math.Sqrt2) / 2
	share = min(max(share, low), high) // the half of an observation is none
	return share, share
}

// blurred tells whether most observations lie in bucket i, above bound i-1, and
// next to none on one side of it: they may be anywhere inside.
func (s *Survival) blurred(i int) bool {
	few := fewTail * s.total
	return s.above[i-1]-s.above[i] > s.total/2 && (s.above[i] < few || s.total-s.above[i-1] < few)
}

// fewTail is a share of observations that says nothing of where the others lie.
const fewTail = 0.01

// deviate is the standard normal deviate above which lies the share that lies
// above bound i; of no observations, it is taken to be half of one.
func (s *Survival) deviate(i int) float64 {
	share := min(max(s.above[i], 0.5), s.total-0.5) / s.total
	return math.Sqrt2 * math.Erfcinv(2*share)
}
