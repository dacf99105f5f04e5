// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// TestExponentialQuantile pins the special cases, worked out by hand from the
// rules of promql.HistogramQuantile. Buckets: zero up to 1/8, then (1, 2],
// (2, 4], (4, 8], then those in none.
func TestExponentialQuantile(t *testing.T) {
	powers := Exponential{Scale: 0, First: 0, ZeroThreshold: 0.125}
	for name, tc := range map[string]struct {
		e      Exponential
		q      float64
		counts []uint64
		value  float64
		state  QuantileState
	}{
		"the median of 1, 2, 1":                               {powers, 0.5, []uint64{0, 1, 2, 1, 0}, math.Pow(2, 1.5), Defined},
		"a quarter of a bucket is a quarter of its logarithm": {powers, 0.25, []uint64{0, 4, 0, 0, 0}, math.Pow(2, 0.25), Defined},
		"half the scale, double the width":                    {Exponential{Scale: -1, First: 1}, 0.5, []uint64{0, 2, 0}, 8, Defined},
		"double the scale, half the width":                    {Exponential{Scale: 1, First: -1}, 0.5, []uint64{0, 2, 0}, math.Pow(2, -0.25), Defined},
		"in the zero bucket, from 0":                          {powers, 0.25, []uint64{4, 4, 0, 0, 0}, 0.0625, Defined},
		"a zero bucket without width":                         {Exponential{First: 3}, 0.25, []uint64{4, 4, 0}, 0, Defined},
		"all in the zero bucket":                              {powers, 0.5, []uint64{4, 0, 0, 0, 0}, 0.0625, LowestBucket},
		"all zero, of a zero without width":                   {Exponential{}, 0.5, []uint64{4, 0, 0}, 0, LowestBucket},
		"a zero bucket that reaches into one":                 {Exponential{ZeroThreshold: math.Sqrt2}, 0.5, []uint64{0, 2, 0}, math.Pow(2, 0.75), Defined},
		"between buckets, lower half":                         {powers, 0.25, []uint64{0, 2, 0, 6, 0}, 2, Defined},
		"between buckets, upper half":                         {powers, 0.75, []uint64{0, 6, 0, 2, 0}, 4, Defined},
		"between buckets, not all numbers":                    {powers, 0.75, []uint64{0, 6, 0, 1, 1}, 2, Defined},
		"q 0 begins the lowest filled bucket":                 {powers, 0, []uint64{0, 0, 2, 2, 0}, 2, Defined},
		"q 1 ends the highest filled bucket":                  {powers, 1, []uint64{0, 2, 2, 0, 0}, 4, Defined},
		"q 1 of not all numbers":                              {powers, 1, []uint64{0, 2, 2, 0, 1}, 0, Undefined},
		"those that are no number are largest":                {powers, 0.5, []uint64{0, 4, 0, 0, 4}, 2, Defined},
		"no number at all":                                    {powers, 0.5, []uint64{0, 0, 0, 0, 4}, 0, Undefined},
		"no observations":                                     {powers, 0.5, []uint64{0, 0, 0, 0, 0}, 0, Undefined},
		"no buckets":                                          {powers, 0.5, []uint64{4}, 0, Undefined},
		"nothing":                                             {powers, 0.5, nil, 0, Undefined},
		"q NaN":                                               {powers, math.NaN(), []uint64{0, 1, 2, 1, 0}, 0, Undefined},
		"q negative":                                          {powers, -0.1, []uint64{0, 1, 2, 1, 0}, 0, Undefined},
		"q above 1":                                           {powers, 1.1, []uint64{0, 1, 2, 1, 0}, 0, Undefined},
		"beyond all numbers":                                  {Exponential{First: 2000}, 0.5, []uint64{0, 2, 0}, 0, Undefined},
		"below all numbers":                                   {Exponential{First: -2000}, 0.5, []uint64{0, 2, 0}, 0, Defined},
	} {
		t.Run(name, func(t *testing.T) {
			value, state := tc.e.Quantile(tc.q, tc.counts)
			assert.Equal(t, tc.state, state)
			assert.InDelta(t, tc.value, value, 1e-12)
		})
	}
}

func TestExponentialAtRank(t *testing.T) {
	e, counts := Exponential{First: 1, ZeroThreshold: 1}, []uint64{2, 4, 0, 4, 1}
	for name, tc := range map[string]struct {
		rank, value float64
		state       QuantileState
	}{
		"in the zero bucket":        {1, 0.5, Defined},
		"its last":                  {2, 1, Defined},
		"inside a bucket":           {4, math.Pow(2, 1.5), Defined},
		"the last of a bucket":      {6, 4, Defined},
		"the first of the next":     {7, math.Pow(2, 3.25), Defined},
		"the last that is a number": {10, 16, Defined},
		"no number":                 {11, 0, Undefined},
		"above the total":           {11.5, 0, Undefined},
		"negative":                  {-1, 0, Undefined},
		"NaN":                       {math.NaN(), 0, Undefined},
	} {
		t.Run(name, func(t *testing.T) {
			value, state := e.AtRank(tc.rank, counts)
			assert.Equal(t, tc.state, state)
			assert.InDelta(t, tc.value, value, 1e-12)
		})
	}
	_, state := e.AtRank(0, nil)
	assert.Equal(t, Undefined, state)
}

// exactPlace finds the bucket of a quantile, and how far inside of it the rank
// lies, without rounding: each observation has a slot of length 1 on a line, in
// ascending order, and the rank is a point on that line. At a joint between two
// filled buckets, lower says which one counts.
func exactPlace(q float64, counts []uint64, lower bool) (bucket int, fraction float64) {
	total := int64(0)
	for _, n := range counts {
		total += int64(n)
	}
	rank := new(big.Rat).Mul(new(big.Rat).SetFloat64(q), new(big.Rat).SetInt64(total))
	begin := int64(0)
	bucket = -1
	for i, n := range counts {
		from, to := new(big.Rat).SetInt64(begin), new(big.Rat).SetInt64(begin+int64(n))
		begin += int64(n)
		if n == 0 || rank.Cmp(from) < 0 || rank.Cmp(to) > 0 || bucket >= 0 && lower {
			continue
		}
		bucket = i
		fraction, _ = new(big.Rat).Quo(new(big.Rat).Sub(rank, from), new(big.Rat).SetInt64(int64(n))).Float64()
	}
	return bucket, fraction
}

// anyExponential draws buckets whose bounds are all finite numbers, and counts.
func anyExponential(t *rapid.T) (Exponential, []uint64) {
	e := Exponential{Scale: rapid.IntRange(-4, 20).Draw(t, "scale")}
	octave := rapid.IntRange(-20, 10).Draw(t, "octave")
	if e.Scale >= 0 {
		e.First = octave << e.Scale
	} else {
		e.First = octave >> -e.Scale
	}
	e.ZeroThreshold = rapid.SampledFrom([]float64{0, math.Ldexp(1, -128), math.Pow(2, math.Ldexp(float64(e.First), -e.Scale))}).Draw(t, "zero threshold")
	counts := rapid.SliceOfN(rapid.Uint64Range(0, 9), 2, 40).Draw(t, "counts")
	if rapid.Bool().Draw(t, "all numbers") {
		counts[len(counts)-1] = 0
	}
	return e, counts
}

// Quantiles in sixteenths, and their ranks, are exact in floating point.
func TestExponentialQuantileIsAPlaceOnTheLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, counts := anyExponential(t)
		q := float64(rapid.IntRange(0, 16).Draw(t, "sixteenths")) / 16
		last := len(counts) - 1
		bucket, fraction := exactPlace(q, counts, q < 0.5 || counts[last] > 0)
		value, state := e.Quantile(q, counts)
		switch {
		case sumOf(counts) == 0 || bucket == last:
			assert.Equal(t, Undefined, state)
		case bucket == 0:
			assert.InEpsilon(t, 1+fraction*e.ZeroThreshold, 1+value, 1e-12)
		default:
			base := math.Pow(2, math.Pow(2, -float64(e.Scale)))
			lower := math.Pow(base, float64(e.First+bucket-1))
			assert.Equal(t, Defined, state)
			assert.InEpsilon(t, lower*math.Pow(base, fraction), value, 1e-8) // rounding of the base, to the power of the index
		}
		assert.Equal(t, state == LowestBucket, state != Undefined && sumOf(counts) == float64(counts[0]))
	})
}

// The value at the rank of a quantile is that quantile, but for the side taken
// between two buckets.
func TestExponentialAtRankIsAQuantile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, counts := anyExponential(t)
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		value, state := e.Quantile(q, counts)
		atRank, atRankState := e.AtRank(q*sumOf(counts), counts)
		assert.Equal(t, state, atRankState)
		if bucket, fraction := exactPlace(q, counts, true); bucket >= 0 && fraction > 0.001 && fraction < 0.999 {
			assert.InEpsilon(t, 1+value, 1+atRank, 1e-9)
		}
	})
}

// FuzzExponential feeds buckets and counts that no histogram has.
func FuzzExponential(f *testing.F) {
	f.Add(0.5, 0, 0, 0.0, uint64(1), uint64(2), uint64(3), uint64(0))
	f.Add(0.95, math.MaxInt32, math.MinInt32, math.Inf(1), uint64(math.MaxUint64), uint64(math.MaxUint64), uint64(1), uint64(1))
	f.Add(0.05, -2000, 1<<40, math.NaN(), uint64(0), uint64(1), uint64(0), uint64(0))
	f.Add(1.0, 5000, -1<<40, -1.0, uint64(1), uint64(1), uint64(1), uint64(0))
	f.Fuzz(func(t *testing.T, q float64, scale, first int, zero float64, a, b, c, d uint64) {
		e := Exponential{Scale: scale, First: first, ZeroThreshold: zero}
		counts := []uint64{a, b, c, d}
		value, state := e.Quantile(q, counts)
		atRank, atRankState := e.AtRank(q, counts)
		for _, v := range []float64{value, atRank} {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("%+v, q or rank %v of %v: %v, %v", e, q, counts, value, atRank)
			}
		}
		if state == Undefined && value != 0 || atRankState == Undefined && atRank != 0 {
			t.Fatalf("%+v, q or rank %v of %v: %v, %v, undefined", e, q, counts, value, atRank)
		}
	})
}

func TestExponentialQuantileDoesNotAllocate(t *testing.T) {
	e, counts := Exponential{Scale: 3}, []uint64{1, 2, 3, 4, 0}
	assert.Zero(t, testing.AllocsPerRun(100, func() { e.Quantile(0.95, counts) }))
}
