// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package window

import "math"

// Exponential is the buckets of an exponential histogram of times: a zero
// bucket, then Buckets buckets of which each is 2^(1/2^Scale) times as wide as
// the one before. Their counts are the zero bucket's, then one a bucket in
// ascending order, then the observations in no bucket, which are no numbers.
//
// Buckets of a lower scale are whole buckets of a higher one put together, so
// counts of any two can be added on the lower scale.
type Exponential struct {
	// Scale is how fine the buckets are: bucket i is (2^(i/2^Scale),
	// 2^((i+1)/2^Scale)].
	Scale int
	// First is the index of the lowest bucket.
	First, Buckets int
	// ZeroThreshold is the upper bound of the zero bucket.
	ZeroThreshold float64
	// Unit is what all bounds are counted in, in the unit of the signal; never
	// zero.
	Unit float64
}

const (
	// MaxScale is the finest scale that is kept, Prometheus' highest schema: its
	// buckets are 0.3 % wide.
	MaxScale = 8
	// rangeStep is what ranges of buckets are rounded out to, so that few
	// layouts exist and few ranges grow.
	rangeStep = 16
	// maxBuckets bounds the range of a layout; where it is wider, its scale is
	// lowered until it is not.
	maxBuckets = 1024
)

// Width is the number of counts.
func (e Exponential) Width() int { return e.Buckets + 2 }

// end is the index after the last bucket.
func (e Exponential) end() int { return e.First + e.Buckets }

// coarsen is the same range on a lower scale, or on the same.
func (e Exponential) coarsen(scale int) Exponential {
	shift := e.Scale - scale
	if shift <= 0 {
		return e
	}
	e.Scale = scale
	if e.Buckets > 0 {
		first, last := e.First>>shift, (e.end()-1)>>shift
		e.First, e.Buckets = first, last-first+1
	}
	return e
}

// round makes the layout of the range: as coarse and as wide as it is kept.
func (e Exponential) round() Exponential {
	e = e.coarsen(min(e.Scale, MaxScale))
	if e.Buckets == 0 {
		e.First = 0
		return e
	}
	for {
		first := e.First &^ (rangeStep - 1)
		end := (e.end() + rangeStep - 1) &^ (rangeStep - 1)
		if end-first <= maxBuckets {
			e.First, e.Buckets = first, end-first
			return e
		}
		e = e.coarsen(e.Scale - 1)
	}
}

// join is the range of both on the lower scale. The zero threshold is the
// larger one, and may lie inside of a bucket.
func (e Exponential) join(o Exponential) Exponential {
	scale := min(e.Scale, o.Scale)
	a, b := e.coarsen(scale), o.coarsen(scale)
	switch {
	case b.Buckets == 0:
	case a.Buckets == 0:
		a.First, a.Buckets = b.First, b.Buckets
	default:
		first, end := min(a.First, b.First), max(a.end(), b.end())
		a.First, a.Buckets = first, end-first
	}
	a.ZeroThreshold = max(a.ZeroThreshold, b.ZeroThreshold)
	return a
}

// Common is the layout on which counts of both may be added. As in Prometheus,
// the zero bucket is the larger one, and ends where a bucket ends that it
// reaches into.
func (e Exponential) Common(o Exponential) Exponential {
	joined := e.join(o)
	for before := math.NaN(); joined.ZeroThreshold != before; {
		before = joined.ZeroThreshold
		for _, part := range [...]Exponential{e, o} {
			if i, inside := part.straddling(joined.ZeroThreshold); inside {
				joined.ZeroThreshold = math.Exp2(math.Ldexp(float64(i+1), -part.Scale))
			}
		}
	}
	return joined.round()
}

// straddling finds the bucket of the range that a larger zero threshold would
// lie inside of.
func (e Exponential) straddling(threshold float64) (index int, inside bool) {
	if !(threshold > e.ZeroThreshold) {
		return 0, false
	}
	index, whole := e.below(threshold)
	return index, !whole && index >= e.First && index < e.end()
}

// below is the index of the first bucket that does not lie below the threshold
// as a whole, and whether the threshold is its lower bound.
func (e Exponential) below(threshold float64) (index int, whole bool) {
	// A threshold that is meant to be a bound is one to its last bits.
	const rounding = 1e-6
	at := math.Ldexp(math.Log2(threshold), e.Scale)
	at = max(math.MinInt32, min(at, math.MaxInt32)) // also of 0, which is below all
	if nearest := math.Round(at); math.Abs(at-nearest) < rounding {
		return int(nearest), true
	}
	return int(math.Floor(at)), false
}

// holds tells whether counts of o can be told on e without a loss of range.
func (e Exponential) holds(o Exponential) bool {
	if o.Scale < e.Scale || o.ZeroThreshold > e.ZeroThreshold {
		return false
	}
	o = o.coarsen(e.Scale)
	return o.Buckets == 0 || o.First >= e.First && o.end() <= e.end()
}

// Add adds counts of the buckets from to dst, which has e's. e holds from, but
// for empty buckets.
func (e Exponential) Add(dst []uint64, from Exponential, counts []uint64) {
	dst[0] += counts[0]
	dst[len(dst)-1] += counts[len(counts)-1]
	zero := math.MinInt // below it, buckets are in the zero bucket
	if e.ZeroThreshold > from.ZeroThreshold {
		zero, _ = from.below(e.ZeroThreshold)
	}
	shift := from.Scale - e.Scale
	for i, c := range counts[1 : len(counts)-1] {
		switch index := from.First + i; {
		case c == 0:
		case index < zero:
			dst[0] += c
		default:
			dst[1+index>>shift-e.First] += c
		}
	}
}
