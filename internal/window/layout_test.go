// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestEqualBoundsShareOneLayout(t *testing.T) {
	var ls Layouts
	bounds := []float64{0.1, 0.5, 1}
	a := ls.Intern(bounds)
	bounds[0] = 0.2
	assert.Equal(t, []float64{0.1, 0.5, 1}, a.Bounds(), "bounds are copied")
	assert.Same(t, a, ls.Intern([]float64{0.1, 0.5, 1}))
	assert.NotSame(t, a, ls.Intern([]float64{0.1, 0.5}))
	assert.Equal(t, 4, a.Width())
	assert.True(t, a.Bucketed())
	assert.False(t, ls.Intern(nil).Bucketed())
	assert.Equal(t, 1, ls.Intern(nil).Width())
}

func TestLayoutsPastTheLimitAreNotShared(t *testing.T) {
	var ls Layouts
	for i := range maxLayouts {
		ls.Intern([]float64{float64(i)})
	}
	assert.Same(t, ls.shared[0], ls.Intern([]float64{0}))
	past := ls.Intern([]float64{-1})
	assert.Equal(t, []float64{-1}, past.Bounds())
	assert.NotSame(t, past, ls.Intern([]float64{-1}))
	assert.Len(t, ls.shared, maxLayouts)
}

func TestCommonLayout(t *testing.T) {
	var ls Layouts
	for name, tc := range map[string]struct{ a, b, want []float64 }{
		"equal":      {[]float64{1, 2}, []float64{1, 2}, []float64{1, 2}},
		"a subset":   {[]float64{1, 2, 4}, []float64{2}, []float64{2}},
		"interlaced": {[]float64{0.1, 0.3, 1}, []float64{0.2, 0.3, 1, 5}, []float64{0.3, 1}},
		"disjoint":   {[]float64{1}, []float64{2}, []float64{}},
		"no buckets": {[]float64{1}, nil, []float64{}},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := ls.Intern(tc.a), ls.Intern(tc.b)
			common := ls.Common(a, b)
			assert.Equal(t, tc.want, append([]float64{}, common.Bounds()...))
			assert.Same(t, common, ls.Common(a, b))
			assert.Same(t, common, ls.Common(b, a))
		})
	}
}

func TestRegroupAdds(t *testing.T) {
	from, to := &Layout{bounds: []float64{1, 2, 4, 8}}, &Layout{bounds: []float64{2, 4}}
	sum := []uint64{100, 100, 100}
	to.Regroup(sum, from, []uint64{1, 2, 3, 4, 5})
	assert.Equal(t, []uint64{103, 103, 109}, sum)
	to.Regroup(sum, to, []uint64{1, 1, 1})
	assert.Equal(t, []uint64{104, 104, 110}, sum)

	none := &Layout{}
	total := make([]uint64, 1)
	none.Regroup(total, from, []uint64{1, 2, 3, 4, 5})
	assert.Equal(t, []uint64{15}, total)
}

// On common bounds, both histograms still say how many observations lie at or
// below each bound that is left.
func TestRegroupKeepsTheCountsBelowEachCommonBound(t *testing.T) {
	below := func(bounds []float64, counts []uint64, bound float64) (n uint64) {
		for i, b := range bounds {
			if b <= bound {
				n += counts[i]
			}
		}
		return n
	}
	rapid.Check(t, func(t *rapid.T) {
		var ls Layouts
		draw := func(name string) (*Layout, []uint64) {
			distinct := rapid.SliceOfNDistinct(rapid.Float64Range(0.001, 4), 0, 8, rapid.ID[float64]).Draw(t, name)
			for _, b := range []float64{5, 6, 7} { // some to share
				if rapid.Bool().Draw(t, "shared") {
					distinct = append(distinct, b)
				}
			}
			slices.Sort(distinct)
			counts := rapid.SliceOfN(rapid.Uint64Range(0, 100), len(distinct)+1, len(distinct)+1).Draw(t, name+" counts")
			return ls.Intern(distinct), counts
		}
		a, countsA := draw("a")
		b, countsB := draw("b")
		common := ls.Common(a, b)
		got := make([]uint64, common.Width())
		common.Regroup(got, a, countsA)
		common.Regroup(got, b, countsB)
		for _, bound := range common.Bounds() {
			want := below(a.Bounds(), countsA, bound) + below(b.Bounds(), countsB, bound)
			if n := below(common.Bounds(), got, bound); n != want {
				t.Fatalf("%d observations up to %v, want %d", n, bound, want)
			}
		}
		if got, want := total(got), total(countsA)+total(countsB); got != want {
			t.Fatalf("%d observations in all, want %d", got, want)
		}
	})
}

func total(counts []uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}

func TestLayoutsMayBeSharedByGoroutines(t *testing.T) {
	var (
		ls    Layouts
		wg    sync.WaitGroup
		found [8]*Layout
	)
	for i := range found {
		wg.Go(func() { found[i] = ls.Common(ls.Intern([]float64{1, 2}), ls.Intern([]float64{2, 3})) })
	}
	wg.Wait()
	for _, l := range found {
		assert.Same(t, found[0], l)
	}
}
