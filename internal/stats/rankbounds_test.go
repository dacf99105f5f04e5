// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// Published ranks of the 95th percentile, and the smallest samples with a
// finite upper bound: n >= ln(0.05)/ln(q).
func TestRankBounds(t *testing.T) {
	for _, tc := range []struct {
		n            uint64
		q            float64
		lower, upper uint64
		finite       bool
	}{
		{12, 0.95, 10, 13, false},
		{58, 0.95, 52, 59, false},
		{59, 0.95, 53, 59, true},
		{60, 0.95, 54, 60, true},
		{300, 0.95, 279, 292, true},
		{298, 0.99, 292, 299, false},
		{299, 0.99, 293, 299, true},
		{0, 0.95, 0, 1, false},
		{1, 0.5, 0, 2, false},
		{5, 0.5, 1, 5, true}, // the sign test: 1/32 <= 0.05
		{4, 0.5, 0, 5, false},
		{10, 0, 0, 1, true},
		{10, 1, 10, 11, false},
		{10, math.NaN(), 0, 11, false},
	} {
		t.Run(fmt.Sprintf("n=%d,q=%v", tc.n, tc.q), func(t *testing.T) {
			lower, upper, finite := RankBounds(tc.n, tc.q, 0.05)
			assert.Equal(t, tc.lower, lower)
			assert.Equal(t, tc.upper, upper)
			assert.Equal(t, tc.finite, finite)
		})
	}
}

func TestRankBoundsRefusesAnAlphaThatIsNoError(t *testing.T) {
	for _, alpha := range []float64{0, 1e-10, -1, 0.6, 1, math.NaN()} {
		lower, upper, finite := RankBounds(100, 0.5, alpha)
		assert.Zero(t, lower)
		assert.Equal(t, uint64(101), upper)
		assert.False(t, finite)
	}
}

// The definition, read word by word against the summed distribution.
func TestRankBoundsAreThoseOfTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := uint64(math.Pow(10, rapid.Float64Range(0, 6).Draw(t, "log10 n")))
		q := rapid.OneOf(rapid.SampledFrom([]float64{1e-9, 0.5, 0.9, 0.95, 0.99, 0.999, 1 - 1e-9}), rapid.Float64Range(0, 1)).Draw(t, "q")
		alpha := rapid.SampledFrom([]float64{1e-9, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5}).Draw(t, "alpha")
		lower, upper, finite := RankBounds(n, q, alpha)

		below, above := tails(n, q)
		const rounding = 1e-11
		// P(X < lower) <= alpha, and for the next rank no more.
		assert.LessOrEqual(t, below(lower), alpha*(1+rounding))
		assert.Greater(t, below(lower+1), alpha*(1-rounding))
		assert.Equal(t, upper <= n, finite)
		if finite {
			assert.LessOrEqual(t, above(upper), alpha*(1+rounding))
		}
		assert.Greater(t, above(upper-1), alpha*(1-rounding))
	})
}

// tails returns P(X < k) and P(X >= k) of Bin(n, q), summed term by term
// outwards from the mode, in multiples of whose mass the terms are held.
func tails(n uint64, q float64) (below, above func(k uint64) float64) {
	mode := min(uint64(float64(n+1)*q), n)
	mass := make([]float64, n+1)
	mass[mode] = 1
	for k := mode; k > 0; k-- {
		mass[k-1] = mass[k] * float64(k) * (1 - q) / (float64(n-k+1) * q)
	}
	for k := mode; k < n; k++ {
		mass[k+1] = mass[k] * float64(n-k) * q / (float64(k+1) * (1 - q))
	}
	sum := func(from, to uint64) float64 { // [from, to), smallest terms first
		var total float64
		if from <= mode && mode < to {
			for k := from; k < mode; k++ {
				total += mass[k]
			}
			right := 0.0
			for k := to; k > mode; k-- {
				right += mass[k-1]
			}
			return total + right
		}
		for i := range to - from {
			if to <= mode {
				total += mass[from+i]
			} else {
				total += mass[to-1-i]
			}
		}
		return total
	}
	whole := sum(0, n+1)
	below = func(k uint64) float64 { return sum(0, min(k, n+1)) / whole }
	above = func(k uint64) float64 { return sum(min(k, n+1), n+1) / whole }
	return below, above
}

// The probabilities themselves against arithmetic in whole numbers: p is a
// multiple of 1/64, so that it is the same number on both sides.
func TestBinomialTailIsExact(t *testing.T) {
	for _, n := range []int64{1, 2, 5, 15, 16, 17, 100, 600} {
		for _, numerator := range []int64{1, 16, 32, 61, 63} {
			p, total := float64(numerator)/64, power(64, n)
			outcomes := new(big.Int)
			for k := int64(0); float64(k) <= float64(n)*p; k++ {
				ways := waysOf(n, k, numerator, 64)
				outcomes.Add(outcomes, ways)
				if ratio(outcomes, total) < 1e-12 {
					continue // below any alpha
				}
				x, y := float64(n), float64(k)
				mass := binomialMass(x, y, p, 1-p)
				assert.InEpsilon(t, ratio(ways, total), mass, 1e-12, "P(Bin(%d, %v) = %d)", n, p, k)
				assert.InEpsilon(t, ratio(outcomes, total), mass*tailRatio(x, y, p, 1-p), 1e-12, "P(Bin(%d, %v) <= %d)", n, p, k)
			}
		}
	}
}

// waysOf counts in how many of denominator^n equally likely ways the outcome of
// Bin(n, numerator/denominator) is k.
func waysOf(n, k, numerator, denominator int64) *big.Int {
	ways := new(big.Int).Binomial(n, k)
	ways.Mul(ways, power(numerator, k))
	return ways.Mul(ways, power(denominator-numerator, n-k))
}

func power(base, exponent int64) *big.Int {
	return new(big.Int).Exp(big.NewInt(base), big.NewInt(exponent), nil)
}

func ratio(a, b *big.Int) float64 {
	quotient, _ := new(big.Float).Quo(new(big.Float).SetInt(a), new(big.Float).SetInt(b)).Float64()
	return quotient
}

// A billion observations are too many to sum up, but near the mean the normal
// law with its skewness correction is then exact to a rank.
func TestRankBoundsOfABillion(t *testing.T) {
	const n, q, z = 1e9, 0.95, 1.6448536269514722
	sd, skew := math.Sqrt(n*q*(1-q)), (z*z-1)*(1-2*q)/6
	lower, upper, finite := RankBounds(n, q, 0.05)
	assert.True(t, finite)
	assert.InDelta(t, n*q-z*sd+skew, float64(lower), 1.5)
	assert.InDelta(t, n*q+z*sd+skew, float64(upper), 1.5)
}

func TestRankBoundsDoesNotAllocate(t *testing.T) {
	assert.Zero(t, testing.AllocsPerRun(100, func() { RankBounds(100_000, 0.95, 0.05) }))
}

func BenchmarkRankBounds(b *testing.B) {
	for _, n := range []uint64{60, 1_000, 100_000, 1_000_000_000} {
		for _, q := range []float64{0.5, 0.95} {
			b.Run(fmt.Sprintf("n=%d,q=%v", n, q), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					RankBounds(n, q, 0.05)
				}
			})
		}
	}
}
