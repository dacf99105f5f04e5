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

var (
	more = Grid{math.Log(1.25), math.Log(1.6), math.Log(3)}
	less = Grid{-math.Log(1.25), -math.Log(1.6), -math.Log(3)}
)

func TestGridLogEByHand(t *testing.T) {
	// Twice the odds, 3 of 4 above where 1/4 may be: 2^3 / (1 + 1/4)^4.
	assert.InDelta(t, math.Log(8/2.44140625), Grid{math.Ln2}.LogE(0, 0.25, 3, 4), 1e-12)
	// Half the odds, 1 of 4 above where 3/4 has to be: (1/2) / (1 - 3/8)^4.
	assert.InDelta(t, math.Log(0.5/0.152587890625), Grid{-math.Ln2}.LogE(0, 0.75, 1, 4), 1e-12)
	// All has to lie above, and 3 of 5 do: each that does not is worth a factor 3.
	assert.InDelta(t, math.Log(9), less.LogE(2, 1, 3, 5), 1e-12)
	assert.Zero(t, more.LogE(1, 0.3, 0, 0), "nothing observed is no evidence")
}

func TestStartWeightsAddUp(t *testing.T) {
	assert.InDelta(t, 1, Unstarted(-1), 0)
	assert.InDelta(t, 0.9, StartWeight(0), 0)
	assert.InDelta(t, 0.05, StartWeight(1), 1e-15)   // 1/(10·1·2)
	assert.InDelta(t, 1.0/60, StartWeight(2), 1e-15) // 1/(10·2·3)
	sum := 0.0
	for k := range 1000 {
		sum += StartWeight(k)
		assert.InDelta(t, 1-sum, Unstarted(k), 1e-12)
	}
}

// Three panes of three observations each, and each of the 4^3 histories with its
// probability, with the null's share and on either side of it.
func TestMeanOfEProcessOverAllHistories(t *testing.T) {
	shares := [...]float64{0.3, 0.05, 0.6}
	mean := func(g Grid, odds float64) (mean float64) {
		for history := range 64 {
			var m EProcess
			probability := 1.0
			for k, p := range shares {
				x := history >> (2 * k) & 3
				own := odds * p / (1 - p + odds*p)
				probability *= choose(3, x) * math.Pow(own, float64(x)) * math.Pow(1-own, float64(3-x))
				m.Update(g, p, float64(x), 3, 1, StartWeight(k))
			}
			mean += probability * m.E(g, Unstarted(len(shares)-1))
		}
		return mean
	}
	assert.InDelta(t, 1, mean(more, 1), 1e-12)
	assert.InDelta(t, 1, mean(less, 1), 1e-12)
	assert.Less(t, mean(more, 0.8), 1.0, "at most p is a null, too")
	assert.Less(t, mean(less, 1.25), 1.0, "at least p is a null, too")
	assert.Greater(t, mean(more, 1.5), 1.0)
	assert.Greater(t, mean(less, 0.67), 1.0)
}

// drawAbove is how many of n lie above that are drawn, without replacement, from a
// pool of which so many do; those that do are odds times as probable to be drawn.
func drawAbove(random *rand.Rand, n, above, pool int, odds float64) (x float64) {
	below := pool - above
	for range n {
		weight := odds * float64(above)
		if random.Float64()*(weight+float64(below)) < weight {
			above--
			x++
		} else {
			below--
		}
	}
	return x
}

// watch runs an e-process for up to so many panes, each of 20 of a pool of 200 in
// which now many and now few lie above. The own have other odds from pane start on.
// It returns the pane in which the process reaches 20, or panes if it never does.
func watch(random *rand.Rand, g Grid, panes, start int, odds float64, weight func(k int) float64) int {
	const n, pool, threshold = 20, 200, 20.0
	var m EProcess
	for k := range panes {
		above := 10 + random.IntN(100)
		own := 1.0
		if k >= start {
			own = odds
		}
		m.Update(g, float64(above)/pool, drawAbove(random, n, above, pool, own), n, 1, weight(k))
		if m.E(g, Unstarted(k)) >= threshold {
			return k
		}
	}
	return panes
}

func TestEProcessUnderTheNull(t *testing.T) {
	const runs, panes = 4000, 200
	const error3 = 3 * 0.00345 // three standard errors of a share of 0.05 of 4000 runs
	random := rand.New(rand.NewPCG(7, 8))
	for name, g := range map[string]Grid{"more": more, "less": less} {
		t.Run(name, func(t *testing.T) {
			fired := 0
			for range runs {
				if watch(random, g, panes, panes, 1, StartWeight) < panes {
					fired++
				}
			}
			assert.LessOrEqual(t, float64(fired)/runs, 0.05+error3)
			assert.Positive(t, fired, "the process never speaks: it would keep to any error")
		})
	}
	// The same without the weights is a detector, and no e-process.
	fired := 0
	for range runs / 10 {
		if watch(random, more, panes, panes, 1, func(int) float64 { return 1 }) < panes {
			fired++
		}
	}
	assert.Greater(t, float64(fired)/(runs/10), 0.05+error3, "the simulation cannot tell")
}

func TestEProcessFindsWhatIsThere(t *testing.T) {
	const runs, panes = 200, 200
	random := rand.New(rand.NewPCG(9, 10))
	for name, tc := range map[string]struct {
		g      Grid
		odds   float64
		start  int
		within int
	}{
		"from the beginning":    {more, 3, 0, 20},
		"in the middle":         {more, 3, 100, 30},
		"a small effect":        {more, 1.6, 0, 100},
		"to the other side":     {less, 1 / 3.0, 0, 20},
		"to the other side, up": {less, 1 / 3.0, 100, 30},
	} {
		t.Run(name, func(t *testing.T) {
			found := 0
			for range runs {
				if at := watch(random, tc.g, panes, tc.start, tc.odds, StartWeight); at >= tc.start && at < tc.start+tc.within {
					found++
				}
			}
			assert.GreaterOrEqual(t, float64(found)/runs, 0.9)
		})
	}
}

func TestEProcessWithDispersionIsSlower(t *testing.T) {
	var plain, clumped EProcess
	plain.Update(more, 0.25, 40, 60, 1, 1)
	clumped.Update(more, 0.25, 40, 60, 4, 1)
	for i := range more {
		assert.InEpsilon(t, math.Pow(plain[i], 0.25), clumped[i], 1e-12) // (0+1)·e^(1/4)
	}
	assert.Zero(t, plain[len(more)], "of an effect that the grid does not have")
}

// Fed what no pane can be, it stays a number from 0 to 1e300.
func TestEProcessStaysANumber(t *testing.T) {
	four := Grid{math.Log(1.3), math.Ln2, math.Log(4), math.Log(10)}
	rapid.Check(t, func(t *rapid.T) {
		anything := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{
			0, 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, 1e-320,
		}))
		var m EProcess
		for range 5 {
			m.Update(four, anything.Draw(t, "p"), anything.Draw(t, "x"), anything.Draw(t, "n"),
				anything.Draw(t, "dispersion"), anything.Draw(t, "weight"))
			for _, v := range m {
				if !(v >= 0 && v <= 1e300) {
					t.Fatalf("evidence %v", v)
				}
			}
		}
	})
	var m EProcess
	for range 100 {
		m.Update(four, 0.001, 1e9, 1e9, 1, 1)
	}
	assert.InDelta(t, 1e300, m.E(four, 0), 1e285)
	m.Update(four, 0.5, 0, 1e12, 1, 1)
	assert.Zero(t, m.E(four, 0), "evidence can be lost again")
}

func TestEProcessDoesNotAllocate(t *testing.T) {
	var m EProcess
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		m.Update(more, 0.25, 7, 20, 1, StartWeight(1))
		m.E(more, Unstarted(1))
	}))
}

func BenchmarkEProcess(b *testing.B) {
	var m EProcess
	b.ReportAllocs()
	for b.Loop() {
		m.Update(more, 0.25, 5, 20, 1, 0.1)
	}
}
