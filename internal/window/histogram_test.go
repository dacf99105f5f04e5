// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// grid is the default geometry: windows of 5 min in panes of 30 s.
var grid = NewGrid(30*time.Second, 5*time.Minute, 5*time.Second)

// layout has buckets of at most 1 s, at most 2 s, and more.
var layout = &Layout{bounds: []float64{1, 2}}

// step is one sample of three buckets and what becomes of it.
type step struct {
	at      float64 // seconds after noon
	counts  [3]uint64
	sum     float64
	start   Instant
	outcome Outcome
}

// reading is what a window that ends at a pane's end holds.
type reading struct {
	end    float64 // seconds after noon
	counts [3]uint64
	sum    float64
}

func feed(t *testing.T, h *Histogram, delta bool, steps []step) {
	t.Helper()
	for _, s := range steps {
		sample := Sample{At: after(s.at), Start: s.start, Delta: delta, Sum: s.sum, Counts: s.counts[:]}
		assert.Equal(t, s.outcome.String(), h.Observe(grid, &sample).String(), "at %v s", s.at)
	}
}

func read(h *Histogram, end float64) (counts [3]uint64, increase Increase) {
	increase = h.Read(grid, grid.Pane(after(end)), counts[:])
	return counts, increase
}

func TestHistogramIncrease(t *testing.T) {
	minus := func(n uint64) uint64 { return -n }
	for name, tc := range map[string]struct {
		delta bool
		steps []step
		want  []reading
	}{
		"a first sample is a baseline": {
			steps: []step{{at: 10, counts: [3]uint64{5, 5, 5}, sum: 20, outcome: First}},
			want:  []reading{{30, [3]uint64{}, 0}},
		},
		"an increase belongs to the pane of its newer sample": {
			steps: []step{{at: 29, counts: [3]uint64{1, 0, 0}, sum: 1, outcome: First}, {at: 31, counts: [3]uint64{4, 1, 0}, sum: 5}},
			want:  []reading{{30, [3]uint64{}, 0}, {60, [3]uint64{3, 1, 0}, 4}},
		},
		"a pane's end is in the pane, a window's start is not in the window": {
			steps: []step{{at: -20, outcome: First}, {at: 0, counts: [3]uint64{1, 0, 0}, sum: 1}, {at: 30, counts: [3]uint64{3, 0, 0}, sum: 3}},
			want:  []reading{{30, [3]uint64{3, 0, 0}, 3}, {270, [3]uint64{3, 0, 0}, 3}, {300, [3]uint64{2, 0, 0}, 2}, {330, [3]uint64{}, 0}},
		},
		"a fall of one bucket is a reset of all": {
			steps: []step{{at: 1, counts: [3]uint64{10, 2, 0}, sum: 14, outcome: First}, {at: 16, counts: [3]uint64{12, 1, 3}, sum: 30, outcome: Reset}},
			want:  []reading{{30, [3]uint64{12, 1, 3}, 30}},
		},
		"two resets in a window are restarts": {
			steps: []step{
				{at: 1, counts: [3]uint64{9, 0, 0}, sum: 9, outcome: First},
				{at: 16, counts: [3]uint64{2, 0, 0}, sum: 2, outcome: Reset},
				{at: 31, counts: [3]uint64{1, 0, 0}, sum: 1, outcome: Reset},
			},
			want: []reading{{60, [3]uint64{3, 0, 0}, 3}},
		},
		"a gap of five minutes is bridged": {
			steps: []step{{at: 10, outcome: First}, {at: 310, counts: [3]uint64{7, 0, 0}, sum: 7}},
			want:  []reading{{330, [3]uint64{7, 0, 0}, 7}},
		},
		"a longer gap makes a new baseline": {
			steps: []step{
				{at: 10, outcome: First},
				{at: 310.000000001, counts: [3]uint64{7, 0, 0}, sum: 7, outcome: Gap},
				{at: 325, counts: [3]uint64{8, 1, 0}, sum: 10},
			},
			want: []reading{{330, [3]uint64{1, 1, 0}, 3}},
		},
		"a first sample counts if counting began in its window": {
			steps: []step{{at: 10, counts: [3]uint64{4, 0, 1}, sum: 9, start: after(-270) + 1}},
			want:  []reading{{30, [3]uint64{4, 0, 1}, 9}},
		},
		"not if counting began at the window's start": {
			steps: []step{{at: 10, counts: [3]uint64{4, 0, 1}, sum: 9, start: after(-270), outcome: First}},
			want:  []reading{{30, [3]uint64{}, 0}},
		},
		"nor at the sample itself, as receivers invent it": {
			steps: []step{{at: 10, counts: [3]uint64{4, 0, 1}, sum: 9, start: after(10), outcome: First}},
			want:  []reading{{30, [3]uint64{}, 0}},
		},
		"nor after it": {
			steps: []step{{at: 10, counts: [3]uint64{4, 0, 1}, sum: 9, start: after(11), outcome: First}},
			want:  []reading{{30, [3]uint64{}, 0}},
		},
		"a start that merely moves is not believed": {
			steps: []step{
				{at: 1, counts: [3]uint64{5, 0, 0}, sum: 5, start: after(-900), outcome: First},
				{at: 16, counts: [3]uint64{7, 0, 0}, sum: 7, start: after(2), outcome: StartMoved},
			},
			want: []reading{{30, [3]uint64{2, 0, 0}, 2}},
		},
		"duplicates and older samples contribute nothing and are no baseline": {
			steps: []step{
				{at: 5, counts: [3]uint64{1, 0, 0}, sum: 1, outcome: First},
				{at: 5, counts: [3]uint64{9, 9, 9}, sum: 50, outcome: Duplicate},
				{at: 20, counts: [3]uint64{3, 0, 0}, sum: 3},
				{at: 10, counts: [3]uint64{2, 0, 0}, sum: 2, outcome: OutOfOrder},
				{at: 28, counts: [3]uint64{4, 0, 0}, sum: 4},
			},
			want: []reading{{30, [3]uint64{3, 0, 0}, 3}},
		},
		"a bucket below zero spoils its sample alone": {
			steps: []step{
				{at: 5, counts: [3]uint64{1, 1, 0}, sum: 3, outcome: First},
				{at: 10, counts: [3]uint64{5, minus(2), 1}, sum: 9, outcome: BadBuckets},
				{at: 20, counts: [3]uint64{3, 2, 0}, sum: 7},
			},
			want: []reading{{30, [3]uint64{2, 1, 0}, 4}},
		},
		"differences count as they come": {
			delta: true,
			steps: []step{
				{at: 5, counts: [3]uint64{5, 0, 0}, sum: 5},
				{at: 20, counts: [3]uint64{2, 1, 0}, sum: 4},
				{at: 20, counts: [3]uint64{2, 1, 0}, sum: 4, outcome: Duplicate},
				{at: 330, counts: [3]uint64{0, 0, 3}, sum: 9},
			},
			want: []reading{{30, [3]uint64{7, 1, 0}, 9}, {330, [3]uint64{0, 0, 3}, 9}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := NewHistogram(grid, layout)
			read := func(want reading) {
				counts := [3]uint64{}
				increase := h.Read(grid, grid.Pane(after(want.end)), counts[:])
				assert.Equal(t, want.counts, counts, "window that ends at %v s", want.end)
				assert.Equal(t, Increase{Sum: want.sum, SumKnown: true}, increase, "window that ends at %v s", want.end)
			}
			steps := tc.steps
			for _, want := range tc.want {
				for len(steps) > 0 && steps[0].at <= want.end {
					feed(t, &h, tc.delta, steps[:1])
					steps = steps[1:]
				}
				read(want)
			}
			assert.Empty(t, steps, "every sample is followed by a window that holds it")
		})
	}
}

func TestSumThatCannotBeLeavesTheCounts(t *testing.T) {
	for name, tc := range map[string]struct {
		sum   float64
		after float64 // sum of the sample that follows
	}{
		"fell while the count rose": {1, 2},
		"is no number":              {math.NaN(), math.NaN()},
		"is infinite":               {math.Inf(1), math.Inf(1)},
	} {
		t.Run(name, func(t *testing.T) {
			h := NewHistogram(grid, layout)
			feed(t, &h, false, []step{
				{at: 5, counts: [3]uint64{3, 0, 0}, sum: 3, outcome: First},
				{at: 20, counts: [3]uint64{4, 1, 0}, sum: tc.sum, outcome: BadSum},
			})
			counts, increase := read(&h, 30)
			assert.Equal(t, [3]uint64{1, 1, 0}, counts)
			assert.False(t, increase.SumKnown)
			assert.False(t, increase.Unreliable)
		})
	}
}

func TestSumIsKnownAgainOnceTheBrokenPaneHasLeft(t *testing.T) {
	h := NewHistogram(grid, layout)
	feed(t, &h, false, []step{
		{at: 5, counts: [3]uint64{3, 0, 0}, sum: 30, outcome: First},
		{at: 20, counts: [3]uint64{4, 0, 0}, sum: 1, outcome: BadSum},
		{at: 35, counts: [3]uint64{5, 0, 0}, sum: 3},
	})
	_, increase := read(&h, 300)
	assert.False(t, increase.SumKnown)
	counts, increase := read(&h, 330)
	assert.Equal(t, [3]uint64{1, 0, 0}, counts)
	assert.Equal(t, Increase{Sum: 2, SumKnown: true}, increase)
}

func TestThirdResetOfAWindowMakesItUnreliable(t *testing.T) {
	// Two processes answer in turn under one name: 100 and 50, both growing.
	h := NewHistogram(grid, layout)
	feed(t, &h, false, []step{
		{at: 10, counts: [3]uint64{100, 0, 0}, sum: 100, outcome: First},
		{at: 25, counts: [3]uint64{50, 0, 0}, sum: 50, outcome: Reset},
		{at: 40, counts: [3]uint64{101, 0, 0}, sum: 101},
		{at: 55, counts: [3]uint64{51, 0, 0}, sum: 51, outcome: Reset},
		{at: 70, counts: [3]uint64{102, 0, 0}, sum: 102},
		{at: 85, counts: [3]uint64{52, 0, 0}, sum: 52, outcome: Reset},
	})
	_, increase := read(&h, 60)
	assert.False(t, increase.Unreliable, "two resets")
	counts, increase := read(&h, 90)
	assert.Equal(t, Increase{Unreliable: true}, increase)
	assert.Zero(t, counts, "an unreliable series adds nothing")
	_, increase = read(&h, 330)
	assert.False(t, increase.Unreliable, "the first of three has left the window")
}

func TestPaneCountsToTheLimitOf32Bits(t *testing.T) {
	h := NewHistogram(grid, layout)
	feed(t, &h, false, []step{
		{at: 1, outcome: First},
		{at: 5, counts: [3]uint64{math.MaxUint32, 0, 0}, sum: 5},
		{at: 10, counts: [3]uint64{math.MaxUint32 + 1, 1, 0}, sum: 6, outcome: Implausible},
		{at: 31, counts: [3]uint64{math.MaxUint32 + 2, 2, 0}, sum: 7},
	})
	counts, _ := read(&h, 30)
	assert.Equal(t, [3]uint64{math.MaxUint32, 0, 0}, counts)
	counts, _ = read(&h, 60)
	assert.Equal(t, [3]uint64{math.MaxUint32 + 1, 1, 0}, counts, "panes are added in 64 bits")
}

func TestHistogramOfCountAndSumAlone(t *testing.T) {
	h := NewHistogram(grid, &Layout{})
	for i, total := range []uint64{10, 14, 15} {
		h.Observe(grid, &Sample{At: after(float64(10*i + 1)), Sum: float64(total) / 2, Counts: []uint64{total}})
	}
	counts := make([]uint64, 1)
	assert.Equal(t, Increase{Sum: 2.5, SumKnown: true}, h.Read(grid, grid.Pane(after(30)), counts))
	assert.Equal(t, []uint64{5}, counts)
	total, ok := h.Total()
	assert.True(t, ok)
	assert.Equal(t, uint64(15), total)
	assert.Equal(t, after(21), h.At())
}

// Differences over times that overlap would count the common part twice: what
// was counted for the most part is left out. Clocks that are cut to milliseconds
// overlap by little.
func TestOverlappingDeltasCountOnce(t *testing.T) {
	h := NewHistogram(grid, &Layout{})
	delta := func(start, at float64) Outcome {
		return h.Observe(grid, &Sample{Start: after(start), At: after(at), Delta: true, Counts: []uint64{4}})
	}
	assert.Equal(t, Accepted, delta(0, 10))
	assert.Equal(t, OutOfOrder, delta(0, 12))
	assert.Equal(t, OutOfOrder, delta(4, 13))
	assert.Equal(t, Accepted, delta(9.999, 20))
	assert.Equal(t, Accepted, delta(25, 28), "a hole between two is none of our business")
	counts := make([]uint64, 1)
	h.Read(grid, grid.Pane(after(30)), counts)
	assert.Equal(t, []uint64{12}, counts)
	_, ok := h.Total()
	assert.False(t, ok, "there is no total of differences")
}
