// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"slices"
)

// TrimmedSquares is the sum of squared standardised deviations without the
// largest of them, and how many were summed. Of standard normal deviations, the
// sum is on average what it would be over so many untrimmed ones, 1 for each, or
// of a few a little more.
// The share trimmed is 5 %, and at least one of four and more, so that a single
// outlier among few does not pass for the spread of all. It reorders squares.
func TrimmedSquares(squares []float64) (sum float64, n int) {
	if len(squares) == 0 {
		return 0, 0
	}
	n = len(squares)
	if n >= fewestTrimmed {
		slices.Sort(squares)
		n -= int(math.Ceil(trimmed * float64(n)))
	}
	for _, s := range squares[:n] {
		sum += s
	}
	return sum * inflation(float64(len(squares)-n)/float64(len(squares)+1)), n
}

const (
	trimmed       = 0.05
	fewestTrimmed = 4
)

// inflation makes up for the trimming: the mean of a chi-squared variable of
// one degree of freedom, over its mean below its (1-share)-quantile q. Below q
// lies 1-share of it, and of its mean that of three degrees of freedom:
// 1 - share - sqrt(2q/pi)·exp(-q/2).
func inflation(share float64) float64 {
	if share <= 0 {
		return 1
	}
	q := 2 * math.Pow(math.Erfinv(1-share), 2)
	return (1 - share) / (1 - share - math.Sqrt(2*q/math.Pi)*math.Exp(-q/2))
}

// RobustSpread is the standard deviation of a normal sample, from the median of
// its absolute deviations from its median: up to half of the values may be
// anything. It reorders values; of none the spread is 0.
func RobustSpread(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	center := Median(values)
	for i, v := range values {
		values[i] = math.Abs(v - center)
	}
	return normalConsistency * Median(values)
}

// normalConsistency is 1/Φ⁻¹(3/4): a standard deviation over the median
// absolute deviation, of a normal distribution.
const normalConsistency = 1.4826022185056018

// Median is the middle of the values, or the mean of the middle two; of none it
// is 0. It reorders values.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	slices.Sort(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
