// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import "math"

// Exponential is where the buckets of an exponential histogram of values that
// are not negative begin and end, as in OpenTelemetry's data model: a zero
// bucket [0, ZeroThreshold], then buckets of growing width. The i-th of those,
// counted from 0, is (2^(k/2^Scale), 2^((k+1)/2^Scale)] with k = First+i.
// Prometheus calls it bucket k+1 of the schema Scale.
//
// Its counts are not cumulative: those of the zero bucket come first, then the
// buckets in ascending order, and last the observations that are in no bucket,
// because they are not a number.
type Exponential struct {
	Scale, First  int
	ZeroThreshold float64
}

// Quantile returns the q-quantile of one exponential histogram, in the unit of
// its bounds, and equals PromQL's histogram_quantile wherever that is finite
// (promql.HistogramQuantile of Prometheus v0.314). Observations are taken to be
// spread evenly within the zero bucket, and evenly by their logarithm within
// any other; where the zero bucket reaches into one, between the two.
//
// A rank that lies between two buckets is ambiguous. For q < 0.5 it belongs to
// the lower, else to the upper one, as PromQL counts from the nearer end; but
// from below whenever there are observations that are not a number, for these
// count as larger than any other.
//
// LowestBucket is that every observation is in the zero bucket. A rank among
// those that are not a number, no observations, a q that is NaN or outside of
// [0, 1], fewer than two counts and a result that overflows are Undefined.
// Saturated does not occur: no bucket is open.
func (e Exponential) Quantile(q float64, counts []uint64) (value float64, state QuantileState) {
	total := sumOf(counts)
	if !(q >= 0 && q <= 1) || !(total > 0) || len(counts) < 2 { // NaN fails the first
		return 0, Undefined
	}
	if q < 0.5 || counts[len(counts)-1] > 0 {
		return e.interpolate(total, counts, fromBelow(q*total, counts))
	}
	return e.interpolate(total, counts, fromAbove((1-q)*total, counts))
}

// AtRank interpolates as Quantile does, at a rank instead of a quantile: the
// value below which rank of the observations lie. A rank between two buckets
// belongs to the lower: the rank-th smallest observation is there. A rank that
// is NaN, negative or above the total is Undefined.
func (e Exponential) AtRank(rank float64, counts []uint64) (value float64, state QuantileState) {
	total := sumOf(counts)
	if !(rank >= 0 && rank <= total) || !(total > 0) || len(counts) < 2 {
		return 0, Undefined
	}
	return e.interpolate(total, counts, fromBelow(rank, counts))
}

// place is a bucket, by the place of its count, and how many of its
// observations lie below what is looked for.
type place struct {
	bucket   int
	fraction float64
}

// nowhere is among the observations that are in no bucket.
var nowhere = place{bucket: -1}

// fromBelow finds a rank that counts from the smallest observation.
func fromBelow(rank float64, counts []uint64) place {
	below := 0.0
	for i, n := range counts[:len(counts)-1] {
		count := float64(n)
		if n > 0 && below+count >= rank {
			return place{i, (rank - below) / count}
		}
		below += count
	}
	return nowhere
}

// fromAbove finds a rank that counts from the largest observation; all are
// numbers.
func fromAbove(rank float64, counts []uint64) place {
	above := 0.0
	for i := len(counts) - 2; i >= 0; i-- {
		count := float64(counts[i])
		above += count
		if count > 0 && above >= rank {
			return place{i, (above - rank) / count}
		}
	}
	return nowhere
}

func (e Exponential) interpolate(total float64, counts []uint64, at place) (float64, QuantileState) {
	if at == nowhere {
		return 0, Undefined
	}
	value := e.value(at)
	switch {
	case math.IsNaN(value) || math.IsInf(value, 0):
		return 0, Undefined
	case at.bucket == 0 && float64(counts[0]) == total:
		return value, LowestBucket
	default:
		return value, Defined
	}
}

func (e Exponential) value(at place) float64 {
	if at.bucket == 0 {
		return e.ZeroThreshold * at.fraction
	}
	index := e.First + at.bucket - 1
	lower, upper := math.Ldexp(float64(index), -e.Scale), math.Ldexp(float64(index+1), -e.Scale)
	lower = max(lower, math.Log2(e.ZeroThreshold))
	return math.Exp2(lower + (upper-lower)*at.fraction)
}

func sumOf(counts []uint64) float64 {
	total := 0.0
	for _, n := range counts {
		total += float64(n)
	}
	return total
}
