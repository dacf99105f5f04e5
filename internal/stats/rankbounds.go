// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import "math"

// RankBounds returns the ranks between which the q-quantile of the distribution
// behind n independent observations lies, whatever that distribution is: with
// X ~ Bin(n, q), the number of observations at or below it,
//
//	lower = max{l: P(X >= l) >= 1-alpha}
//	upper = min{u: P(X <= u-1) >= 1-alpha}
//
// so that each of "at or above the lower-th smallest observation" and "at or
// below the upper-th" holds with probability 1-alpha (Conover, Practical
// Nonparametric Statistics, 3.2). lower is 0 where no observation bounds the
// quantile from below. upper is n+1 and upperFinite false where none bounds it
// from above: below n = ln(alpha)/ln(q), which is 59 observations for p95 and
// 299 for p99 at alpha 0.05.
//
// alpha is the error a side, 1e-9 to 0.5. For any other, and for a q that is
// NaN, neither side is bounded. The cost is a few microseconds, whatever n.
func RankBounds(n uint64, q, alpha float64) (lower, upper uint64, upperFinite bool) {
	// P(X >= u) = P(n-X <= n-u) and n-X ~ Bin(n, 1-q): one tail serves both.
	lower = lowerTailCount(n, q, 1-q, alpha)
	upper = n + 1 - lowerTailCount(n, 1-q, q, alpha)
	return lower, upper, upper <= n
}

// lowerTailCount returns how many of the outcomes 0, 1, … of Bin(n, p) have a
// cumulative probability of at most alpha. complement is 1-p.
func lowerTailCount(n uint64, p, complement, alpha float64) uint64 {
	switch {
	case !(alpha >= 1e-9 && alpha <= 0.5) || !(p > 0):
		return 0
	case !(p < 1):
		return n
	}

	size := float64(n)
	k := cornishFisher(size, p, complement, alpha)
	mass := binomialMass(size, k, p, complement)
	tail := mass * tailRatio(size, k, p, complement)

	// The guess is off by a few outcomes at most, and the masses of neighbours
	// follow from each other by one division.
	for tail > alpha {
		if k == 0 {
			return 0
		}
		tail -= mass
		mass *= k * complement / ((size - k + 1) * p)
		k--
	}
	for tail <= alpha && k < size {
		mass *= (size - k) * p / ((k + 1) * complement)
		tail += mass
		k++
	}
	return uint64(k)
}

// cornishFisher guesses the alpha-quantile of Bin(n, p) for alpha <= 0.5: the
// normal approximation corrected for skewness, at least 0 and at most the mean.
func cornishFisher(n, p, complement, alpha float64) float64 {
	z := math.Sqrt2 * math.Erfinv(2*alpha-1)
	mean := n * p
	guess := mean + z*math.Sqrt(mean*complement) + (z*z-1)*(complement-p)/6 - 1
	return max(0, math.Floor(min(guess, mean, n-1)))
}

// binomialMass returns P(X = k) for X ~ Bin(n, p), to about 1e-12 relative up to
// n = 1e9. The form is Loader's: logarithms of factorials are as large as
// n*ln(n), and their difference would be worth few digits (C. Loader, Fast and
// Accurate Computation of Binomial Probabilities, 2000).
func binomialMass(n, k, p, complement float64) float64 {
	switch k {
	case 0:
		return math.Exp(n * math.Log1p(-p))
	case n:
		return math.Exp(n * math.Log(p))
	}
	log := stirlingError(n) - stirlingError(k) - stirlingError(n-k) -
		deviance(k, n*p) - deviance(n-k, n*complement)
	return math.Exp(log) * math.Sqrt(n/(2*math.Pi*k*(n-k)))
}

// deviance returns x*ln(x/mean) + mean - x.
func deviance(x, mean float64) float64 {
	return x*math.Log1p((x-mean)/mean) - (x - mean)
}

// stirlingError returns ln(n!) - ln(sqrt(2*pi*n) * (n/e)^n), n >= 1.
func stirlingError(n float64) float64 {
	if n < 16 {
		factorial, _ := math.Lgamma(n + 1)
		return factorial - (n+0.5)*math.Log(n) + n - 0.5*math.Log(2*math.Pi)
	}
	s := 1 / (n * n)
	return (1./12 - s*(1./360-s*(1./1260-s*(1./1680-s/1188)))) / n
}

// tailRatio returns P(X <= k) / P(X = k) for X ~ Bin(n, p): p times the
// continued fraction of the incomplete beta function I_{1-p}(n-k, k+1), by the
// modified Lentz method (Numerical Recipes, 6.4). Below the mean, where it is
// used, it converges fast: some 60 steps at the 5 % quantile, however large n.
func tailRatio(n, k, p, complement float64) float64 {
	const (
		epsilon  = 1e-15
		maxSteps = 100_000
	)
	a, b := n-k, k+1
	// The first denominator is 1 - (a+b)*complement/(a+1), without cancellation.
	c, d := 1.0, (a+1)/((n+1)*p-k)
	ratio := d
	for m := 1.0; m <= maxSteps; m++ {
		even := m * (b - m) * complement / ((a + 2*m - 1) * (a + 2*m))
		odd := -(a + m) * (a + b + m) * complement / ((a + 2*m) * (a + 2*m + 1))
		for _, term := range [...]float64{even, odd} {
			c, d = notZero(1+term/c), 1/notZero(1+term*d)
			ratio *= c * d
		}
		if math.Abs(c*d-1) < epsilon {
			break
		}
	}
	return p * ratio
}

// notZero keeps a denominator that vanishes by chance dividable.
func notZero(x float64) float64 {
	const tiny = 1e-300
	if math.Abs(x) < tiny {
		return tiny
	}
	return x
}
