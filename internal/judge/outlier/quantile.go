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

// quantileOf is the q-quantile of bucket counts, if there are enough.
func quantileOf(q float64, layout *window.Layout, counts []uint64, enough uint64) quantile {
	if n := countOf(counts); n == 0 || n < enough {
		return quantile{withheld: FewObservations}
	}
	switch seconds, state := interpolate(q, layout, counts); state {
	case stats.LowestBucket:
		return quantile{withheld: LowestBucket}
	case stats.Undefined:
		return quantile{withheld: FewObservations}
	default:
		return quantile{seconds: seconds, saturated: state == stats.Saturated}
	}
}

// interpolate is the q-quantile, in seconds.
func interpolate(q float64, layout *window.Layout, counts []uint64) (float64, stats.QuantileState) {
	if e, ok := layout.Exponential(); ok {
		value, state := exponential(e).Quantile(q, counts)
		return value * e.Unit, state
	}
	var stack [stackBuckets]float64
	return stats.Quantile(q, layout.Bounds(), accumulate(stack[:0], layout, counts))
}

func exponential(e window.Exponential) stats.Exponential {
	return stats.Exponential{Scale: e.Scale, First: e.First, ZeroThreshold: e.ZeroThreshold}
}

// stackBuckets is how many buckets an explicit histogram may have without
// allocating; the longest of the engines' has 41.
const stackBuckets = 64

// accumulate appends the cumulative counts of an explicit histogram; those of an
// exponential one serve as they are.
func accumulate(dst []float64, layout *window.Layout, counts []uint64) []float64 {
	if _, ok := layout.Exponential(); ok {
		return nil
	}
	var total uint64
	for _, c := range counts {
		total += c
		dst = append(dst, float64(total))
	}
	return dst
}

func countOf(counts []uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
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
	cumulative := accumulate(stack[:0], layout, counts)
	b := r.of(countOf(counts), q)
	low, high = quantile{withheld: Unbounded}, quantile{withheld: Unbounded}
	if b.lower > 0 {
		low = atRank(b.lower, layout, counts, cumulative)
	}
	if b.finite {
		high = atRank(b.upper, layout, counts, cumulative)
	}
	return low, high
}

func atRank(rank uint64, layout *window.Layout, counts []uint64, cumulative []float64) quantile {
	var (
		seconds float64
		state   stats.QuantileState
	)
	if e, ok := layout.Exponential(); ok {
		seconds, state = exponential(e).AtRank(float64(rank), counts)
		seconds *= e.Unit
	} else {
		seconds, state = stats.AtRank(float64(rank), layout.Bounds(), cumulative)
	}
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
