// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Buckets of scale 4 end at powers of the 16th root of two: 2^(-1/16) = 0.9576,
// 2^(-2/16) = 0.9170, 2^(-3/16) = 0.8781.
func TestValues(t *testing.T) {
	type value struct {
		at      float64 // seconds after noon
		value   float64
		outcome Outcome
	}
	for name, tc := range map[string]struct {
		values []value
		want   map[int]uint64 // by the index of the bucket
		zeros  uint64
		sum    float64
	}{
		"the first is an observation": {[]value{{at: 5, value: 0.9}}, map[int]uint64{-3: 1}, 0, 0.9},
		"each new one is": {
			[]value{{at: 5, value: 0.9}, {at: 10, value: 0.92}, {at: 15, value: 0.9}}, map[int]uint64{-3: 2, -2: 1}, 0, 2.72,
		},
		"one that stands is one": {
			[]value{{at: 5, value: 0.9}, {at: 10, value: 0.9}, {at: 15, value: 0.9}, {at: 20, value: 1}, {at: 25, value: 1}},
			map[int]uint64{-3: 1, -1: 1},
			0, 1.9,
		},
		"a bucket ends with its bound": {
			[]value{{at: 5, value: 0.5}, {at: 10, value: 1}, {at: 15, value: 2}, {at: 20, value: 2.001}},
			map[int]uint64{-17: 1, -1: 1, 15: 1, 16: 1},
			0, 5.501,
		},
		"zero": {[]value{{at: 5, value: 0}, {at: 10, value: 0}, {at: 15, value: 1}, {at: 20, value: 0}}, map[int]uint64{-1: 1}, 2, 1},
		"the same time again": {
			[]value{{at: 5, value: 0.9}, {at: 5, value: 0.5, outcome: Duplicate}, {at: 10, value: 0.9}}, map[int]uint64{-3: 1}, 0, 0.9,
		},
		"out of order": {
			[]value{{at: 10, value: 0.9}, {at: 5, value: 0.5, outcome: OutOfOrder}, {at: 15, value: 0.9}}, map[int]uint64{-3: 1}, 0, 0.9,
		},
		"after a long silence it is still the one before": {
			[]value{{at: -290, value: 0.9}, {at: 25, value: 0.9}}, map[int]uint64{}, 0, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var (
				ls Layouts
				h  Histogram
			)
			for _, v := range tc.values {
				assert.Equal(t, v.outcome.String(), h.ObserveValue(grid, &ls, after(v.at), v.value).String())
			}
			e, ok := h.Layout().Exponential()
			assert.True(t, ok)
			assert.Equal(t, 4, e.Scale)
			counts := make([]uint64, e.Width())
			increase := h.Read(grid, grid.Pane(after(30)), counts)
			got := map[int]uint64{}
			for i, n := range counts[1 : len(counts)-1] {
				if n > 0 {
					got[e.First+i] = n
				}
			}
			assert.Equal(t, tc.want, got)
			assert.Equal(t, tc.zeros, counts[0])
			assert.InDelta(t, tc.sum, increase.Sum, 1e-12)
			assert.True(t, increase.SumKnown)
		})
	}
}

// TestCountsOfMoreThanHalfAWord: what counts so far may be more than 2^32, what is
// gained in a pane not.
func TestCountsOfMoreThanHalfAWord(t *testing.T) {
	const half = 1 << 32
	for name, tc := range map[string]struct {
		steps []step
		want  [3]uint64
	}{
		"one grows beyond": {
			[]step{{at: 1, counts: [3]uint64{half - 1, 0, 7}, outcome: First}, {at: 2, counts: [3]uint64{half + 4, 1, 7}}, {at: 3, counts: [3]uint64{half + 6, 2, 9}}},
			[3]uint64{7, 2, 2},
		},
		"from the start": {
			[]step{{at: 1, counts: [3]uint64{1 << 50, half, 1}, outcome: First}, {at: 2, counts: [3]uint64{1<<50 + 1, half, 1}}},
			[3]uint64{1, 0, 0},
		},
		"one that falls, though its lower half rises": {
			[]step{{at: 1, counts: [3]uint64{half + 1, 0, 0}, outcome: First}, {at: 2, counts: [3]uint64{5, 0, 0}, outcome: Reset}},
			[3]uint64{5, 0, 0},
		},
		"one that rises, though its lower half falls": {
			[]step{{at: 1, counts: [3]uint64{half - 1, 0, 0}, outcome: First}, {at: 2, counts: [3]uint64{half, 0, 0}}},
			[3]uint64{1, 0, 0},
		},
		"more than a pane holds": {
			[]step{{at: 1, counts: [3]uint64{1, 0, 0}, outcome: First}, {at: 2, counts: [3]uint64{half + 1, 0, 0}, outcome: Implausible}, {at: 3, counts: [3]uint64{half + 2, 0, 0}}},
			[3]uint64{1, 0, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := NewHistogram(grid, layout)
			feed(t, &h, false, tc.steps)
			counts, _ := read(&h, 30)
			assert.Equal(t, tc.want, counts)
			last := tc.steps[len(tc.steps)-1].counts
			n, ok := h.Total()
			assert.True(t, ok)
			assert.Equal(t, last[0]+last[1]+last[2], n)
		})
	}
}

// TestRangeGrowsUnderCountsOfMoreThanHalfAWord: 2^40 observations in (1, 2] before,
// then buckets from 1/16 to 16.
func TestRangeGrowsUnderCountsOfMoreThanHalfAWord(t *testing.T) {
	const many = 1 << 40
	var (
		ls Layouts
		h  Histogram
	)
	observe := func(at float64, e Exponential, counts ...uint64) Outcome {
		outcome, _ := h.ObserveExponential(grid, &ls, e, &Sample{At: after(at), Counts: counts})
		return outcome
	}
	assert.Equal(t, First, observe(1, buckets(0, 0, 1, 0), 0, many, 0))
	assert.Equal(t, Accepted, observe(2, buckets(0, -20, 40, 0), spread(40, 0, 20, many+3, 0)...))
	e, _ := h.Layout().Exponential()
	counts := make([]uint64, e.Width())
	h.Read(grid, grid.Pane(after(30)), counts)
	assert.Equal(t, uint64(3), counts[1-e.First])
	assert.Equal(t, uint64(3), total(counts))
	n, _ := h.Total()
	assert.Equal(t, uint64(many+3), n)
}

// TestCountersHaveNoSum: whatever comes with a count.
func TestCountersHaveNoSum(t *testing.T) {
	h := NewHistogram(grid, Counter())
	assert.False(t, Counter().Bucketed())
	assert.True(t, Counter().Equal(nil))
	for i, outcome := range []Outcome{First, Accepted, Accepted} {
		sample := Sample{At: after(float64(1 + i)), Sum: math.NaN(), Counts: []uint64{uint64(10 * i)}}
		assert.Equal(t, outcome.String(), h.Observe(grid, &sample).String())
	}
	counts := []uint64{0}
	assert.Equal(t, Increase{SumKnown: true}, h.Read(grid, grid.Pane(after(30)), counts))
	assert.Equal(t, []uint64{20}, counts)
}
