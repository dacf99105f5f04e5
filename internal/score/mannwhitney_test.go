// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func pointsOf(canary, baseline []float64) *mannWhitney {
	w := new(mannWhitney)
	for i := range canary {
		w.add(canary[i], baseline[i])
	}
	return w
}

// TestMannWhitneyInterval: the canary's points are 100, 200, … 1000, the
// baseline's 1, 2, … 10. Their 100 differences 100i - j are all distinct, and the
// statistic falls past the k-th of them, in rising order, from 50 + 1 - k to
// 50 - k pairs, of which half a pair is taken for continuity. Its deviation is
// √(100·21/12) = 13.2288, and of that the 99th percentile is 2.32635 times, 30.775
// pairs: more than 81.275 - 0.5 lie above up to the 18th, and 81 above the 19th,
// which is 200 - 2. The other end is the 19th from above, 900 - 9, and half of the
// differences lie below 500 - 1 and half above 600 - 10.
func TestMannWhitneyInterval(t *testing.T) {
	var canary, baseline []float64
	for i := range 10 {
		canary, baseline = append(canary, float64(1000-100*i)), append(baseline, float64(i+1))
	}
	w := pointsOf(canary, baseline)
	const z = 2.3263478740408408 // 99th percentile of the normal distribution
	assert.InDelta(t, 198, w.shift(z), 1e-5)
	assert.InDelta(t, 891, w.shift(-z), 1e-5)
	assert.InDelta(t, (499+590)/2., w.shift(0), (590-499)/2.)
	assert.InDelta(t, (100-50-0.5)/math.Sqrt(100*21/12.), w.statistic(0), 1e-12, "all of the canary's points lie above")
	assert.True(t, w.high(), "198 is more than a quarter of any such estimate")
}

// TestMannWhitneyTies: the same two arms as in an issue of Kayenta
// (spinnaker/spinnaker#6278). Between no shift and 99, 70 of 100 pairs lie above
// and 30 below, with ties of seven, three and ten: (70 - 50 - 0.5) over
// √(100/12·(21 - (7³-7 + 3³-3 + 10³-10)/(20·19))) is 1.617, below the 99th
// percentile: that nothing has changed is not excluded.
func TestMannWhitneyTies(t *testing.T) {
	slow, fine := 100.0, 1.0
	w := pointsOf([]float64{slow, slow, slow, slow, slow, slow, slow, fine, fine, fine}, []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1})
	assert.InDelta(t, 19.5/math.Sqrt(100/12.*(21-(336+24+990)/380.)), w.statistic(50), 1e-12)
	assert.InDelta(t, 1.617, w.statistic(50), 1e-3)
	assert.InDelta(t, 99, w.shift(0), 1e-5)
	assert.False(t, w.high())

	assert.False(t, pointsOf([]float64{1, 1, 1}, []float64{1, 1, 1}).high(), "all points are alike")
	assert.False(t, pointsOf([]float64{1, 2, 3, 4}, []float64{11, 12, 13, 14}).high(), "lower is not worse")
}
