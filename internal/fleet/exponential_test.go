// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/window"
)

// exponential is a page that shows counts of buckets of a scale, from the index
// 0 up, and of their zero bucket and of no bucket none.
func (s *scrape) exponential(at window.Instant, scale int, counts ...uint64) {
	s.page(at, func(t *Target) error {
		series, err := s.series(t, TTFT)
		if err == nil {
			series.Touch(at)
			e := window.Exponential{Scale: scale, Buckets: len(counts), Unit: 1}
			all := append(append([]uint64{0}, counts...), 0)
			series.ObserveExponential(e, &window.Sample{At: at, Counts: all})
		}
		return err
	})
}

// A process gives way to one with finer buckets: what both did in the window
// counts, on the coarser buckets; and once the former's has left the window, on
// the finer ones.
func TestFinerBucketsBeginANewSeries(t *testing.T) {
	tl := newTimeline()
	s := tl.scrape(1, "a")
	var told []Distribution
	for i := range 30 {
		n := uint64(i)
		if n < 7 {
			s.exponential(after(3+15*i), 1, n, n)
		} else {
			s.exponential(after(3+15*i), 2, 0, n, n, n)
		}
		if i%2 == 1 { // at 18 s, 48 s, …
			tl.registry.Close(after(30+15*(i-1)), Ask{Signals: []Signal{TTFT}}, func(f *Frame) { told = append(told, f.Members[0].Told[0]) })
		}
	}
	var scales []int
	for _, d := range told {
		e, ok := d.Layout.Exponential()
		require.True(t, ok)
		scales = append(scales, e.Scale)
	}
	// At 120 s: 6 in each of two buckets of the former, and 7 at once in each of three finer ones.
	assert.Equal(t, []uint64{0, 6 + 7, 6 + 7 + 7}, told[3].Counts[:3])
	// At 150 s: two more in each.
	assert.Equal(t, []uint64{0, 6 + 9, 6 + 9 + 9}, told[4].Counts[:3])
	assert.IsNonDecreasing(t, scales)
	assert.Equal(t, 1, scales[3])
	assert.Equal(t, 2, scales[len(scales)-1])
}

func TestFormerExponentialBucketsAreKeptToALimit(t *testing.T) {
	tl := newTimeline()
	tl.scrape(1, "a").exponential(after(3), 0, 1)
	target, err := tl.registry.Acquire(1, false)
	require.NoError(t, err)
	defer target.Unlock()
	for _, s := range target.series.all() {
		for i := range 3 * maxFormer {
			e := window.Exponential{Scale: 1 + i%2*3 - i, Buckets: 1, Unit: 1} // up and down
			s.ObserveExponential(e, &window.Sample{At: after(10 + i), Counts: []uint64{0, 1, 0}})
			former := 0
			for f := s.former(); f != nil; f = f.next {
				former++
			}
			assert.LessOrEqual(t, former, maxFormer)
		}
		assert.NotNil(t, s.former())
	}
}
