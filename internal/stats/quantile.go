// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import "math"

// QuantileState tells whether a bucketed histogram can say what a quantile is.
type QuantileState uint8

const (
	// Defined: the value is interpolated between the edges of a finite bucket.
	Defined QuantileState = iota
	// Saturated: the value is the top finite bound, because the rank falls in
	// the +Inf bucket or on that bound. The true quantile may be any larger.
	Saturated
	// LowestBucket: the lowest bucket holds every observation, so the value
	// follows from the layout alone and not from what was observed.
	LowestBucket
	// Undefined: there is no value, and 0 stands in its place.
	Undefined
)

var quantileStateNames = [...]string{
	Defined:      "defined",
	Saturated:    "saturated",
	LowestBucket: "lowest_bucket",
	Undefined:    "undefined",
}

// String names the state in snake_case.
func (s QuantileState) String() string {
	if int(s) >= len(quantileStateNames) {
		return "unknown"
	}
	return quantileStateNames[s]
}

// Quantile returns the q-quantile of one classic histogram, in the unit of its
// bounds, and equals PromQL's histogram_quantile wherever that is finite
// (promql.BucketQuantile of Prometheus v0.314). Within a bucket observations
// are taken to be spread evenly, and those of the lowest bucket to be positive.
// cumulative is read as its monotonic envelope and is not modified: see
// AtRank.
//
// The special cases, where PromQL has an answer of its own:
//
//	q is NaN                          Undefined (PromQL: NaN)
//	q < 0, q > 1                      Undefined (PromQL: -Inf, +Inf)
//	no finite bound                   Undefined (PromQL: NaN)
//	no observations                   Undefined (PromQL: NaN)
//	q = 0, lowest bucket empty and
//	    its bound positive            Undefined (PromQL: 0/0 = NaN)
//	rank in the +Inf bucket           the top finite bound, Saturated
//	rank in the lowest bucket and
//	    its bound not positive        that bound
//	rank in the lowest bucket else    interpolated from 0
//	every observation in the lowest
//	    bucket                        as above, LowestBucket
//
// Three are ruled out by the arguments: PromQL sorts bounds and adds up the
// counts of equal ones, and answers NaN if the +Inf bucket is missing. A total
// that is NaN or negative, a result that overflows, and slices whose lengths do
// not fit are Undefined.
func Quantile(q float64, bounds, cumulative []float64) (value float64, state QuantileState) {
	if !(q >= 0 && q <= 1) { // NaN fails both
		return 0, Undefined
	}
	total := envelopeTotal(cumulative)
	return interpolate(q*total, total, bounds, cumulative)
}

// AtRank interpolates as Quantile does, at a rank instead of a quantile: the
// value below which rank of the observations lie. A rank that is NaN, negative
// or above the total is Undefined.
//
// cumulative is read through its monotonic envelope, left to right, as PromQL
// repairs it: a count that is lower than the one before it, or that differs
// from it by less than one part in 1e12 of their sum either way, is taken for
// the one before it.
func AtRank(rank float64, bounds, cumulative []float64) (value float64, state QuantileState) {
	total := envelopeTotal(cumulative)
	if !(rank >= 0 && rank <= total) {
		return 0, Undefined
	}
	return interpolate(rank, total, bounds, cumulative)
}

func interpolate(rank, total float64, bounds, cumulative []float64) (float64, QuantileState) {
	if len(bounds) == 0 || len(cumulative) != len(bounds)+1 || !(total > 0) {
		return 0, Undefined
	}

	bucket, below, count := 0, 0.0, cumulative[0]
	for count < rank && bucket < len(bounds) {
		bucket++
		below, count = count, envelope(count, cumulative[bucket])
	}

	value := valueInBucket(rank, bucket, below, count, bounds)
	switch {
	case math.IsNaN(value) || math.IsInf(value, 0):
		return 0, Undefined
	case cumulative[0] == total:
		return value, LowestBucket
	case value >= bounds[len(bounds)-1]:
		return value, Saturated
	default:
		return value, Defined
	}
}

// valueInBucket places rank between the edges of its bucket, which holds the
// observations from below to count. The order of operations is PromQL's, so
// that results agree to the last bits.
func valueInBucket(rank float64, bucket int, below, count float64, bounds []float64) float64 {
	switch {
	case bucket == len(bounds):
		return bounds[bucket-1]
	case bucket > 0:
		start := bounds[bucket-1]
		return start + (bounds[bucket]-start)*((rank-below)/(count-below))
	case bounds[0] <= 0:
		return bounds[0]
	default:
		return bounds[0] * (rank / count)
	}
}

// smallDelta is PromQL's smallDeltaTolerance: counts that differ by less were
// added up in different orders, and observations differ by more.
const smallDelta = 1e-12

// envelope returns the count that is read after prev where curr is written:
// curr if that is a true increase, else prev.
func envelope(prev, curr float64) float64 {
	if curr-prev > smallDelta*(curr+prev) {
		return curr
	}
	return prev
}

// envelopeTotal returns the last count of the envelope, 0 for no counts.
func envelopeTotal(cumulative []float64) float64 {
	if len(cumulative) == 0 {
		return 0
	}
	total := cumulative[0]
	for _, count := range cumulative[1:] {
		total = envelope(total, count)
	}
	return total
}
