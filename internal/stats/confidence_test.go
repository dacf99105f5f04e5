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

// The definition with 40 digits, in mpmath: loggamma for the beta functions, and
// c = 1000/(2·ln 20 + ln(1 + 2·ln 20)) - 1 = 125.00560979256339.
func TestShareLogE(t *testing.T) {
	for _, tc := range []struct{ p, x, n, want float64 }{
		{0.5, 5, 10, -0.03862698942635685},
		{0.5, 70, 100, 3.2957681292704961},
		{0.05, 0, 60, 0.56669537849479294},
		{0.05, 90, 1000, 11.097435829736842},
		{0.95, 900, 1000, 17.356804903256219},
		{0.01, 1, 1, 0}, // the mean of the mixture is p
		{0.25, 250_000, 1e6, -4.4965267758110577},
		{0.25, 252_000, 1e6, 6.1472878559334441},
		{1e-6, 3, 1e6, -7.2953127185817513},
		{0.5, 500_030_000, 1e9, -6.1494537844566974},
		{0.05, 5_000_100_000, 1e11, -9.2107797751520797},
		{0.3, 12.5, 40.25, -0.14001930791264902},
	} {
		assert.InDelta(t, tc.want, ShareLogE(tc.p, tc.x, tc.n), 1e-10, "%v of %v against %v", tc.x, tc.n, tc.p)
	}
}

func TestShareLogEAtItsEnds(t *testing.T) {
	assert.InDelta(t, 0, ShareLogE(0.3, 0, 0), 1e-15, "nothing observed is no evidence")
	assert.Zero(t, ShareLogE(0, 0, 7))
	assert.Zero(t, ShareLogE(1, 7, 7))
	assert.InDelta(t, math.MaxFloat64, ShareLogE(0, 1, 7), 0, "never, and yet")
	assert.InDelta(t, math.MaxFloat64, ShareLogE(1, 6, 7), 0)
	for _, args := range [][3]float64{
		{math.NaN(), 1, 2}, {0.5, math.NaN(), 2}, {0.5, 1, math.NaN()}, {-0.1, 1, 2}, {1.1, 1, 2}, {0.5, 3, 2}, {0.5, -1, 2}, {0.5, 1, math.Inf(1)},
	} {
		assert.Zero(t, ShareLogE(args[0], args[1], args[2]), "%v", args)
	}
}

func TestMeanOfShareEIsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 60).Draw(t, "n")
		p := rapid.Float64Range(1e-6, 1-1e-6).Draw(t, "p")
		mean := 0.0
		for x := range n + 1 {
			probability := choose(n, x) * math.Pow(p, float64(x)) * math.Pow(1-p, float64(n-x))
			mean += probability * math.Exp(ShareLogE(p, float64(x), float64(n)))
		}
		if math.Abs(mean-1) > 1e-9 {
			t.Fatalf("mean %v", mean)
		}
	})
}

// Where the e-value with 40 digits crosses 1/alpha, by bisection in mpmath.
func TestShareBounds(t *testing.T) {
	for _, tc := range []struct{ x, n, alpha, low, high float64 }{
		{5, 10, 0.05, 0.0148908520310098, 0.98510914796899},
		{2, 100, 0.05, 0.000127526862005168, 0.142089033265923},
		{50, 1000, 0.05, 0.0314986837042544, 0.0734112781050488},
		{950, 1000, 0.05, 0.926588721894951, 0.968501316295746},
		{500, 1000, 0.05, 0.452091608309637, 0.547908391690363},
		{0, 1000, 0.05, 0, 0.00412220309995638},
		{1, 1000, 0.05, 0, 0.00713985349003446}, // one may be any rare one
		{1000, 1000, 0.05, 0.995877796900044, 1},
		{30_000, 1e6, 0.01, 0.0292765879831046, 0.0307338629262391},
		{0, 0, 0.05, 0, 1},
		{3, 2, 0.05, 0, 1},
		{math.NaN(), 2, 0.05, 0, 1},
		{5, 10, math.NaN(), 0, 1},
		{5, 10, 0, 0, 1},
	} {
		low, high := ShareBounds(tc.x, tc.n, tc.alpha)
		assert.InDelta(t, tc.low, low, 1e-12*tc.low, "%v of %v", tc.x, tc.n)
		assert.InDelta(t, tc.high, high, 1e-12*tc.high, "%v of %v", tc.x, tc.n)
	}
}

func TestShareBoundsHoldWhatIsNotExcluded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := math.Floor(math.Pow(10, rapid.Float64Range(0, 9).Draw(t, "log10 n")))
		x := math.Floor(n * rapid.OneOf(rapid.Float64Range(0, 1), rapid.Float64Range(0, 1e-3)).Draw(t, "share"))
		alpha := rapid.Float64Range(1e-6, 0.5).Draw(t, "alpha")
		odds := math.Exp(rapid.Float64Range(-30, 30).Draw(t, "log odds"))
		p := odds / (1 + odds)
		low, high := ShareBounds(x, n, alpha)
		assert.True(t, 0 <= low && low <= x/n && x/n <= high && high <= 1, "%v, %v", low, high)
		evidence := ShareLogE(p, x, n) + math.Log(alpha)
		if math.Abs(evidence) > 1e-6 {
			assert.Equal(t, evidence < 0, low < p && p < high, "%v in (%v, %v)", p, low, high)
		}
	})
}

// misses is the share of runs in which the true share p of observations is ever
// excluded, looked at after each fifth.
func misses(random *rand.Rand, runs int, p float64, excluded func(x, n float64) bool) float64 {
	const observations, peek = 2000, 5
	missed := 0
	for range runs {
		x := 0.0
		for n := 1.0; n <= observations; n++ {
			if random.Float64() < p {
				x++
			}
			if math.Mod(n, peek) == 0 && excluded(x, n) {
				missed++
				break
			}
		}
	}
	return float64(missed) / float64(runs)
}

func TestShareEHoldsAtAllTimes(t *testing.T) {
	const runs, error3 = 1000, 3 * 0.0069 // three standard errors of a share of 0.05 of the runs
	random := rand.New(rand.NewPCG(11, 12))
	for _, p := range []float64{0.02, 0.3, 0.9} {
		missed := misses(random, runs, p, func(x, n float64) bool { return ShareLogE(p, x, n) >= math.Log(20) })
		assert.LessOrEqual(t, missed, 0.05+error3, "share %v", p)
		assert.Positive(t, missed, "share %v is never excluded: that would keep to any error", p)
		assert.Greater(t, misses(random, runs, p, func(x, n float64) bool {
			return math.Abs(x/n-p) > 1.96*math.Sqrt(x*(n-x)/n)/n
		}), 0.2, "Wald's interval of 95 %% holds, peeked at, so the simulation cannot tell")
	}
}

// 1000 observations: the bounds of ShareBounds at 0.5, 0.452 to 0.548, say which
// counts of 1000 are too few and too many for a median.
func TestQuantileBounds(t *testing.T) {
	bounds := []float64{1, 2, 4, 8}
	type ends struct {
		low, high             float64
		lowFinite, highFinite bool
	}
	for name, tc := range map[string]struct {
		q          float64
		cumulative []float64
		want       ends
	}{
		"one bucket":            {0.5, []float64{100, 400, 600, 900, 1000}, ends{2, 4, true, true}},
		"a bound that may be":   {0.5, []float64{100, 400, 510, 900, 1000}, ends{2, 8, true, true}},
		"down to the lowest":    {0.5, []float64{510, 700, 800, 900, 1000}, ends{0, 2, false, true}},
		"in the lowest":         {0.5, []float64{700, 800, 900, 950, 1000}, ends{0, 1, false, true}},
		"up to the top":         {0.5, []float64{100, 200, 400, 490, 1000}, ends{4, 0, true, false}},
		"above all bounds":      {0.5, []float64{10, 20, 30, 40, 1000}, ends{8, 0, true, false}},
		"empty buckets":         {0.5, []float64{0, 0, 1000, 1000, 1000}, ends{2, 4, true, true}},
		"few observations":      {0.5, []float64{1, 2, 3, 4, 5}, ends{}},
		"a falling count":       {0.5, []float64{400, 460, 400, 900, 1000}, ends{1, 8, true, true}},
		"an extreme quantile":   {1, []float64{100, 400, 600, 900, 1000}, ends{8, 0, true, false}},
		"no observations":       {0.5, []float64{0, 0, 0, 0, 0}, ends{}},
		"no quantile":           {math.NaN(), []float64{100, 400, 600, 900, 1000}, ends{}},
		"counts that do not go": {0.5, []float64{100, 400, 600}, ends{}},
	} {
		t.Run(name, func(t *testing.T) {
			var got ends
			got.low, got.high, got.lowFinite, got.highFinite = QuantileBounds(tc.q, bounds, tc.cumulative, 0.05)
			assert.Equal(t, tc.want, got)
		})
	}
}

// quantileMisses is the share of runs in which the bounds of the median of a
// uniform distribution, looked at after each 25 observations, are ever wrong.
func quantileMisses(random *rand.Rand, runs int, ofHistogram func(bounds, cumulative []float64) (low, high float64)) float64 {
	const observations, peek, buckets, q = 1000, 25, 100, 0.5
	bounds := make([]float64, buckets)
	for i := range bounds {
		bounds[i] = (float64(i) + 0.5) / buckets // the median lies right between two
	}
	missed := 0
	for range runs {
		cumulative := make([]float64, buckets+1)
		for n := 1; n <= observations; n++ {
			at, _ := slices.BinarySearch(bounds, random.Float64())
			for i := at; i <= buckets; i++ {
				cumulative[i]++
			}
			if n%peek != 0 {
				continue
			}
			if low, high := ofHistogram(bounds, cumulative); q <= low || q > high {
				missed++
				break
			}
		}
	}
	return float64(missed) / float64(runs)
}

func TestQuantileBoundsHoldAtAllTimes(t *testing.T) {
	const runs, error3 = 1000, 3 * 0.0069
	random := rand.New(rand.NewPCG(13, 14))
	assert.LessOrEqual(t, quantileMisses(random, runs, func(bounds, cumulative []float64) (low, high float64) {
		low, high, lowFinite, highFinite := QuantileBounds(0.5, bounds, cumulative, 0.05)
		if !lowFinite {
			low = math.Inf(-1)
		}
		if !highFinite {
			high = math.Inf(1)
		}
		return low, high
	}), 0.05+error3)
	assert.Greater(t, quantileMisses(random, runs/10, func(bounds, cumulative []float64) (low, high float64) {
		n := cumulative[len(bounds)]
		lower, upper, _ := RankBounds(uint64(n), 0.5, 0.025)
		first, _ := slices.BinarySearch(cumulative, float64(lower))
		last, _ := slices.BinarySearch(cumulative, float64(upper))
		return bounds[max(first-1, 0)], bounds[min(last, len(bounds)-1)]
	}), 0.1, "bounds for one look hold, peeked at, so the simulation cannot tell")
}

// Theorem 2.2 with 40 digits, in mpmath: rho² = (2·ln(1/alpha) + ln(1 + 2·ln(1/alpha)))/100.
func TestMeanRadius(t *testing.T) {
	for _, tc := range []struct{ n, sd, alpha, want float64 }{
		{1, 1, 0.05, 9.0843794373105803},
		{100, 2, 0.05, 0.60704179807525058},
		{1000, 1, 0.05, 0.10251228683166386},
		{100, 1, 0.01, 0.35716299708704494},
		{1e6, 0.3, 0.05, 0.0012468407123893832},
		{50, 0, 0.05, 0},
		{0, 1, 0.05, math.MaxFloat64},
		{-1, 1, 0.05, math.MaxFloat64},
		{math.NaN(), 1, 0.05, math.MaxFloat64},
		{10, math.NaN(), 0.05, math.MaxFloat64},
		{10, math.Inf(1), 0.05, math.MaxFloat64},
	} {
		assert.InDelta(t, tc.want, MeanRadius(tc.n, tc.sd, tc.alpha), 1e-12*tc.want, "%v of sd %v", tc.n, tc.sd)
	}
}

// meanMisses is the share of runs in which the mean of draws is ever farther from
// 0 than a radius that is made of their own standard deviation, looked at after
// each from the first on.
func meanMisses(runs int, first float64, draw func(*rand.Rand) float64, radius func(n, sd float64) float64) float64 {
	const observations = 1000
	random := rand.New(rand.NewPCG(15, 16))
	missed := 0
	for range runs {
		var sum, squares float64
		for n := 1.0; n <= observations; n++ {
			v := draw(random)
			sum += v
			squares += v * v
			if n >= first && math.Abs(sum/n) > radius(n, math.Sqrt((squares-sum*sum/n)/(n-1))) {
				missed++
				break
			}
		}
	}
	return float64(missed) / float64(runs)
}

func TestMeanRadiusHoldsAtAllTimes(t *testing.T) {
	const runs, error3 = 1000, 3 * 0.0069
	exponential := func(random *rand.Rand) float64 { return random.ExpFloat64() - 1 }
	always := func(n, sd float64) float64 { return MeanRadius(n, sd, 0.05) }
	assert.LessOrEqual(t, meanMisses(runs, 30, (*rand.Rand).NormFloat64, always), 0.05+error3)
	assert.LessOrEqual(t, meanMisses(runs, 100, exponential, always), 0.05+error3)
	assert.Greater(t, meanMisses(runs, 100, exponential, func(n, sd float64) float64 { return 1.96 * sd / math.Sqrt(n) }), 0.2,
		"Wald's interval of 95 %% holds, peeked at, so the simulation cannot tell")
}

func TestConfidenceDoesNotAllocate(t *testing.T) {
	bounds, cumulative := []float64{1, 2, 4}, []float64{20, 600, 900, 1000}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		ShareBounds(50, 1000, 0.05)
		QuantileBounds(0.5, bounds, cumulative, 0.05)
	}))
}

func BenchmarkShareBounds(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		ShareBounds(50, 1000, 0.05)
	}
}

// FuzzConfidence feeds what is no share, no count and no error.
func FuzzConfidence(f *testing.F) {
	f.Add(0.5, 1.0, 2.0, 0.05)
	f.Add(1e-310, 5.0, 1e10, 0.05)
	f.Add(5e-324, 1e308, 1.7e308, 1e-300)
	f.Add(1-1e-16, 1.0, math.MaxFloat64, 1.0)
	f.Add(math.NaN(), math.Inf(1), math.Inf(-1), -1.0)
	f.Fuzz(func(t *testing.T, p, x, n, alpha float64) {
		low, high := ShareBounds(x, n, alpha)
		a, b, _, _ := QuantileBounds(p, []float64{1, 2}, []float64{x / 2, x, n}, alpha)
		for _, v := range []float64{ShareLogE(p, x, n), low, high, a, b, MeanRadius(n, x, alpha)} {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("%v, %v, %v, %v: %v", p, x, n, alpha, v)
			}
		}
		if low > high || low < 0 || high > 1 {
			t.Fatalf("share %v of %v: %v to %v", x, n, low, high)
		}
	})
}
