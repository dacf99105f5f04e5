// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// TestQuantile pins the special cases. Values are worked out by hand from the
// rules of promql.BucketQuantile.
func TestQuantile(t *testing.T) {
	latency := []float64{1, 2, 4}
	for name, tc := range map[string]struct {
		q                  float64
		bounds, cumulative []float64
		value              float64
		state              QuantileState
	}{
		"inside a bucket":                      {0.5, latency, []float64{2, 6, 10, 10}, 1.75, Defined},
		"inside the lowest bucket, from 0":     {0.1, latency, []float64{2, 6, 10, 10}, 0.5, Defined},
		"rank on an inner bound":               {0.2, latency, []float64{2, 6, 10, 10}, 1, Defined},
		"empty buckets are passed over":        {0.5, latency, []float64{2, 2, 10, 10}, 2.75, Defined},
		"fractional counts":                    {0.5, latency, []float64{0.25, 0.75, 1, 1}, 1.5, Defined},
		"rank in the +Inf bucket":              {0.95, latency, []float64{2, 6, 9, 10}, 4, Saturated},
		"rank on the top finite bound":         {0.9, latency, []float64{2, 6, 9, 10}, 4, Saturated},
		"all above the top finite bound":       {0.5, latency, []float64{0, 0, 0, 10}, 4, Saturated},
		"all in the lowest bucket":             {0.5, latency, []float64{10, 10, 10, 10}, 0.5, LowestBucket},
		"all in the lowest of one":             {1, []float64{1}, []float64{10, 10}, 1, LowestBucket},
		"one finite bucket":                    {0.25, []float64{1}, []float64{5, 10}, 0.5, Defined},
		"lowest bound zero":                    {0.1, []float64{0, 1}, []float64{5, 10, 10}, 0, Defined},
		"lowest bound negative":                {0.1, []float64{-3, 1}, []float64{5, 10, 10}, -3, Defined},
		"from a negative bound":                {0.75, []float64{-3, 1}, []float64{5, 10, 10}, -1, Defined},
		"all at a lowest bound of zero":        {0.9, []float64{0, 1}, []float64{10, 10, 10}, 0, LowestBucket},
		"q 0 starts the lowest bucket":         {0, latency, []float64{2, 6, 10, 10}, 0, Defined},
		"q 0, lowest bucket empty":             {0, latency, []float64{0, 6, 10, 10}, 0, Undefined},
		"q 0, lowest empty, bound 0":           {0, []float64{0, 1}, []float64{0, 10, 10}, 0, Defined},
		"q 1":                                  {1, latency, []float64{2, 6, 6, 6}, 2, Defined},
		"q NaN":                                {math.NaN(), latency, []float64{2, 6, 10, 10}, 0, Undefined},
		"q negative":                           {-0.1, latency, []float64{2, 6, 10, 10}, 0, Undefined},
		"q above 1":                            {1.5, latency, []float64{2, 6, 10, 10}, 0, Undefined},
		"no observations":                      {0.5, latency, []float64{0, 0, 0, 0}, 0, Undefined},
		"no finite bound":                      {0.5, nil, []float64{10}, 0, Undefined},
		"nothing at all":                       {0.5, nil, nil, 0, Undefined},
		"a count too few":                      {0.5, latency, []float64{2, 6, 10}, 0, Undefined},
		"total NaN":                            {0.5, latency, []float64{math.NaN(), 6, 10, 10}, 0, Undefined},
		"total negative":                       {0.5, latency, []float64{-2, -2, -2, -2}, 0, Undefined},
		"falling counts are lifted":            {0.5, latency, []float64{2, 6, 4, 10}, 1.75, Defined},
		"a falling total is lifted":            {0.5, latency, []float64{2, 6, 10, 8}, 1.75, Defined},
		"a rise within the tolerance is none":  {1, latency, []float64{10, 10 + 1e-11, 10, 10}, 1, LowestBucket},
		"a rise beyond the tolerance is one":   {1, latency, []float64{10, 10 + 1e-10, 10, 10}, 2, Defined},
		"the tolerance is relative":            {1, latency, []float64{0, 1e-30, 1e-30, 1e-30}, 2, Defined},
		"small rises do not add up unnoticed":  {1, latency, []float64{10, 10 + 1.5e-11, 10 + 3e-11, 10 + 3e-11}, 4, Saturated},
		"bounds too wide for their difference": {0.5, []float64{-math.MaxFloat64, math.MaxFloat64}, []float64{0, 10, 10}, 0, Undefined},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(tc.cumulative)
			value, state := Quantile(tc.q, tc.bounds, tc.cumulative)
			assert.Equal(t, tc.state, state)
			assert.InDelta(t, tc.value, value, 1e-9)
			assert.True(t, slices.EqualFunc(before, tc.cumulative, sameFloat), "input was modified")
		})
	}
}

func sameFloat(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }

func TestAtRank(t *testing.T) {
	bounds, cumulative := []float64{1, 2, 4}, []float64{2, 6, 10, 12}
	for name, tc := range map[string]struct {
		rank, value float64
		state       QuantileState
	}{
		"first observation": {1, 0.5, Defined},
		"between ranks":     {4.5, 1.625, Defined},
		"in +Inf":           {11, 4, Saturated},
		"the last one":      {12, 4, Saturated},
		"above the total":   {12.5, 0, Undefined},
		"negative":          {-1, 0, Undefined},
		"NaN":               {math.NaN(), 0, Undefined},
	} {
		t.Run(name, func(t *testing.T) {
			value, state := AtRank(tc.rank, bounds, cumulative)
			assert.Equal(t, tc.state, state)
			assert.InDelta(t, tc.value, value, 1e-12)
		})
	}
}

func TestQuantileStateString(t *testing.T) {
	assert.Equal(t, "defined", Defined.String())
	assert.Equal(t, "saturated", Saturated.String())
	assert.Equal(t, "lowest_bucket", LowestBucket.String())
	assert.Equal(t, "undefined", Undefined.String())
	assert.Equal(t, "unknown", QuantileState(200).String())
}

// anyHistogram draws a histogram with at least one observation.
func anyHistogram(t *rapid.T) (bounds, cumulative []float64) {
	bounds = anyBounds(t)
	total := 0.0
	for range len(bounds) + 1 {
		total += float64(rapid.IntRange(0, 50).Draw(t, "count"))
		cumulative = append(cumulative, total)
	}
	if total == 0 {
		cumulative[len(bounds)] = 1
	}
	return bounds, cumulative
}

// anyBounds draws 1 to 25 ascending bounds, apart by far more than rounding.
func anyBounds(t *rapid.T) []float64 {
	hundredths := rapid.SliceOfNDistinct(rapid.IntRange(-200, 10_000), 1, 25, rapid.ID[int]).Draw(t, "bounds")
	slices.Sort(hundredths)
	bounds := make([]float64, len(hundredths))
	for i, h := range hundredths {
		bounds[i] = float64(h) / 100
	}
	return bounds
}

func TestQuantileRisesWithQ(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bounds, cumulative := anyHistogram(t)
		low := rapid.Float64Range(0, 1).Draw(t, "low")
		high := rapid.Float64Range(low, 1).Draw(t, "high")
		a, aState := Quantile(low, bounds, cumulative)
		b, bState := Quantile(high, bounds, cumulative)
		if aState == Undefined || bState == Undefined {
			assert.Zero(t, low*cumulative[0], "only q = 0 above an empty lowest bucket has no value")
			return
		}
		assert.LessOrEqual(t, a, b+1e-9)
	})
}

// A change of unit, and a repetition of every observation, change nothing.
// Powers of two leave every rounding as it is, so equality is exact.
func TestQuantileIsEquivariant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bounds, cumulative := anyHistogram(t)
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		unit := math.Ldexp(1, rapid.IntRange(-20, 20).Draw(t, "unit"))
		times := math.Ldexp(1, rapid.IntRange(0, 20).Draw(t, "times"))

		value, state := Quantile(q, bounds, cumulative)
		scaled, scaledState := Quantile(q, scale(bounds, unit), scale(cumulative, times))
		assert.Equal(t, state, scaledState)
		assert.Equal(t, value*unit, scaled)
	})
}

func scale(xs []float64, by float64) []float64 {
	scaled := make([]float64, len(xs))
	for i, x := range xs {
		scaled[i] = x * by
	}
	return scaled
}

// FuzzQuantile feeds counts and bounds that no histogram has.
func FuzzQuantile(f *testing.F) {
	f.Add(0.5, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 4.0)
	f.Add(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
	f.Add(0.95, -1.0, 0.0, 1.0, 5.0, 4.0, math.NaN(), 6.0)
	f.Add(1.0, -math.MaxFloat64, 0.0, math.MaxFloat64, 1e308, 1e308, math.Inf(1), 1.0)
	f.Add(math.NaN(), math.Inf(-1), math.NaN(), math.Inf(1), -1.0, -2.0, 5e-324, 1e-310)
	f.Fuzz(func(t *testing.T, q, b0, b1, b2, c0, c1, c2, c3 float64) {
		bounds, cumulative := []float64{b0, b1, b2}, []float64{c0, c1, c2, c3}
		value, state := Quantile(q, bounds, cumulative)
		if math.IsNaN(value) || math.IsInf(value, 0) {
			t.Fatalf("Quantile(%v, %v, %v) = %v", q, bounds, cumulative, value)
		}
		if state == Undefined && value != 0 {
			t.Fatalf("Quantile(%v, %v, %v) = %v, undefined", q, bounds, cumulative, value)
		}
		sane := slices.IsSorted(bounds) && b0 > -1e300 && b2 < 1e300 && c0 >= 0
		if sane && state != Undefined && (value < min(b0, 0) || value > b2) {
			t.Fatalf("Quantile(%v, %v, %v) = %v is outside the bounds", q, bounds, cumulative, value)
		}
	})
}

func TestQuantileDoesNotAllocate(t *testing.T) {
	bounds, cumulative := []float64{1, 2, 4}, []float64{2, 6, 4, 10}
	assert.Zero(t, testing.AllocsPerRun(100, func() { Quantile(0.95, bounds, cumulative) }))
}

func BenchmarkQuantile(b *testing.B) {
	bounds, cumulative := make([]float64, 22), make([]float64, 23)
	for i := range bounds {
		bounds[i] = float64(i + 1)
	}
	for i := range cumulative {
		cumulative[i] = float64(10 * (i + 1))
	}
	b.ReportAllocs()
	for b.Loop() {
		Quantile(0.95, bounds, cumulative)
	}
}
