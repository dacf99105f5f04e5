// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// above is the share of a log-normal latency above a value.
func above(value, median, sigma float64) float64 {
	return math.Erfc(math.Log(value/median)/sigma/math.Sqrt2) / 2
}

// expected are the counts of n observations that fall exactly as expected.
func expected(bounds []float64, n, median, sigma float64) []uint64 {
	counts := make([]uint64, len(bounds)+1)
	rest := n
	for i, b := range bounds {
		over := math.Round(n * above(b, median, sigma))
		counts[i] = uint64(rest - over)
		rest = over
	}
	counts[len(bounds)] = uint64(rest)
	return counts
}

// rulerOf measures a fleet of one.
func rulerOf(d fleet.Distribution) *ruler {
	var p fleet.Pool
	p.Gather(&fleet.Frame{}, func(yield func(*fleet.Distribution) bool) { yield(&d) })
	r := new(ruler)
	r.measure(&p)
	return r
}

func TestExceedingBetweenBounds(t *testing.T) {
	cases := map[string]struct {
		bounds        []float64
		median, sigma float64
	}{
		"TTFT":         {ttftBounds, 0.3, 0.6},
		"narrow ITL":   {itlBounds, 0.03, 0.3},
		"slow prompts": {ttftBounds, 3, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := rulerOf(distribution(c.bounds, expected(c.bounds, 1e6, c.median, c.sigma)...))
			for _, bound := range c.bounds {
				if share := above(bound, c.median, c.sigma); share < 0.001 || share > 0.999 {
					continue
				}
				for _, slower := range []float64{1, 1.1, 1.25, 2} {
					assert.InDelta(t, above(bound/slower, c.median, c.sigma), r.exceeding(bound/slower), 0.005, "%v times below %v", slower, bound)
				}
			}
		})
	}
}

func TestExceedingErrsToTheCarefulSide(t *testing.T) {
	// All but a few lie between 25 and 50 ms, and nothing tells where: at 48 ms,
	// for one. Whoever is a little slower lies above 50 ms.
	r := rulerOf(distribution(itlBounds, 0, 2, 997, 1, 0, 0))
	assert.InDelta(t, 0.998, r.exceeding(0.04), 1e-12)
	assert.InDelta(t, 0.001, r.exceeding(0.05), 1e-12)

	r = rulerOf(distribution(itlBounds, 500, 300, 200, 0, 0, 0))
	assert.InDelta(t, 1, r.exceeding(0.009), 0, "within the lowest bucket there is no telling")
	assert.InDelta(t, 0.5, r.exceeding(0.01), 1e-12)
	r = rulerOf(distribution(itlBounds, 0, 0, 0, 300, 300, 400))
	assert.InDelta(t, 0.4, r.exceeding(0.5), 1e-12, "above all bounds there is no telling")
}

func TestExceedingOnExponentialBounds(t *testing.T) {
	var layouts window.Layouts
	layout := layouts.InternExponential(window.Exponential{Scale: 2, First: -40, Buckets: 80, Unit: 1})
	bounds := layout.UpperBounds(nil)
	assert.Len(t, bounds, layout.Width()-1)
	counts := expected(bounds, 1e6, 0.3, 0.6)
	r := rulerOf(fleet.Distribution{Layout: layout, Counts: counts})
	for _, value := range []float64{0.1, 0.2, 0.3, 0.55, 0.9} {
		assert.InDelta(t, above(value, 0.3, 0.6), r.exceeding(value), 0.005)
	}
}

func TestBoundariesAreChosenFromThePaneBefore(t *testing.T) {
	r := rulerOf(distribution(ttftBounds, expected(ttftBounds, 1e6, 0.3, 0.6)...))
	var at [boundaries]boundary
	var s split
	r.split(&s, &at, 1.25)
	assert.Zero(t, s.used, "none are chosen yet")
	assert.Equal(t, uint8(0b111111), r.choose(&at, false))
	// Above 0.25 s lie 62 %, above 0.5 s 20 %, above 0.75 s 6 %, above 1 s 2 %:
	// the nearest to 70, 50, 25, 10, 5 and 2 %.
	assert.Equal(t, []float64{0.25, 0.25, 0.5, 0.75, 0.75, 1}, values(&at))
	r.split(&s, &at, 1.25)
	assert.Equal(t, boundaries, s.used)
	assert.InDelta(t, above(0.5, 0.3, 0.6), s.share[2], 1e-6)
	assert.InDelta(t, above(0.5/1.1, 0.3, 0.6), s.allowed[2], 0.005)
	counted, n := s.exceedancesOf(expected(ttftBounds, 1000, 0.3, 0.6))
	assert.InDelta(t, 1000, n, 0)
	assert.InDelta(t, 1000*above(0.5, 0.3, 0.6), counted[2], 1)
}

func values(at *[boundaries]boundary) (all []float64) {
	for _, b := range at {
		all = append(all, b.Value)
	}
	return all
}

func TestBoundariesStayWhileTheyAreOfUse(t *testing.T) {
	var at [boundaries]boundary
	rulerOf(distribution(ttftBounds, expected(ttftBounds, 1e6, 0.3, 0.6)...)).choose(&at, false)
	chosen := values(&at)
	for range 3 { // a little more load, and less
		assert.Zero(t, rulerOf(distribution(ttftBounds, expected(ttftBounds, 1e6, 0.36, 0.6)...)).choose(&at, false))
		assert.Zero(t, rulerOf(distribution(ttftBounds, expected(ttftBounds, 1e6, 0.27, 0.6)...)).choose(&at, false))
	}
	assert.Equal(t, chosen, values(&at))
	moved := rulerOf(distribution(ttftBounds, expected(ttftBounds, 1e6, 3, 0.6)...)).choose(&at, false)
	assert.Equal(t, uint8(0b111111), moved, "ten times slower, all of them say nothing")

	coarse := []float64{0.1, 5, 10}
	moved = rulerOf(distribution(coarse, expected(coarse, 1e6, 3, 0.6)...)).choose(&at, false)
	for _, b := range at {
		assert.Contains(t, coarse, b.Value)
	}
	assert.NotZero(t, moved)
}

func TestBoundariesStayUnderSuspicion(t *testing.T) {
	var at [boundaries]boundary
	rulerOf(distribution(ttftBounds, expected(ttftBounds, 1e6, 0.3, 0.6)...)).choose(&at, false)
	slow := rulerOf(distribution(ttftBounds, expected(ttftBounds, 1e6, 3, 0.6)...))
	assert.Zero(t, slow.choose(&at, true))
	at[2].Away = awayPanes
	assert.Equal(t, uint8(0b100), slow.choose(&at, true), "the fleet has left it")
	assert.Zero(t, at[2].Away)
}

func TestWhatIsUsualFollowsTheReplicaInTheMiddle(t *testing.T) {
	b := boundary{Value: 1, Panes: 1}
	assert.True(t, b.follow(0), "the first is usual")
	b.Panes = 2
	assert.True(t, b.follow(1))
	assert.InDelta(t, 0.1, b.Usual, 1e-12)
	assert.False(t, b.follow(1.3), "more than three times the odds")
	assert.False(t, b.follow(-1.1))
	assert.Equal(t, int32(2), b.Away)
	assert.InDelta(t, 0.1, b.Usual, 1e-12)
	assert.True(t, b.follow(0.1))
	assert.Zero(t, b.Away)
}
