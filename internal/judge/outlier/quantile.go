// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"github.com/llmfleet/llmfleet/internal/stats"
	"github.com/llmfleet/llmfleet/internal/window"
)

// quantile is one quantile and how far it can be trusted.
type quantile struct {
	seconds   float64
	saturated bool // at or above the top finite bound: it may be shown, not compared
	withheld  Reason
}

// stackBuckets is how many buckets a histogram may have without allocating;
// the longest of the engines' has 41.
const stackBuckets = 64

// quantileOf is the q-quantile of bucket counts, if there are enough.
func quantileOf(q float64, layout *window.Layout, counts []uint64, enough uint64) quantile {
	var stack [stackBuckets]float64
	cumulative := accumulate(stack[:0], counts)
	total := cumulative[len(cumulative)-1]
	if total == 0 || total < float64(enough) {
		return quantile{withheld: FewObservations}
	}
	seconds, state := stats.Quantile(q, layout.Bounds(), cumulative)
	switch state {
	case stats.LowestBucket:
		return quantile{withheld: LowestBucket}
	case stats.Undefined:
		return quantile{withheld: FewObservations}
	}
	return quantile{seconds: seconds, saturated: state == stats.Saturated}
}

func accumulate(dst []float64, counts []uint64) []float64 {
	var total uint64
	for _, c := range counts {
		total += c
		dst = append(dst, float64(total))
	}
	return dst
}

// value is the figure to show.
func (a quantile) value() Figure {
	return Figure{Value: a.seconds, Withheld: a.withheld}
}

// over is the ratio of two quantiles, if both can be compared.
func (a quantile) over(b quantile) Figure {
	switch {
	case a.withheld != Given:
		return withheld(a.withheld)
	case b.withheld != Given:
		return withheld(b.withheld)
	case a.saturated || b.saturated:
		return withheld(Saturated)
	}
	return ratio(a.seconds, b.seconds)
}

// errorPerSide is the error of each bound of a ratio.
const errorPerSide = 0.05

// ranks computes the bounds of a quantile. Bounds depend on the number of
// observations alone, and the baseline's barely changes from one replica to
// the next, so the last ones are kept.
type ranks struct {
	known map[rankKey]rankBounds
}

type rankKey struct {
	n uint64
	q float64
}

type rankBounds struct {
	lower, upper uint64
	finite       bool
}

// maxRanks bounds the kept bounds.
const maxRanks = 1 << 14

// bounds are the one-sided rank bounds of the q-quantile (methods: the order
// statistics l and u that hold it with the error on either side), each mapped
// through the same interpolation as the quantile.
func (r *ranks) bounds(q float64, layout *window.Layout, counts []uint64) (low, high quantile) {
	var stack [stackBuckets]float64
	cumulative := accumulate(stack[:0], counts)
	n := uint64(cumulative[len(cumulative)-1])
	b := r.of(n, q)
	low, high = quantile{withheld: Unbounded}, quantile{withheld: Unbounded}
	if b.lower > 0 {
		low = atRank(b.lower, layout, cumulative)
	}
	if b.finite {
		high = atRank(b.upper, layout, cumulative)
	}
	return low, high
}

func atRank(rank uint64, layout *window.Layout, cumulative []float64) quantile {
	seconds, state := stats.AtRank(float64(rank), layout.Bounds(), cumulative)
	if state == stats.Saturated || state == stats.Undefined {
		return quantile{withheld: Unbounded}
	}
	return quantile{seconds: seconds}
}

func (r *ranks) of(n uint64, q float64) rankBounds {
	key := rankKey{n, q}
	if b, ok := r.known[key]; ok {
		return b
	}
	var b rankBounds
	b.lower, b.upper, b.finite = stats.RankBounds(n, q, errorPerSide)
	if r.known == nil || len(r.known) >= maxRanks {
		r.known = make(map[rankKey]rankBounds)
	}
	r.known[key] = b
	return b
}
