// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// buckets are n buckets of seconds from index first up.
func buckets(scale, first, n int, zero float64) Exponential {
	return Exponential{Scale: scale, First: first, Buckets: n, ZeroThreshold: zero, Unit: 1}
}

func TestExponentialLayoutIsRoundedOut(t *testing.T) {
	var ls Layouts
	for name, tc := range map[string]struct{ given, want Exponential }{
		"to sixteens":                     {buckets(3, 5, 20, 0), buckets(3, 0, 32, 0)},
		"below one second, too":           {buckets(3, -17, 2, 0), buckets(3, -32, 32, 0)},
		"not if it is round":              {buckets(3, 16, 16, 0), buckets(3, 16, 16, 0)},
		"no buckets but zero":             {buckets(0, 77, 0, 1e-9), buckets(0, 0, 0, 1e-9)},
		"from a scale that is too fine":   {buckets(20, -8192, 4097, 0), buckets(8, -16, 16, 0)},
		"to a scale that is not too wide": {buckets(8, 0, 1025, 0), buckets(7, 0, 528, 0)},
		"as wide as may be":               {buckets(8, 1, 1023, 0), buckets(8, 0, 1024, 0)},
		"however wide":                    {buckets(20, math.MinInt32, 1<<32, 0), buckets(-2, -512, 1024, 0)},
		"however coarse":                  {buckets(-10, math.MinInt32, 1<<32, 0), buckets(-32, -512, 1024, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			l := ls.InternExponential(tc.given)
			got, ok := l.Exponential()
			assert.True(t, ok)
			assert.Equal(t, tc.want, got)
			assert.Equal(t, tc.want.Buckets+2, l.Width())
			assert.True(t, l.Bucketed())
			assert.Same(t, l, ls.InternExponential(tc.given))
			assert.False(t, l.Equal(nil), "not explicit")
		})
	}
}

func TestExponentialLayoutsAreForgottenPastTheLimit(t *testing.T) {
	var ls Layouts
	for i := range 3 * maxLayouts {
		ls.Common(ls.InternExponential(buckets(3, 16*i, 16, 0)), ls.InternExponential(buckets(2, 0, 16, 0)))
		assert.LessOrEqual(t, len(ls.exponential), maxLayouts)
		assert.LessOrEqual(t, len(ls.common), maxLayouts)
	}
}

func TestCommonExponentialLayout(t *testing.T) {
	for name, tc := range map[string]struct{ a, b, want Exponential }{
		"the union of ranges": {buckets(3, 0, 16, 0), buckets(3, 64, 16, 0), buckets(3, 0, 80, 0)},
		"the lower scale":     {buckets(3, -32, 64, 0), buckets(1, 0, 16, 0), buckets(1, -16, 32, 0)},
		"no buckets but zero": {buckets(3, 0, 16, 0), buckets(5, 0, 0, 0), buckets(3, 0, 16, 0)},
		"zero alone":          {buckets(3, 0, 0, 0), buckets(5, 0, 0, 1), buckets(3, 0, 0, 1)},
		"a scale at which the union is not too wide": {
			buckets(8, 0, 512, 0), buckets(8, 1024, 512, 0), buckets(7, 0, 768, 0),
		},
		"the larger zero bucket": {
			buckets(0, -16, 32, math.Ldexp(1, -128)), buckets(0, -16, 32, math.Ldexp(1, -10)), buckets(0, -16, 32, math.Ldexp(1, -10)),
		},
		"a zero bucket that ends inside of the other's bucket is larger": {
			buckets(0, -16, 32, 0), buckets(3, -112, 16, 0.0003), buckets(0, -16, 32, math.Ldexp(1, -11)),
		},
		"and not inside of its own": {
			buckets(0, -16, 32, 0.0003), buckets(0, -16, 32, 0.0003), buckets(0, -16, 32, 0.0003),
		},
		"a zero bucket below all others stays": {
			buckets(0, 0, 16, 0.0003), buckets(0, 0, 16, 0), buckets(0, 0, 16, 0.0003),
		},
	} {
		t.Run(name, func(t *testing.T) {
			var ls Layouts
			a, b := ls.InternExponential(tc.a), ls.InternExponential(tc.b)
			common, ok := ls.Common(a, b).Exponential()
			assert.True(t, ok)
			assert.Equal(t, tc.want, common)
			assert.Same(t, ls.Common(a, b), ls.Common(b, a))
		})
	}
}

// Buckets by rule and buckets by list are told apart even if a bound is equal,
// and so are bounds of different units.
func TestUnlikeLayoutsShareNoBound(t *testing.T) {
	var ls Layouts
	inMilliseconds := buckets(0, 0, 16, 0)
	inMilliseconds.Unit = 0.001
	exponential := ls.InternExponential(buckets(0, 0, 16, 0))
	for name, other := range map[string]*Layout{
		"explicit":      ls.Intern([]float64{1, 2, 4, 8}),
		"count and sum": ls.Intern(nil),
		"another unit":  ls.InternExponential(inMilliseconds),
	} {
		t.Run(name, func(t *testing.T) {
			common := ls.Common(exponential, other)
			assert.False(t, common.Bucketed())
			assert.Same(t, common, ls.Common(other, exponential))
			counts := make([]uint64, exponential.Width())
			counts[0], counts[3], counts[17] = 1, 2, 4
			total := make([]uint64, 1)
			common.Regroup(total, exponential, counts)
			assert.Equal(t, []uint64{7}, total)
		})
	}
	assert.NotZero(t, exponential.Compare(ls.Intern(nil)))
	assert.Zero(t, exponential.Compare(&Layout{exponential: buckets(0, 0, 16, 0)}))
}

// observation is a time between two bounds of the finest scale in use here, 8:
// the index of the bucket that it is in. zero is one below them all.
type observation int

const zero observation = math.MinInt

// bucket is where the observation is at a scale, with a zero bucket of the
// observations below the index upTo of scale 8.
func (o observation) bucket(scale int, upTo observation) observation {
	if o < upTo || o == zero {
		return zero
	}
	return observation(math.Floor(float64(o) / math.Pow(2, float64(8-scale))))
}

// tallied counts observations by bucket.
func tallied(all []observation, scale int, upTo observation) map[observation]uint64 {
	counts := make(map[observation]uint64)
	for _, o := range all {
		counts[o.bucket(scale, upTo)]++
	}
	return counts
}

// histogramOf is what an instrument of a scale makes of observations; its zero
// bucket ends at upTo, which is a bound of its buckets.
func histogramOf(all []observation, scale int, upTo observation) (Exponential, []uint64) {
	e := buckets(scale, 0, 0, 0)
	if upTo != zero {
		e.ZeroThreshold = math.Pow(2, float64(upTo)/256)
	}
	counts := tallied(all, scale, upTo)
	none := counts[zero]
	delete(counts, zero)
	if len(counts) > 0 {
		first, last := observation(math.MaxInt), observation(math.MinInt)
		for o := range counts {
			first, last = min(first, o), max(last, o)
		}
		e.First, e.Buckets = int(first), int(last-first)+1
	}
	flat := make([]uint64, e.Width())
	flat[0] = none
	for o, c := range counts {
		flat[1+int(o)-e.First] = c
	}
	return e, flat
}

// told is what counts on a layout say, by bucket.
func told(l *Layout, counts []uint64) map[observation]uint64 {
	e, _ := l.Exponential()
	all := make(map[observation]uint64)
	for i, c := range counts {
		if c > 0 && i == 0 {
			all[zero] += c
		} else if c > 0 {
			all[observation(e.First+i-1)] += c
		}
	}
	return all
}

// drawObservations draws times that buckets of the finest scale can hold.
func drawObservations(t *rapid.T, label string) []observation {
	near := observation(rapid.IntRange(-150, 150).Draw(t, label+" near"))
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) observation {
		if rapid.IntRange(0, 9).Draw(t, "zero") == 0 {
			return zero
		}
		return near + observation(rapid.IntRange(-300, 300).Draw(t, "offset"))
	}), 0, 30).Draw(t, label)
}

// drawZero draws where a zero bucket ends that fits a scale.
func drawZero(t *rapid.T, scale int) observation {
	if rapid.Bool().Draw(t, "no zero threshold") {
		return zero
	}
	width := 1 << (8 - scale)
	return observation(rapid.IntRange(-500/width, 500/width).Draw(t, "zero threshold") * width)
}

// On the common layout, two histograms add up to the one that had made all the
// observations with its buckets.
func TestCommonExponentialCountsAreThoseOfOneHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ls Layouts
		draw := func(label string) ([]observation, observation, *Layout, []uint64) {
			scale := rapid.IntRange(-2, 8).Draw(t, label+" scale")
			all, upTo := drawObservations(t, label), drawZero(t, scale)
			e, counts := histogramOf(all, scale, upTo)
			l := ls.InternExponential(e)
			own := make([]uint64, l.Width())
			l.Regroup(own, &Layout{exponential: e}, counts)
			return all, upTo, l, own
		}
		a, zeroA, layoutA, countsA := draw("a")
		b, zeroB, layoutB, countsB := draw("b")
		common := ls.Common(layoutA, layoutB)
		got := make([]uint64, common.Width())
		common.Regroup(got, layoutA, countsA)
		common.Regroup(got, layoutB, countsB)

		e, _ := common.Exponential()
		upTo := zero
		if e.ZeroThreshold > 0 {
			upTo = observation(math.Round(math.Log2(e.ZeroThreshold) * 256))
		}
		if upTo < max(zeroA, zeroB) || e.Scale > min(layoutA.exponential.Scale, layoutB.exponential.Scale) {
			t.Fatalf("%+v is no common layout of %+v and %+v", e, layoutA.exponential, layoutB.exponential)
		}
		assert.Equal(t, tallied(slices.Concat(a, b), e.Scale, upTo), told(common, got))
		assert.Equal(t, total(countsA)+total(countsB), total(got))
	})
}
