// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"iter"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// record is a histogram series as a naive observer keeps it: every sample that
// ever arrived, from which the increase of any window follows by definition.
type record []Sample

// gained is the increase of (end-length, end] with panes of the given interval.
func (r record) gained(end Instant, interval, length time.Duration, width int) (counts []uint64, increase Increase) {
	counts, increase.SumKnown = make([]uint64, width), true
	resets, panes := 0, make(map[Instant]pane)
	for s, gain := range r.gains(interval, length) {
		if s.At <= end.Add(-length) || s.At > end {
			continue
		}
		in := pane{told: true} // whatever came before it in the pane
		for b, c := range gain.counts {
			counts[b] += c
			in.rose = in.rose || c > 0
		}
		panes[endOf(s.At, interval)] = in
		if gain.sum >= 0 && !math.IsInf(gain.sum, 1) {
			increase.Sum += gain.sum
		} else {
			increase.SumKnown = false
		}
		if gain.reset {
			resets++
		}
	}
	if resets >= 3 {
		return make([]uint64, width), Increase{Unreliable: true}
	}
	for at := end; at > end.Add(-length) && !panes[at].rose; at = at.Add(-interval) {
		if panes[at].told {
			increase.Stalled++
		}
	}
	return counts, increase
}

// pane is what came last in one pane: a sample that could be counted, and whether
// it was an increase.
type pane struct{ told, rose bool }

// endOf is where the pane of a time ends: at the next multiple of the interval.
func endOf(at Instant, interval time.Duration) Instant {
	return (at + Instant(interval) - 1) / Instant(interval) * Instant(interval)
}

// newest is the increase of the newest part of a window, unreliable or not.
func (r record) newest(end Instant, interval, length, part time.Duration, width int) []uint64 {
	counts := make([]uint64, width)
	for s, gain := range r.gains(interval, length) {
		if s.At <= end.Add(-min(part, length)) || s.At > end {
			continue
		}
		for b, c := range gain.counts {
			counts[b] += c
		}
	}
	return counts
}

// gain is what one sample gained over the one before.
type gain struct {
	counts []uint64
	sum    float64
	reset  bool
}

// gains are the samples that could be counted, each with what it gained.
func (r record) gains(interval, length time.Duration) iter.Seq2[*Sample, gain] {
	return func(yield func(*Sample, gain) bool) {
		var before *Sample
		for i := range r {
			s := &r[i]
			if before != nil && s.At <= before.At || slices.ContainsFunc(s.Counts, negative) {
				continue
			}
			counts, sum, reset := s.since(before, interval, length)
			before = s
			if counts != nil && !yield(s, gain{counts, sum, reset}) {
				return
			}
		}
	}
}

// negative tells whether a count is a falling cumulative bucket, 2^64 - n.
func negative(c uint64) bool { return int64(c) < 0 }

// since is what one sample gained over the one before; nil if nobody knows.
func (s *Sample) since(before *Sample, interval, length time.Duration) (gain []uint64, sum float64, reset bool) {
	switch {
	case s.Delta:
		return s.Counts, s.Sum, false
	case before == nil:
		if s.Start > endOf(s.At, interval).Add(-length) && s.Start < s.At {
			return s.Counts, s.Sum, false
		}
		return nil, 0, false
	case s.At.Sub(before.At) > 5*time.Minute:
		return nil, 0, false
	}
	gain = make([]uint64, len(s.Counts))
	for b, c := range s.Counts {
		if c < before.Counts[b] {
			return s.Counts, s.Sum, true
		}
		gain[b] = c - before.Counts[b]
	}
	return gain, s.Sum - before.Sum, false
}

// process is a serving process whose histogram is drawn sample by sample.
type process struct {
	at, start Instant
	sum       float64
	counts    []uint64
}

// draw lets time pass and requests end, and returns what a scrape sees: mostly
// the truth, now and then what real pages have shown instead.
func (p *process) draw(t *rapid.T, delta bool) Sample {
	former := p.at
	p.at += Instant(rapid.OneOf(
		rapid.Int64Range(1, int64(40*time.Second)),
		rapid.SampledFrom([]int64{int64(10 * time.Second), int64(30 * time.Second), int64(5 * time.Minute), int64(5*time.Minute) + 1, int64(7 * time.Minute)}),
	).Draw(t, "pause"))
	fate := rapid.IntRange(0, 15).Draw(t, "fate")
	if fate == 0 || delta {
		clear(p.counts)
		p.sum = 0
	}
	if fate == 0 || fate == 1 {
		p.start = p.at.Add(-time.Duration(rapid.Int64Range(0, int64(10*time.Minute)).Draw(t, "age")))
	}
	for b := range p.counts {
		n := rapid.Uint64Range(0, 5).Draw(t, "requests")
		p.counts[b] += n
		p.sum += float64(n) * float64(b+1) // whole numbers add up exactly
	}
	if delta {
		p.start = former
	}
	s := Sample{At: p.at, Start: p.start, Delta: delta, Sum: p.sum, Counts: slices.Clone(p.counts)}
	switch fate {
	case 2:
		s.At -= Instant(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "lag"))
	case 3:
		s.Counts[rapid.IntRange(0, len(s.Counts)-1).Draw(t, "bucket")] = -rapid.Uint64Range(1, 1000).Draw(t, "fall")
	case 4:
		s.Sum = rapid.SampledFrom([]float64{-1, math.NaN(), math.Inf(1), math.Inf(-1), 0}).Draw(t, "sum")
	}
	return s
}

func TestHistogramIsItsSamples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGrid(t)
		width := rapid.IntRange(1, 4).Draw(t, "buckets")
		h := NewHistogram(g, &Layout{bounds: make([]float64, width-1)})
		p := process{at: noon, start: noon.Add(-time.Minute), counts: make([]uint64, width)}
		delta := rapid.IntRange(0, 4).Draw(t, "temporality") == 0
		var all record
		for range rapid.IntRange(1, 40).Draw(t, "samples") {
			s := p.draw(t, delta)
			h.Observe(g, &s)
			all = append(all, s)

			newest := g.Pane(max(h.At(), noon))
			for k := newest - g.ahead; k <= newest+g.panes; k++ {
				want, wantRest := all.gained(g.End(k), g.Interval(), g.Length(), width)
				got := make([]uint64, width)
				gotRest := h.Read(g, k, got)
				if !wantRest.SumKnown {
					wantRest.Sum, gotRest.Sum = 0, 0
				}
				if !slices.Equal(got, want) || gotRest != wantRest {
					t.Fatalf("window %v that ends at %v:\n got %v %+v\nwant %v %+v\nafter %+v",
						g.Length(), time.Duration(g.End(k)-noon), got, gotRest, want, wantRest, all)
				}
				part := rapid.Int64Range(1, g.panes+1).Draw(t, "newest panes")
				newest := make([]uint64, width)
				h.ReadNewest(g, k, part, newest)
				if want := all.newest(g.End(k), g.Interval(), g.Length(), time.Duration(part)*g.Interval(), width); !slices.Equal(newest, want) {
					t.Fatalf("newest %d panes of those that end at %v:\n got %v\nwant %v\nafter %+v",
						part, time.Duration(g.End(k)-noon), newest, want, all)
				}
			}
		}
	})
}

// A window is the sum of its panes, each taken for a window of its own.
func TestHistogramWindowIsItsPanes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := drawGrid(t)
		part := NewGrid(whole.Interval(), whole.Interval(), 0)
		l := &Layout{bounds: []float64{1, 2}}
		one, many := NewHistogram(whole, l), NewHistogram(part, l)
		p := process{at: noon, counts: make([]uint64, l.Width())}
		gained := map[int64][]uint64{}
		for range rapid.IntRange(1, 40).Draw(t, "samples") {
			s := p.draw(t, false)
			s.Start = 0 // whether a first sample counts depends on the window
			one.Observe(whole, &s)
			many.Observe(part, &s)

			newest := part.Pane(max(many.At(), noon))
			gained[newest] = make([]uint64, l.Width())
			if many.Read(part, newest, gained[newest]).Unreliable {
				return
			}
			want, got := make([]uint64, l.Width()), make([]uint64, l.Width())
			for k := newest - whole.panes + 1; k <= newest; k++ {
				for b, c := range gained[k] {
					want[b] += c
				}
			}
			if !one.Read(whole, newest, got).Unreliable && !slices.Equal(got, want) {
				t.Fatalf("window of %d panes: got %v, its panes hold %v", whole.panes, got, want)
			}
		}
	})
}
