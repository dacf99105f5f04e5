// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTrimmedSquaresOfNormalDeviations(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, replicas := range []int{3, 4, 5, 8, 20, 1000} {
		var sum float64
		var n int
		for range 400_000 / replicas {
			squares := make([]float64, replicas)
			for i := range squares {
				z := random.NormFloat64()
				squares[i] = z * z
			}
			s, kept := TrimmedSquares(squares)
			sum += s
			n += kept
		}
		// Of few, the trimming hits the largest of a sample and not a fixed
		// quantile: the correction is nearly right, and errs to the careful side.
		mean := sum / float64(n)
		assert.Greater(t, mean, 0.98, "%d replicas", replicas)
		assert.Less(t, mean, 1.2, "%d replicas", replicas)
	}
}

func TestTrimmedSquaresLeaveOutAnOutlier(t *testing.T) {
	sum, n := TrimmedSquares([]float64{1, 0.5, 1e9, 0.75})
	assert.Equal(t, 3, n)
	assert.Less(t, sum/float64(n), 5.0)
	sum, n = TrimmedSquares([]float64{4, 2})
	assert.Equal(t, 2, n)
	assert.InDelta(t, 6, sum, 0)
	sum, n = TrimmedSquares(nil)
	assert.Zero(t, n)
	assert.Zero(t, sum)
}

func TestRobustSpread(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	values := make([]float64, 10_000)
	for i := range values {
		values[i] = 3 + 0.05*random.NormFloat64()
	}
	assert.InEpsilon(t, 0.05, RobustSpread(values), 0.03)
	for i := range values {
		values[i] = 0.05 * random.NormFloat64()
		if i%4 == 0 {
			values[i] += 100
		}
	}
	assert.Less(t, RobustSpread(values), 0.1, "a quarter of outliers is no spread")
	assert.Zero(t, RobustSpread(nil))
	assert.Zero(t, RobustSpread([]float64{7}))
}

func TestMedian(t *testing.T) {
	assert.InDelta(t, 2, Median([]float64{3, 1, 2}), 0)
	assert.InDelta(t, 2.5, Median([]float64{4, 1, 3, 2}), 0)
	assert.Zero(t, Median(nil))
}
