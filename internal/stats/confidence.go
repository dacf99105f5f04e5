// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import "math"

// ShareLogE is the log of an e-value against "each of n observations is one of
// the x with probability p": the likelihood of x under a Beta(c·p, c·(1-p)) mixture
// of shares, over that under p,
//
//	B(c·p + x, c·(1-p) + n-x) / (B(c·p, c·(1-p)) · p^x · (1-p)^(n-x)).
//
// As n grows it is a martingale if p is the share, so that it ever reaches 1/alpha
// with a probability of at most alpha. This is the two-sided beta-binomial mixture
// of Howard, Ramdas, McAuliffe and Sekhon (Annals of Statistics 49, 2021); c makes
// it tightest at about 1000 observations.
//
// x is 0 to n, n finite, p 0 to 1, and of others the answer is 0: no evidence.
// What p rules out altogether has math.MaxFloat64.
func ShareLogE(p, x, n float64) float64 {
	valid := p >= 0 && p <= 1 && x >= 0 && x <= n && n <= math.MaxFloat64
	switch {
	case !valid || p == 0 && x == 0 || p == 1 && x == n:
		return 0
	case p == 0 || p == 1:
		return math.MaxFloat64
	}
	// Logarithms of beta functions are as large as n·ln(n) each. In Stirling's form,
	// ln Γ(z) = (z-1/2)·ln(z) - z + ln(2π)/2 + stirlingError(z), what is large in them
	// and in the likelihood makes up two deviances.
	a0, b0 := shareMass*p, shareMass*(1-p)
	a, b, mass := a0+x, b0+n-x, shareMass+n
	logE := deviance(a, mass*p) + deviance(b, mass*(1-p)) +
		(math.Log(a0)-math.Log(a)+math.Log(b0)-math.Log(b)+math.Log(mass)-math.Log(shareMass))/2 +
		stirlingError(a) + stirlingError(b) - stirlingError(mass) -
		stirlingError(a0) - stirlingError(b0) + stirlingError(shareMass)
	if math.IsNaN(logE) {
		return 0
	}
	return min(max(logE, -math.MaxFloat64), math.MaxFloat64)
}

// shareMass is c. Where an observation's variance is s = p·(1-p), Howard et al. have
// c = rho/s - 1, with the rho that suits a variance of 1000·s and an error of 5 %:
// the same c for each p.
var shareMass = 1000/mixing(0.05) - 1

// mixing is the variance of a sum over the mixing parameter rho with which the
// boundary of error alpha is about the tightest at that variance (Howard et al.,
// on tuning boundaries; Waudby-Smith et al. say the same of their 1/rho²).
func mixing(alpha float64) float64 {
	return -2*math.Log(alpha) + math.Log1p(-2*math.Log(alpha))
}

// ShareBounds are the smallest and the largest share p that x of n observations
// do not exclude: ShareLogE is below ln(1/alpha). Looked at after each observation,
// they hold the true share at all times at once with probability 1-alpha: it is
// the confidence sequence of Howard and Ramdas (Bernoulli 28, 2022) for a share.
// Without observations they are 0 and 1.
func ShareBounds(x, n, alpha float64) (low, high float64) {
	if !(x >= 0 && x <= n && n > 0) {
		return 0, 1
	}
	threshold := -math.Log(alpha)
	return lastExcluded(x, n, 0, threshold), lastExcluded(x, n, 1, threshold)
}

// lastExcluded is the share next to those that are not excluded, on the side of an
// end, 0 or 1; the end, if none is excluded there.
func lastExcluded(x, n, end, threshold float64) float64 {
	const halvings = 64
	kept, excluded := x/n, end
	for range halvings {
		middle := kept + (excluded-kept)/2
		if middle == kept || middle == excluded {
			break
		}
		if ShareLogE(middle, x, n) >= threshold {
			excluded = middle
		} else {
			kept = middle
		}
	}
	return excluded
}

// QuantileBounds are the bucket bounds between which the q-quantile of the
// distribution behind a histogram lies, whatever that distribution is, at all
// times at once with probability 1-alpha (Howard and Ramdas, Bernoulli 28, 2022,
// on the bounds of buckets). low is the largest bound with too few observations at
// or below it for the quantile, by ShareLogE, and high the smallest with too many:
// the quantile is above low, and at or below high. Where there is no such bound,
// lowFinite or highFinite is false, and 0 stands in its place.
//
// The error is alpha for both sides and all bounds together: only those next to
// the quantile matter, since evidence against a share q grows with the distance of
// the count from it, and these two counts lie on either side of a binomial one.
//
// bounds and cumulative are as everywhere, read as AtRank does.
func QuantileBounds(q float64, bounds, cumulative []float64, alpha float64) (low, high float64, lowFinite, highFinite bool) {
	total := envelopeTotal(cumulative)
	if !(q >= 0 && q <= 1) || !(total > 0) || len(cumulative) != len(bounds)+1 {
		return 0, 0, false, false
	}
	threshold := -math.Log(alpha)
	count := 0.0
	for i, bound := range bounds {
		if i == 0 {
			count = cumulative[0]
		} else {
			count = envelope(count, cumulative[i])
		}
		switch {
		case !(ShareLogE(q, count, total) >= threshold):
		case count < q*total:
			low, lowFinite = bound, true
		default:
			return low, bound, lowFinite, true
		}
	}
	return low, 0, lowFinite, false
}

// MeanRadius is how far the mean of n observations of standard deviation sd may
// be from the true one, in their unit: the asymptotic confidence sequence of
// Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (arXiv:2103.06476, theorem 2.2),
//
//	sd · sqrt(2·(n·r + 1) / (n²·r) · ln(sqrt(n·r + 1) / alpha)),
//
// where r = (2·ln(1/alpha) + ln(1 + 2·ln(1/alpha))) / 100 makes it tightest at
// about 100 observations. The error at all times at once tends to at most alpha
// with the n from which on they count: with alpha 0.05 and the sd of the same
// observations, it was simulated to be 4 % for normal ones from the 30th on, and
// for exponential ones 8 % from the 30th and 5 % from the 100th on. Without
// observations, or where there is no such number, it is math.MaxFloat64.
func MeanRadius(n, sd, alpha float64) float64 {
	const tightest = 100
	if !(n > 0 && sd >= 0) {
		return math.MaxFloat64
	}
	times := n * mixing(alpha) / tightest // n·r
	radius := sd * math.Sqrt(2*(1+1/times)/n*math.Log(math.Sqrt(times+1)/alpha))
	if !(radius <= math.MaxFloat64) {
		return math.MaxFloat64
	}
	return radius
}
