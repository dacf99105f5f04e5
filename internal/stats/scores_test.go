// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// Of a standard normal variable, the mean below 0 is -sqrt(2/pi), above 0 as much; of
// its quarters the means are those between 0 and 0.6744897501960817, where the density
// is 0.3177765726817446, four times the difference of densities at their ends.
func TestNormalScoresByHand(t *testing.T) {
	half := math.Sqrt(2 / math.Pi)
	assert.InDeltaSlice(t, []float64{-half, half}, NormalScores(nil, []float64{5, 5}), 1e-12)
	at0, atQuarter := 1/math.Sqrt(2*math.Pi), 0.3177765726817446
	outer, inner := 4*atQuarter, 4*(at0-atQuarter)
	assert.InDeltaSlice(t, []float64{-outer, -inner, inner, outer}, NormalScores(nil, []float64{2, 2, 2, 2}), 1e-9)
	assert.InDeltaSlice(t, []float64{-farthest, -half, 0, half, farthest}, NormalScores(nil, []float64{0, 3, 0, 3, 0}), 1e-12)
	assert.Equal(t, []float64{0, 0}, NormalScores(nil, []float64{0, 0}))
	assert.InDeltaSlice(t, []float64{0}, NormalScores(nil, []float64{7}), 1e-12)
}

// Scores rise with the buckets, their mean over the observations is 0 and their
// variance at most 1, whatever the counts.
func TestNormalScoresAreScores(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts := rapid.SliceOfN(rapid.Float64Range(0, 1e12), 1, 40).Draw(t, "counts")
		scores := NormalScores(nil, counts)
		assert.True(t, slices.IsSorted(scores), "%v", scores)
		var total, mean, variance float64
		for i, c := range counts {
			total, mean, variance = total+c, mean+c*scores[i], variance+c*scores[i]*scores[i]
		}
		if total > 0 {
			assert.InDelta(t, 0, mean/total, 1e-9)
			assert.LessOrEqual(t, variance/total, 1+1e-9)
		}
	})
}

// With the scores 0 and 1 the evidence is that of a boundary.
func TestScoresOfABoundary(t *testing.T) {
	grid := Grid{math.Log(1.25), math.Log(3)}
	var split, scored EProcess
	for pane, x := range []float64{3, 0, 9} {
		split.Update(grid, (x+20)/(10+90), x, 10, 1.5, StartWeight(pane))
		scored.UpdateScores(grid, []float64{0, 1}, []float64{10 - x, x}, []float64{10 - x + 70, x + 20}, 1.5, StartWeight(pane))
	}
	for i := range grid {
		assert.InEpsilon(t, split[i], scored[i], 1e-12)
	}
}

// Of a sample from the pool without replacement the evidence reaches 20 in one of
// twenty runs at most, however long it is looked at; of one that lies higher it does.
func TestScoresUnderTheNull(t *testing.T) {
	const runs, panes, n, others = 1000, 60, 20, 60
	grid := Grid{0.08, 0.2, 0.7}
	random := rand.New(rand.NewPCG(5, 5))
	reached := func(shift float64) (share float64) {
		for range runs {
			var e EProcess
			most := 0.0
			for pane := range panes {
				own, pool := make([]float64, 8), make([]float64, 8)
				for i := range n + others {
					x := random.NormFloat64()
					if i < n {
						x += shift
					}
					b := min(max(int(math.Floor(x*1.5+4)), 0), 7)
					pool[b]++
					if i < n {
						own[b]++
					}
				}
				e.UpdateScores(grid, NormalScores(nil, pool), own, pool, 1, StartWeight(pane))
				most = max(most, e.E(grid, Unstarted(pane)))
			}
			if most >= 20 {
				share += 1. / runs
			}
		}
		return share
	}
	assert.LessOrEqual(t, reached(0), 0.05+2*math.Sqrt(0.05*0.95/runs))
	assert.LessOrEqual(t, reached(-0.2), 0.01, "it lies lower")
	assert.GreaterOrEqual(t, reached(0.3), 0.95, "it lies higher")
}
