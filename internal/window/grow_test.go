// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// exponentialStep is one sample with exponential buckets and what becomes of it.
type exponentialStep struct {
	e       Exponential
	counts  []uint64
	outcome Outcome
	renewed bool
}

// Buckets of scale 0 are (1, 2], (2, 4], (4, 8], …
func TestExponentialResets(t *testing.T) {
	milli := math.Ldexp(1, -10)
	before := exponentialStep{e: buckets(0, 0, 3, milli), counts: []uint64{4, 3, 2, 1, 1}, outcome: First}
	for name, tc := range map[string]struct {
		then exponentialStep
		gain uint64
	}{
		"nothing new":                        {exponentialStep{e: before.e, counts: before.counts}, 0},
		"growth":                             {exponentialStep{e: before.e, counts: []uint64{5, 3, 3, 1, 1}}, 2},
		"a bucket fell":                      {exponentialStep{e: before.e, counts: []uint64{4, 3, 1, 5, 1}, outcome: Reset}, 14},
		"the count fell":                     {exponentialStep{e: before.e, counts: []uint64{0, 1, 0, 0, 0}, outcome: Reset}, 1},
		"the zero count fell":                {exponentialStep{e: before.e, counts: []uint64{3, 3, 2, 9, 1}, outcome: Reset}, 18},
		"those that are no number fell":      {exponentialStep{e: before.e, counts: []uint64{4, 3, 2, 9, 0}, outcome: Reset}, 18},
		"a bucket vanished":                  {exponentialStep{e: buckets(0, 1, 2, milli), counts: []uint64{9, 9, 9, 9}, outcome: Reset}, 36},
		"the range grew":                     {exponentialStep{e: buckets(0, -40, 200, milli), counts: spread(200, 4, 40, 3, 2, 1, 7, 1)}, 7},
		"the scale fell":                     {exponentialStep{e: buckets(-1, 0, 2, milli), counts: []uint64{4, 5, 2, 1}}, 1},
		"the scale fell, and a bucket":       {exponentialStep{e: buckets(-1, 0, 2, milli), counts: []uint64{9, 4, 9, 9}, outcome: Reset}, 31},
		"the scale rose":                     {exponentialStep{e: buckets(1, 0, 6, milli), counts: []uint64{9, 9, 9, 9, 9, 9, 9, 9}, outcome: Reset, renewed: true}, 72},
		"the zero threshold fell":            {exponentialStep{e: buckets(0, 0, 3, milli/2), counts: []uint64{9, 9, 9, 9, 9}, outcome: Reset, renewed: true}, 45},
		"the zero threshold rose to a bound": {exponentialStep{e: buckets(0, 1, 2, 2), counts: []uint64{8, 2, 1, 1}}, 1},
		"the zero threshold rose to a bound, and its count fell": {exponentialStep{e: buckets(0, 1, 2, 2), counts: []uint64{6, 2, 1, 1}, outcome: Reset}, 10},
		"the zero threshold rose into an empty bucket":           {exponentialStep{e: buckets(0, 0, 3, 0.75), counts: []uint64{5, 3, 2, 1, 1}}, 1},
		"the zero threshold rose into a bucket":                  {exponentialStep{e: buckets(0, 0, 3, 1.5), counts: []uint64{9, 9, 9, 9, 9}, outcome: Reset, renewed: true}, 45},
		"more than can be counted":                               {exponentialStep{e: buckets(1, 0, 2, 0), counts: []uint64{0, 1 << 61, 1 << 62, 0}, outcome: BadBuckets}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var (
				ls Layouts
				h  Histogram
			)
			var gained uint64
			for i, s := range []exponentialStep{before, tc.then} {
				outcome, former := h.ObserveExponential(grid, &ls, s.e, &Sample{At: after(float64(5 + 15*i)), Sum: 1, Counts: s.counts})
				assert.Equal(t, s.outcome.String(), outcome.String())
				assert.Equal(t, s.renewed, former != nil)
			}
			counts := make([]uint64, h.Layout().Width())
			increase := h.Read(grid, grid.Pane(after(20)), counts)
			gained = total(counts)
			assert.Equal(t, tc.gain, gained)
			assert.True(t, increase.SumKnown)
		})
	}
}

// spread is the counts of n buckets: zero, then some from the given one on, and
// one that is no number.
func spread(n int, zero uint64, at int, counts ...uint64) []uint64 {
	flat := make([]uint64, n+2)
	flat[0] = zero
	last := len(counts) - 1
	copy(flat[1+at:], counts[:last])
	flat[n+1] = counts[last]
	return flat
}

// A sender may keep a scale at which the range is too wide to be kept. That the
// series has a lower one is no reset.
func TestRangeTooWideForItsScaleIsNoReset(t *testing.T) {
	var (
		ls Layouts
		h  Histogram
	)
	wide := buckets(8, -4000, 8000, 0)
	counts := make([]uint64, wide.Width())
	for i := range 4 {
		counts[1], counts[8000] = uint64(i+1), uint64(2*i+1)
		outcome, former := h.ObserveExponential(grid, &ls, wide, &Sample{At: after(float64(15 * i)), Counts: counts})
		assert.Contains(t, []Outcome{First, Accepted}, outcome)
		assert.Nil(t, former)
	}
	narrow := buckets(8, 3999, 1, 0)
	outcome, _ := h.ObserveExponential(grid, &ls, narrow, &Sample{At: after(60), Counts: []uint64{0, 5, 0}})
	assert.Equal(t, Reset, outcome, "the lowest bucket is empty again")
	got := make([]uint64, h.Layout().Width())
	h.Read(grid, grid.Pane(after(60)), got)
	assert.Equal(t, uint64(3+6+5), total(got))
	assert.LessOrEqual(t, len(got), maxBuckets+2)
}

// Differences may come with any scale and zero bucket: each collection chooses
// its own.
func TestExponentialDifferencesNeverReset(t *testing.T) {
	var (
		ls Layouts
		h  Histogram
	)
	for i, e := range []Exponential{buckets(5, 0, 1, 0.5), buckets(2, 9, 1, 0), buckets(8, 700, 1, 0), buckets(0, 3, 1, 0.25)} {
		outcome, former := h.ObserveExponential(grid, &ls, e, &Sample{At: after(float64(1 + i)), Delta: true, Counts: []uint64{1, 2, 0}})
		assert.Equal(t, Accepted, outcome)
		assert.Nil(t, former)
	}
	counts := make([]uint64, h.Layout().Width())
	h.Read(grid, grid.Pane(after(30)), counts)
	assert.Equal(t, uint64(12), total(counts))
}

func TestThirdExponentialResetIsUnreliableWhateverTheBuckets(t *testing.T) {
	// Two processes of different scales answer in turn under one name.
	var (
		ls Layouts
		h  Histogram
	)
	for i := range 6 {
		h.ObserveExponential(grid, &ls, buckets(3-2*(i%2), 0, 1, 0), &Sample{At: after(float64(10 * i)), Counts: []uint64{0, uint64(100 - 90*(i%2) + i), 0}})
	}
	counts := make([]uint64, h.Layout().Width())
	assert.True(t, h.Read(grid, grid.Pane(after(50)), counts).Unreliable)
	assert.Zero(t, total(counts))
}

func TestCountsThatNoLongerFitStayAtTheirLimit(t *testing.T) {
	var (
		ls Layouts
		h  Histogram
	)
	fine, coarse := buckets(1, 0, 2, 0), buckets(0, 0, 1, 0)
	observe := func(at float64, e Exponential, counts ...uint64) Outcome {
		outcome, _ := h.ObserveExponential(grid, &ls, e, &Sample{At: after(at), Counts: counts})
		return outcome
	}
	assert.Equal(t, First, observe(1, fine, 0, 0, 0, 0))
	assert.Equal(t, Accepted, observe(2, fine, 0, math.MaxUint32, math.MaxUint32, 0))
	assert.Equal(t, Accepted, observe(31, coarse, 0, 2*math.MaxUint32+1, 0))
	counts := make([]uint64, h.Layout().Width())
	h.Read(grid, grid.Pane(after(60)), counts)
	assert.Equal(t, uint64(math.MaxUint32)+1, total(counts))
}

// instrument is a process that observes times, and what it shows of them.
type instrument struct {
	scale int
	zero  observation
	all   []observation
}

// draw lets the instrument observe, or give way to a new one. As it lives, its
// buckets grow.
func (x *instrument) draw(t *rapid.T) {
	switch rapid.IntRange(0, 9).Draw(t, "fate") {
	case 0:
		*x = instrument{scale: rapid.IntRange(-2, 8).Draw(t, "scale"), zero: zero}
		x.zero = drawZero(t, x.scale)
	case 1:
		x.scale = rapid.IntRange(-2, x.scale).Draw(t, "lower scale")
		if x.zero != zero { // to a bound of the wider buckets
			x.zero = observation(math.Ceil(math.Ldexp(float64(x.zero), x.scale-8)) * math.Ldexp(1, 8-x.scale))
		}
	case 2:
		x.zero = max(x.zero, drawZero(t, x.scale))
	}
	x.all = append(x.all, drawObservations(t, "observations")...)
}

// page is what a naive observer keeps of one sample.
type page struct {
	instrument
	at Instant
}

// since is what a sample gained over the one before, by the buckets of the
// sample, and whether it is of another process.
func (p page) since(before page) (gain map[observation]uint64, reset bool) {
	now, then := tallied(p.all, p.scale, p.zero), tallied(before.all, p.scale, p.zero)
	if p.scale > before.scale || p.zero < before.zero {
		return now, true
	}
	gain = make(map[observation]uint64)
	for o, c := range then {
		if now[o] < c {
			return now, true
		}
	}
	for o, c := range now {
		gain[o] = c - then[o]
	}
	return gain, false
}

// coarse adds counts by buckets of a scale to the buckets of a lower one.
func coarse(to, counts map[observation]uint64, from, scale int, upTo observation) {
	width := observation(math.Ldexp(1, 8-from))
	for o, c := range counts {
		if o != zero {
			o = (o * width).bucket(scale, upTo)
		}
		to[o] += c
	}
}

func TestExponentialHistogramIsItsSamples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			ls      Layouts
			h       Histogram
			formers []*Histogram
			pages   []page
			now     instrument
			g       = drawGrid(t)
		)
		now.zero = zero
		for at := noon; len(pages) < 12; at += Instant(rapid.Int64Range(1, int64(40*time.Second)).Draw(t, "pause")) {
			now.draw(t)
			pages = append(pages, page{instrument{now.scale, now.zero, slices.Clone(now.all)}, at})
			e, counts := histogramOf(now.all, now.scale, now.zero)
			_, former := h.ObserveExponential(g, &ls, e, &Sample{At: at, Counts: counts})
			if former != nil {
				formers = append(formers, former)
			}

			k := g.Pane(at)
			lowest, highest := now.scale, now.zero
			want, got := make(map[observation]uint64), make(map[observation]uint64)
			for _, p := range pages {
				lowest, highest = min(lowest, p.scale), max(highest, p.zero)
			}
			if highest != zero {
				highest = observation(math.Ceil(math.Ldexp(float64(highest), lowest-8)) * math.Ldexp(1, 8-lowest))
			}
			resets := 0
			for i, p := range pages[1:] {
				if pane := g.Pane(p.at); pane <= k-g.panes || pane > k {
					continue
				}
				gain, reset := p.since(pages[i])
				coarse(want, gain, p.scale, lowest, highest)
				if reset {
					resets++
				}
			}
			for _, part := range append(slices.Clone(formers), &h) {
				in := make([]uint64, part.Layout().Width())
				unreliable := part.Read(g, k, in).Unreliable
				if part == &h && unreliable != (resets >= 3) {
					t.Fatalf("unreliable is %v after %d resets in the window", unreliable, resets)
				}
				coarse(got, told(part.Layout(), in), part.Layout().exponential.Scale, lowest, highest)
			}
			if resets < 3 {
				assert.Equal(t, filled(want), filled(got))
			}
		}
	})
}

// filled leaves out what is not there.
func filled(counts map[observation]uint64) map[observation]uint64 {
	kept := make(map[observation]uint64)
	for o, c := range counts {
		if c > 0 {
			kept[o] = c
		}
	}
	return kept
}

// FuzzExponential feeds buckets that no sender has.
func FuzzExponential(f *testing.F) {
	f.Add(int8(3), int32(-20), uint16(30), 0.0, uint64(7), int8(3), int32(5), uint16(3), 0.0, uint64(8))
	f.Add(int8(20), int32(math.MinInt32), uint16(1), 1e-300, uint64(1), int8(20), int32(math.MaxInt32), uint16(1), 1e300, uint64(1))
	f.Add(int8(-10), int32(math.MaxInt32), uint16(2), 5e-324, uint64(math.MaxUint64), int8(-10), int32(math.MinInt32), uint16(160), math.MaxFloat64, uint64(1))
	f.Fuzz(func(t *testing.T, scaleA int8, firstA int32, widthA uint16, zeroA float64, countA uint64,
		scaleB int8, firstB int32, widthB uint16, zeroB float64, countB uint64,
	) {
		var (
			ls Layouts
			h  Histogram
		)
		for i, s := range []struct {
			scale int8
			first int32
			width uint16
			zero  float64
			count uint64
		}{{scaleA, firstA, widthA, zeroA, countA}, {scaleB, firstB, widthB, zeroB, countB}, {scaleA, firstA, widthA, zeroA, countA}} {
			if !(s.zero >= 0) || math.IsInf(s.zero, 1) {
				return
			}
			e := buckets(int(s.scale%21), int(s.first), int(s.width), s.zero)
			counts := make([]uint64, e.Width())
			counts[0], counts[e.Width()-1] = s.count, s.count
			counts[e.Width()/2]++
			outcome, _ := h.ObserveExponential(grid, &ls, e, &Sample{At: after(float64(1 + 10*i)), Counts: counts})
			if outcome == BadBuckets {
				return
			}
			if n, ok := h.Total(); !ok || n != total(counts) {
				t.Fatalf("%d counted of %d", n, total(counts))
			}
			if width := h.Layout().Width(); width > maxBuckets+2 {
				t.Fatalf("%d buckets", width)
			}
		}
	})
}
