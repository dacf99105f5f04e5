// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// sound fails if a report says what cannot be: a number that is none, a figure both
// given and withheld, or a ratio outside of its bounds.
func sound(t require.TestingT, r *Report) {
	finite := func(v float64, of string) {
		require.False(t, math.IsNaN(v) || math.IsInf(v, 0), "%s is %v", of, v)
	}
	figure := func(f Figure, of string) {
		finite(f.Value, of)
		require.Less(t, f.Withheld, WithheldCount, of)
		if f.Withheld != Given {
			require.Zero(t, f.Value, of)
		}
	}
	require.Less(t, r.Verdict, VerdictCount)
	require.GreaterOrEqual(t, r.Driver, -1)
	require.Less(t, r.Driver, len(r.Measures))
	require.GreaterOrEqual(t, r.For, time.Duration(0))
	for arm := range ArmCount {
		figure(r.Age[arm], "age")
	}
	for i := range r.Measures {
		m := &r.Measures[i]
		for v, e := range m.Evidence {
			finite(e, fmt.Sprint(m.Name, " evidence ", v))
		}
		figure(m.Boundary, m.Name)
		for _, s := range m.Statistics {
			of := m.Name + " " + s.Name
			for _, f := range []Figure{s.Values[Canary], s.Values[Baseline], s.Delta, s.Ratio, s.Low, s.High} {
				figure(f, of)
			}
			if s.Ratio.Withheld != Given {
				continue
			}
			if s.Low.Withheld == Given {
				require.LessOrEqual(t, s.Low.Value, s.Ratio.Value+1e-9*math.Abs(s.Ratio.Value), of)
			}
			if s.High.Withheld == Given {
				require.GreaterOrEqual(t, s.High.Value, s.Ratio.Value-1e-9*math.Abs(s.Ratio.Value), of)
			}
		}
	}
}

// hostile draws what a replica tells: nothing, next to nothing, or very much.
type hostile struct {
	*rapid.T
	bounds [][]float64
}

func (h hostile) count() uint64 {
	return rapid.SampledFrom([]uint64{0, 0, 1, 2, 60, 1 << 40}).Draw(h.T, "count")
}

func (h hostile) layout(s *stage) *window.Layout {
	i := rapid.IntRange(-1, len(h.bounds)).Draw(h.T, "layout")
	switch i {
	case -1:
		return s.layouts.Intern(nil)
	case len(h.bounds):
		return s.layouts.InternExponential(window.Exponential{
			Scale: rapid.IntRange(-2, 4).Draw(h.T, "scale"), First: rapid.IntRange(-40, 40).Draw(h.T, "first"),
			Buckets: rapid.IntRange(1, 50).Draw(h.T, "buckets"), Unit: 1,
		})
	default:
		return s.layouts.Intern(h.bounds[i])
	}
}

func (h hostile) tell(s *stage, m *fleet.MemberFrame) {
	for i, signal := range s.frame.Signals {
		if rapid.Bool().Draw(h.T, "untold") {
			continue
		}
		d := fleet.Distribution{Layout: s.layouts.Intern(nil)}
		if signal.Kind() == fleet.Histogram {
			d.Layout = h.layout(s)
			d.Sum = rapid.SampledFrom([]float64{0, 1, 1e18}).Draw(h.T, "sum")
			d.SumKnown = rapid.Bool().Draw(h.T, "sum known")
		}
		d.Counts = make([]uint64, d.Layout.Width())
		for range rapid.IntRange(0, 3).Draw(h.T, "buckets told") {
			d.Counts[rapid.IntRange(0, len(d.Counts)-1).Draw(h.T, "bucket")] = h.count()
		}
		d.Unreliable = rapid.IntRange(0, 9).Draw(h.T, "unreliable") == 0
		m.Told[i] = d
	}
	for _, reason := range []string{"abort", "length", "stop"} {
		if rapid.Bool().Draw(h.T, "reason") {
			m.Reasons = append(m.Reasons, fleet.ReasonCount{Reason: reason, Count: h.count()})
		}
	}
	m.Unreachable = rapid.IntRange(0, 9).Draw(h.T, "unreachable") == 0
	m.Started = rapid.SampledFrom([]float64{0, 1, 1, 1e9}).Draw(h.T, "started")
}

// draw are up to 50 bounds, of which some are others' as well.
func (h hostile) draw() []float64 {
	n := rapid.IntRange(1, 50).Draw(h.T, "bounds")
	step := rapid.SampledFrom([]float64{0.5, 1, 1.5}).Draw(h.T, "step")
	from := rapid.SampledFrom([]int{0, 7}).Draw(h.T, "from") // of negative bounds intake reads nothing
	bounds := make([]float64, n)
	for i := range bounds {
		bounds[i] = float64(from+i) * step
	}
	return bounds
}

// Whatever replicas tell, a report holds numbers, and those that a reader expects.
func TestReportsAreSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := hostile{T: t}
		for range 3 {
			h.bounds = append(h.bounds, h.draw())
		}
		o := DefaultOptions(testPane)
		o.Watch = Names()
		o.Quality = []Measure{QualityMeasure("grade", 0, Lower)}
		s := newStage(o, rapid.IntRange(1, 4).Draw(t, "baseline"), rapid.IntRange(1, 2).Draw(t, "canary"))
		s.alike(1)
		s.end()
		for range rapid.IntRange(1, 8).Draw(t, "panes") {
			for i := range s.frame.Members {
				h.tell(s, &s.frame.Members[i])
			}
			f := s.grades()
			for _, revision := range []string{"stable", "next"} {
				layout := h.layout(s)
				d := fleet.Distribution{Layout: layout, Counts: make([]uint64, layout.Width()), SumKnown: true}
				d.Counts[rapid.IntRange(0, len(d.Counts)-1).Draw(t, "grade")] = h.count()
				s.grade(f, ofRevision(revision), nil)
				f.Members[len(f.Members)-1].Told[0] = d
			}
			if r := s.end(f); r != nil {
				sound(t, r)
			}
		}
	})
}
