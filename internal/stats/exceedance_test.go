// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestLogEByHand(t *testing.T) {
	h := NullOf(0.25)
	// Twice the odds, 3 of 4 above: 2^3 / (1 + 0.25·(2-1))^4 = 8/2.44140625.
	assert.InDelta(t, math.Log(8/2.44140625), h.LogE(1, 3, 4), 1e-12)
	// Four times the odds, none of 2: 1 / (1 + 0.25·3)^2.
	assert.InDelta(t, math.Log(1/3.0625), h.LogE(2, 0, 2), 1e-12)
	// Nothing observed is no evidence.
	assert.Zero(t, h.LogE(0, 0, 0))
	// Where everything may lie above, nothing above is evidence.
	all := NullOf(1)
	assert.InDelta(t, 0, all.LogE(2, 7, 7), 1e-12)
}

// choose is the number of ways to take k of n.
func choose(n, k int) float64 {
	if k < 0 || k > n {
		return 0
	}
	ways := 1.0
	for i := range k {
		ways *= float64(n-i) / float64(i+1)
	}
	return ways
}

func TestMeanOfEIsAtMostOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool := rapid.IntRange(1, 40).Draw(t, "pool")
		above := rapid.IntRange(0, pool).Draw(t, "above")
		n := rapid.IntRange(0, pool).Draw(t, "own")
		p := float64(above) / float64(pool)
		h := NullOf(p)
		for effect := range Effects {
			var drawn, independent float64 // with the pool's share: without replacement, and with
			for x := range n + 1 {
				e := math.Exp(h.LogE(effect, float64(x), float64(n)))
				drawn += e * choose(above, x) * choose(pool-above, n-x) / choose(pool, n)
				independent += e * choose(n, x) * math.Pow(p, float64(x)) * math.Pow(1-p, float64(n-x))
			}
			if drawn > 1+1e-9 {
				t.Fatalf("effect %d: mean %v of an own part of the pool", effect, drawn)
			}
			if math.Abs(independent-1) > 1e-9 {
				t.Fatalf("effect %d: mean %v of independent observations", effect, independent)
			}
		}
	})
}

func TestDetectorGrowsByOneAStep(t *testing.T) {
	// Each of three steps observes one request, above with p = 0.3: all eight
	// histories, each with its probability.
	const p, steps = 0.3, 3
	h := NullOf(p)
	var mean Detector
	for history := range 1 << steps {
		var m Detector
		probability := 1.0
		for step := range steps {
			x := float64(history >> step & 1)
			probability *= x*p + (1-x)*(1-p)
			m.Update(&h, x, 1, 1)
		}
		for effect := range m {
			mean[effect] += float32(probability) * m[effect]
		}
	}
	for effect := range mean {
		assert.InDelta(t, steps, mean[effect], 1e-5)
	}
}

// alarms counts, of so many runs, those in which the mean detector reaches a
// threshold within so many steps of n observations that lie above with
// probability p, where share is allowed.
func alarms(random *rand.Rand, runs, steps int, n int, p, share, threshold float64) (count int) {
	h := NullOf(share)
	for range runs {
		var m Detector
		for range steps {
			x := 0.0
			for range n {
				if random.Float64() < p {
					x++
				}
			}
			m.Update(&h, x, float64(n), 1)
			if m.Sum()/float64(len(Effects)) >= threshold {
				count++
				break
			}
		}
	}
	return count
}

func TestDetectorKeepsItsRateAndFindsWhatIsThere(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const runs, steps, threshold = 2000, 50, 1000.0
	// The mean of M after 50 steps is 50, so at most 5 % of runs reach 1000
	// (Markov's inequality, and Ville's for the maximum of the martingale M - step).
	quiet := alarms(random, runs, steps, 60, 0.25, 0.25, threshold)
	assert.LessOrEqual(t, float64(quiet), 0.05*runs)
	assert.Positive(t, quiet, "the detector never speaks: it would guarantee any rate")
	assert.Equal(t, runs, alarms(random, runs, steps, 60, 0.45, 0.25, threshold), "a large change is not found")
}

func TestDetectorWithDispersionIsSlower(t *testing.T) {
	h := NullOf(0.25)
	var plain, clumped Detector
	plain.Update(&h, 40, 60, 1)
	clumped.Update(&h, 40, 60, 4)
	for effect := range Effects {
		want := math.Pow(float64(plain[effect]), 0.25) // (0+1)·e^(1/4)
		assert.InEpsilon(t, want, clumped[effect], 1e-5)
	}
}

func TestDetectorNeverOverflows(t *testing.T) {
	h := NullOf(0.001)
	var m Detector
	for range 100 {
		m.Update(&h, 1e9, 1e9, 1)
	}
	assert.False(t, math.IsInf(m.Sum(), 1))
	m.Update(&h, 0, 1e12, 1)
	assert.False(t, math.IsNaN(m.Sum()))
}
