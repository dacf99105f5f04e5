// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func survivalOf(bounds []float64, counts ...uint64) *Survival {
	s := new(Survival)
	s.Measure(bounds, counts)
	return s
}

func TestSurvivalCounts(t *testing.T) {
	s := survivalOf([]float64{1, 2, 4}, 5, 3, 0, 2)
	assert.InDelta(t, 10, s.Total(), 0)
	assert.InDelta(t, 5, s.Above(0), 0)
	assert.InDelta(t, 2, s.Above(1), 0)
	assert.InDelta(t, 2, s.Above(2), 0)
	s.Measure([]float64{8}, []uint64{1, 6})
	assert.InDelta(t, 7, s.Total(), 0, "each pane anew")
	assert.InDelta(t, 6, s.Above(0), 0)
}

// Log-normal observations have exactly what is interpolated.
func TestExceedingOfALogNormal(t *testing.T) {
	const n, median, sigma = 1e9, 0.3, 0.6
	above := func(value float64) float64 { return math.Erfc(math.Log(value/median)/sigma/math.Sqrt2) / 2 }
	bounds := []float64{0.05, 0.1, 0.2, 0.4, 0.8, 1.6}
	counts := make([]uint64, 0, len(bounds)+1)
	rest := uint64(n)
	for _, bound := range bounds {
		over := uint64(math.Round(n * above(bound)))
		counts = append(counts, rest-over)
		rest = over
	}
	s := survivalOf(bounds, append(counts, rest)...)
	for _, value := range []float64{0.06, 0.1, 0.15, 0.3, 0.35, 0.4, 0.7, 1.2, 1.6} {
		low, high := s.Exceeding(value)
		assert.InDelta(t, above(value), low, 1e-8, "above %v", value)
		assert.InDelta(t, low, high, 0, "above %v", value)
	}
}

func TestExceedingWhereBucketsDoNotTell(t *testing.T) {
	usual := survivalOf([]float64{1, 2, 4}, 20, 40, 30, 10)
	negative := survivalOf([]float64{-1, 0, 4}, 20, 40, 30, 10)
	tight := survivalOf([]float64{1, 2, 4}, 0, 5, 990, 5) // 99 % in one bucket, 0.5 % on each side of it
	floor := survivalOf([]float64{1, 2, 4}, 0, 5, 790, 205)
	ceiling := survivalOf([]float64{1, 2, 4}, 0, 205, 790, 5)
	for name, tc := range map[string]struct {
		s         *Survival
		value     float64
		low, high float64
	}{
		"at a bound":                  {usual, 2, 0.4, 0.4},
		"at the lowest":               {usual, 1, 0.8, 0.8},
		"at the top":                  {usual, 4, 0.1, 0.1},
		"in the lowest bucket":        {usual, 0.5, 0.8, 1},
		"above all bounds":            {usual, 7, 0, 0.1},
		"not a number":                {usual, math.NaN(), 0.8, 1},
		"from a bound below zero":     {negative, -0.5, 0.4, 0.8},
		"from a bound of zero":        {negative, 3, 0.1, 0.4},
		"where nearly all are at one": {tight, 3, 0.005, 0.995},
		"with next to none below":     {floor, 3, 0.205, 0.995},
		"with next to none above":     {ceiling, 3, 0.005, 0.795},
		"beside those":                {tight, 2, 0.995, 0.995},
		"without observations":        {survivalOf([]float64{1, 2}, 0, 0, 0), 1, 0, 1},
		"without bounds":              {survivalOf(nil, 7), 1, 0, 1},
		"never measured":              {new(Survival), 1, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			low, high := tc.s.Exceeding(tc.value)
			assert.InDelta(t, tc.low, low, 1e-12)
			assert.InDelta(t, tc.high, high, 1e-12)
		})
	}
}

// Whatever the observations are, the share above a value is between the two, up to
// the half an observation that an empty side is taken for, or is interpolated
// inside its bucket; and neither rises with the value.
func TestExceedingKeepsToItsBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bounds := anyBounds(t)
		counts := make([]uint64, len(bounds)+1)
		total := 0.0
		for i := range counts {
			counts[i] = rapid.Uint64Range(0, 300).Draw(t, "count")
			total += float64(counts[i])
		}
		s := survivalOf(bounds, counts...)
		value := rapid.Float64Range(-3, 110).Draw(t, "value")
		low, high := s.Exceeding(value)
		certain, possible := 0.0, total // observations that lie above it
		for i, c := range counts {
			if i > 0 && bounds[i-1] >= value {
				certain += float64(c)
			}
			if i < len(bounds) && bounds[i] <= value {
				possible -= float64(c)
			}
		}
		if total > 0 {
			const half, rounding = 0.5, 1e-9
			assert.GreaterOrEqual(t, low*total, certain-half-rounding)
			assert.LessOrEqual(t, high*total, possible+half+rounding)
		}
		assert.LessOrEqual(t, low, high)
		lower, higher := s.Exceeding(value + rapid.Float64Range(0, 50).Draw(t, "more"))
		assert.LessOrEqual(t, lower, high+1/max(total, 1))
		assert.LessOrEqual(t, higher, high+1/max(total, 1))
	})
}

func TestSurvivalDoesNotAllocateAgain(t *testing.T) {
	bounds, counts := []float64{1, 2, 4}, []uint64{5, 3, 0, 2}
	s := survivalOf(bounds, counts...)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		s.Measure(bounds, counts)
		s.Exceeding(1.5)
	}))
}

func BenchmarkSurvival(b *testing.B) {
	bounds, counts := make([]float64, 22), make([]uint64, 23)
	for i := range counts {
		counts[i] = uint64(10 * (i + 1))
	}
	for i := range bounds {
		bounds[i] = float64(i + 1)
	}
	var s Survival
	b.ReportAllocs()
	for b.Loop() {
		s.Measure(bounds, counts)
		for _, bound := range bounds {
			s.Exceeding(bound / 1.1)
		}
	}
}
