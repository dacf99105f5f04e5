// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// maxAge is how long a gauge's sample is its value where a test does not say.
const maxAge = 45 * time.Second

// gaugeOf is a gauge that was told values at seconds after noon; NaN suspends
// it.
func gaugeOf(g Grid, told ...[2]float64) *Gauge {
	x := NewGauge(g)
	for _, s := range told {
		if math.IsNaN(s[1]) {
			x.Suspend(g, after(s[0]))
		} else {
			x.Observe(g, after(s[0]), s[1])
		}
	}
	return &x
}

func TestGaugeLevel(t *testing.T) {
	unknown := math.NaN()
	for name, tc := range map[string]struct {
		told   [][2]float64
		end    float64
		maxAge time.Duration
		want   Level
	}{
		"a sample holds until the next": {
			told: [][2]float64{{10, 4}, {25, 1}}, end: 30,
			want: Level{Integral: 15*4 + 5*1, Known: 20, Now: 1, NowKnown: true, LastAt: after(25), Busy: 1},
		},
		"the mean is over time, not over samples": {
			told: [][2]float64{{0, 10}, {28, 0}, {29, 0}, {30, 0}}, end: 30,
			want: Level{Integral: 280, Known: 30, Now: 0, NowKnown: true, LastAt: after(30)},
		},
		"the value at the end is the last sample at or before it": {
			told: [][2]float64{{10, 4}, {30, 6}, {34, 9}}, end: 30,
			want: Level{Integral: 80, Known: 20, Now: 6, NowKnown: true, LastAt: after(30), Busy: 1},
		},
		"later samples do not change it": {
			told: [][2]float64{{10, 4}, {32, 6}, {38, 9}}, end: 30,
			want: Level{Integral: 80, Known: 20, Now: 4, NowKnown: true, LastAt: after(10), Busy: 1},
		},
		"only the window counts": {
			told: [][2]float64{{-295, 7}, {-265, 2}}, end: 30, maxAge: 5 * time.Minute,
			want: Level{Integral: 5*7 + 295*2, Known: 300, Now: 2, NowKnown: true, LastAt: after(-265), Busy: 1},
		},
		"a suspended value is unknown": {
			told: [][2]float64{{10, 4}, {20, unknown}}, end: 30,
			want: Level{Integral: 40, Known: 10, LastAt: after(20)},
		},
		"until it is told again": {
			told: [][2]float64{{10, 4}, {20, unknown}, {25, unknown}, {28, 3}}, end: 30,
			want: Level{Integral: 46, Known: 12, Now: 3, NowKnown: true, LastAt: after(28), Busy: 1},
		},
		"a suspension after the end leaves the end alone": {
			told: [][2]float64{{10, 4}, {33, unknown}}, end: 30,
			want: Level{Integral: 80, Known: 20, Now: 4, NowKnown: true, LastAt: after(10), Busy: 1},
		},
		"a sample just young enough": {
			told: [][2]float64{{10, 4}}, end: 30, maxAge: 20*time.Second + 1,
			want: Level{Integral: 80, Known: 20, Now: 4, NowKnown: true, LastAt: after(10), Busy: 1},
		},
		"a sample just too old, as in PromQL's left-open lookback": {
			told: [][2]float64{{10, 4}}, end: 30, maxAge: 20 * time.Second,
			want: Level{Integral: 80, Known: 20, Now: 4, LastAt: after(10), Busy: 1},
		},
		"a sample holds for no longer than its age allows": {
			told: [][2]float64{{10, 4}}, end: 120,
			want: Level{Integral: 4 * 45, Known: 45, Now: 4, LastAt: after(10), Busy: 1},
		},
		"and over a gap for five minutes": {
			told: [][2]float64{{-400, 4}, {20, 1}}, end: 30,
			// The window begins at -270 s; the first sample holds until -100 s.
			want: Level{Integral: 170*4 + 10, Known: 180, Now: 1, NowKnown: true, LastAt: after(20), Busy: 1},
		},
		"busy since a pane that ended at zero": {
			told: [][2]float64{{-20, 0}, {10, 4}, {20, 0}, {25, 3}, {40, 2}}, end: 60,
			want: Level{Integral: 40 + 15*3 + 20*2, Known: 80, Now: 2, NowKnown: true, LastAt: after(40), Busy: 2},
		},
		"nothing told": {end: 30},
	} {
		t.Run(name, func(t *testing.T) {
			age := tc.maxAge
			if age == 0 {
				age = maxAge
			}
			assert.Equal(t, tc.want, gaugeOf(grid, tc.told...).Read(grid, grid.Pane(after(tc.end)), age))
		})
	}
}

// A slow scrape may leave no sample in a short window; the value is still the
// last sample's, also when the next one has already come.
func TestGaugeValueMayBeOlderThanTheWindow(t *testing.T) {
	for _, lateness := range []time.Duration{5 * time.Second, 30 * time.Second, 60 * time.Second} {
		g := NewGrid(30*time.Second, time.Minute, lateness)
		for _, last := range []float64{-30, -10} {
			want := Level{Integral: 240, Known: 60, Now: 4, NowKnown: true, LastAt: after(last)}
			k := g.Pane(after(60))
			assert.Equal(t, want, gaugeOf(g, [2]float64{last, 4}).Read(g, k, 5*time.Minute), "lateness %v", lateness)
			assert.Equal(t, want, gaugeOf(g, [2]float64{last, 4}, [2]float64{64, 9}).Read(g, k, 5*time.Minute), "lateness %v", lateness)
		}
	}
}

func TestGaugeOutcomes(t *testing.T) {
	x := NewGauge(grid)
	for _, s := range []struct {
		at   float64
		want Outcome
	}{{10, Accepted}, {10, Duplicate}, {9, OutOfOrder}, {11, Accepted}} {
		assert.Equal(t, s.want, x.Observe(grid, after(s.at), s.at), "at %v s", s.at)
	}
	assert.Equal(t, after(11), x.At())
	level := x.Read(grid, grid.Pane(after(30)), maxAge)
	assert.InDelta(t, 10*1+11*19, level.Integral, 1e-9, "what was refused has no part in it")
}

// steps is a gauge as a step function: every sample, in order. NaN: unknown
// from there on.
type steps []struct {
	at    Instant
	value float64
}

// level integrates the step function over (end-length, end]. A sample holds
// until the next, over a gap for five minutes, as the last one for maxAge.
func (s steps) level(end Instant, length, maxAge time.Duration) (level Level) {
	for i, step := range s {
		if step.at > end {
			break
		}
		until := min(end, step.at.Add(maxAge))
		if i+1 < len(s) {
			until = min(end, s[i+1].at, step.at.Add(5*time.Minute))
		}
		held := until.Sub(max(step.at, end.Add(-length)))
		known := !math.IsNaN(step.value)
		if known && held > 0 {
			level.Known += held.Seconds()
			level.Integral += step.value * held.Seconds()
		}
		level.Now, level.NowKnown = 0, known && end.Sub(step.at) < maxAge
		if known {
			level.Now = step.value
		}
	}
	return level
}

// busy counts the panes of (end-length, end], from the newest on, that end above
// zero, until one does not. A pane without a step is passed over.
func (s steps) busy(end Instant, interval, length time.Duration) (n int) {
	for from := end.Add(-interval); from >= end.Add(-length); from = from.Add(-interval) {
		value, stepped := 0.0, false
		for _, step := range s {
			if step.at > from && step.at <= from.Add(interval) {
				value, stepped = step.value, true
			}
		}
		switch {
		case stepped && value > 0:
			n++
		case stepped:
			return n
		}
	}
	return n
}

func TestGaugeIsAStepFunction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGrid(t)
		x := NewGauge(g)
		var all steps
		at, value := noon, math.NaN()
		for range rapid.IntRange(1, 40).Draw(t, "samples") {
			at += Instant(rapid.OneOf(
				rapid.Int64Range(1, int64(40*time.Second)),
				rapid.SampledFrom([]int64{int64(10 * time.Second), int64(5 * time.Minute), int64(7 * time.Minute)}),
			).Draw(t, "pause"))
			if rapid.IntRange(0, 5).Draw(t, "fate") == 0 {
				x.Suspend(g, at)
				if math.IsNaN(value) {
					continue // unknown already
				}
				value = math.NaN()
			} else {
				value = float64(rapid.IntRange(0, 50).Draw(t, "value"))
				x.Observe(g, at, value)
			}
			all = append(all, struct {
				at    Instant
				value float64
			}{at, value})

			age := time.Duration(rapid.Int64Range(1, int64(2*g.Length())).Draw(t, "age"))
			for k := g.Pane(at) - g.ahead; k <= g.Pane(at)+g.panes; k++ {
				want, got := all.level(g.End(k), g.Length(), age), x.Read(g, k, age)
				want.Busy = all.busy(g.End(k), g.Interval(), g.Length())
				if got.Busy != want.Busy || !near(got.Integral, want.Integral) || !near(got.Known, want.Known) ||
					got.NowKnown != want.NowKnown || got.NowKnown && got.Now != want.Now {
					t.Fatalf("window %v that ends at %v, age %v:\n got %+v\nwant %+v\nafter %+v",
						g.Length(), time.Duration(g.End(k)-noon), age, got, want, all)
				}
			}
		}
	})
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }
