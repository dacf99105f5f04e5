// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// noon is an instant on the grid of every interval that divides an hour.
const noon = Instant(1_767_268_800) * Instant(time.Second)

// after is noon and so many seconds.
func after(seconds float64) Instant { return noon + Instant(seconds*float64(time.Second)) }

func TestPaneIsOpenAtItsStartAndClosedAtItsEnd(t *testing.T) {
	g := NewGrid(30*time.Second, 5*time.Minute, 5*time.Second)
	for name, tc := range map[string]struct{ at, end Instant }{
		"just after the start": {noon + 1, after(30)},
		"inside":               {after(12), after(30)},
		"at the end":           {after(30), after(30)},
		"just after the end":   {after(30) + 1, after(60)},
		"at the epoch":         {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.end, g.End(g.Pane(tc.at)))
		})
	}
	assert.Equal(t, 30*time.Second, g.Interval())
	assert.Equal(t, 5*time.Minute, g.Length())
}

func TestPanesCoverTimeOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, at := drawGrid(t), Instant(rapid.Int64Range(1, int64(2*noon)).Draw(t, "at"))
		k := g.Pane(at)
		if end := g.End(k); at > end || at <= end.Add(-g.Interval()) {
			t.Fatalf("%d is not in pane %d, (%d, %d]", at, k, end.Add(-g.Interval()), end)
		}
		if got := g.End(k + 1).Sub(g.End(k)); got != g.Interval() {
			t.Fatalf("panes are %v apart, not %v", got, g.Interval())
		}
	})
}

// drawGrid draws any geometry that a configuration can ask for.
func drawGrid(t *rapid.T) Grid {
	interval := time.Duration(rapid.SampledFrom([]int64{1, 2, 10, 30, 60}).Draw(t, "interval")) * time.Second
	panes := rapid.IntRange(1, 12).Draw(t, "panes")
	lateness := time.Duration(rapid.Int64Range(0, int64(2*interval)).Draw(t, "lateness"))
	return NewGrid(interval, time.Duration(panes)*interval, lateness)
}

func TestHorizonAdmits(t *testing.T) {
	// The pane that ends at noon is judged. The next one is at 12:00:30, by a
	// clock of 12:00:35 at the latest, and its window begins at 11:55:30.
	g := NewGrid(30*time.Second, 5*time.Minute, 5*time.Second)
	h := NewHorizon(g, noon, 5*time.Second)
	for name, tc := range map[string]struct {
		at   Instant
		want Outcome
	}{
		"at the start of the next window":      {after(-270), Late},
		"just after it":                        {after(-270) + 1, Accepted},
		"in a judged pane, for later windows":  {after(-10), Accepted},
		"in the open pane":                     {after(15), Accepted},
		"as far ahead of the clock as allowed": {after(40), Accepted},
		"further":                              {after(40) + 1, Future},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, h.Admit(tc.at))
		})
	}
	assert.Equal(t, Future, Horizon{}.Admit(noon), "the zero horizon accepts nothing")
}

// What a horizon admits never costs a pane of the window that is judged next.
func TestAdmittedSampleLeavesTheNextWindowWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		interval := time.Duration(rapid.Int64Range(1, 60).Draw(t, "interval")) * time.Second
		lateness := time.Duration(rapid.Int64Range(0, int64(3*interval)).Draw(t, "lateness"))
		g := NewGrid(interval, interval*time.Duration(rapid.IntRange(1, 6).Draw(t, "panes")), lateness)
		judged := g.End(g.Pane(noon))
		next := judged.Add(interval)
		h := NewHorizon(g, judged, lateness)

		oldest, newest := next.Add(-g.Length())+1, next.Add(2*lateness)
		if h.Admit(oldest) != Accepted || h.Admit(newest) != Accepted {
			t.Fatal("an edge of the horizon is outside")
		}
		series := NewHistogram(g, &Layout{})
		for i, at := range []Instant{oldest, newest} {
			series.Observe(g, &Sample{At: at, Delta: true, Counts: []uint64{uint64(i + 1)}})
		}
		want := uint64(1)
		if newest <= next {
			want = 3
		}
		got := make([]uint64, 1)
		series.Read(g, g.Pane(next), got)
		if got[0] != want {
			t.Fatalf("the window that ends at %d holds %d observations, want %d", next, got[0], want)
		}
	})
}

func TestOutcomeNamesAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for o := range OutcomeCount {
		assert.NotEmpty(t, o.String())
		assert.False(t, seen[o.String()], "%s stands twice", o)
		seen[o.String()] = true
	}
	assert.Equal(t, "unknown", OutcomeCount.String())
}
