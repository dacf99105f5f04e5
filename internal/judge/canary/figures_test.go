// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// equal asserts that a figure stands and has the value.
func equal(t *testing.T, want float64, got Figure) {
	t.Helper()
	assert.Equal(t, Given.String(), got.Withheld.String())
	assert.InDelta(t, want, got.Value, 1e-12)
}

// latencies plays two panes, the second of which counts: baseline replicas and the
// canary each tell their values.
func latencies(baseline, canary []float64) (*stage, *MeasureReport) {
	s := newStage(DefaultOptions(testPane), 2, 1)
	s.alike(1)
	s.end()
	s.ttft(baseline, canary)
	return s, measureOf(s.end(), "ttft")
}

func (s *stage) ttft(baseline, canary []float64) {
	for _, m := range s.of("stable") {
		s.tell(m, fleet.TTFT, []float64{1, 2, 4}, baseline...)
	}
	s.tell(s.of("next")[0], fleet.TTFT, []float64{1, 2, 4}, canary...)
}

// Of the canary, 2, 6 and 2 observations lie up to 1, 2 and 4 s, and of the baseline
// 10, 8 and 2. Ranks are read off by histogram_quantile: for the canary's p50, rank 5,
// 1 + (5-2)/6; its p95, rank 9.5, 2 + 2·(9.5-8)/2; the baseline's p50, rank 10, 1; its
// p95, rank 19, 2 + 2·(19-18)/2.
func TestFiguresOfADistribution(t *testing.T) {
	s, m := latencies(
		[]float64{0.5, 0.5, 0.5, 0.5, 0.5, 1.5, 1.5, 1.5, 1.5, 3},
		[]float64{0.5, 0.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 3, 3},
	)
	require.Len(t, m.Statistics, 3)
	for i, want := range []struct {
		name             string
		canary, baseline float64
	}{{"p50", 1.5, 1}, {"p95", 3.5, 3}, {"mean", 1.6, 1.15}} {
		got := m.Statistics[i]
		assert.Equal(t, want.name, got.Name)
		equal(t, want.canary, got.Values[Canary])
		equal(t, want.baseline, got.Values[Baseline])
		equal(t, want.canary-want.baseline, got.Delta)
		equal(t, want.canary/want.baseline, got.Ratio)
		assert.Equal(t, Unbounded, got.Low.Withheld)
		assert.Equal(t, Unbounded, got.High.Withheld)
	}
	assert.Equal(t, [ArmCount]uint64{10, 20}, m.Observations)

	// Figures are of all panes.
	s.ttft([]float64{0.5}, []float64{3, 3})
	m = measureOf(s.end(), "ttft")
	equal(t, (16+6)/12., m.Statistics[2].Values[Canary])
	equal(t, (23+1)/22., m.Statistics[2].Values[Baseline])
	assert.Equal(t, [ArmCount]uint64{12, 22}, m.Observations)
}

func TestFiguresWithheld(t *testing.T) {
	for name, c := range map[string]struct {
		canary []float64
		p50    Withheld
		p95    Withheld
	}{
		"above the top bound":                  {[]float64{5, 5, 5}, Saturated, Saturated},
		"p95 above the top bound":              {append(repeated(9, 1.5), 5), Given, Saturated},
		"all of it up to the lowest bound":     {[]float64{0.5, 0.5}, LowestBucket, LowestBucket},
		"half of it up to the lowest, no more": {[]float64{0.5, 1.5}, Given, Given},
	} {
		t.Run(name, func(t *testing.T) {
			_, m := latencies([]float64{0.5, 1.5, 1.5, 3}, c.canary)
			for i, want := range []Withheld{c.p50, c.p95} {
				s := m.Statistics[i]
				assert.Equal(t, want.String(), s.Values[Canary].Withheld.String())
				assert.Equal(t, want.String(), s.Ratio.Withheld.String())
				assert.Equal(t, want.String(), s.Delta.Withheld.String())
				assert.Equal(t, Given, s.Values[Baseline].Withheld)
			}
			assert.Equal(t, Given, m.Statistics[2].Ratio.Withheld)
		})
	}
}

// A sum that is not told in one pane is not known of all.
func TestSumUnknown(t *testing.T) {
	s, _ := latencies([]float64{1.5}, []float64{1.5})
	for i := range 2 {
		s.ttft([]float64{1.5}, []float64{1.5})
		s.of("next")[0].Told[s.frame.Index(fleet.TTFT)].SumKnown = i > 0
		mean := measureOf(s.end(), "ttft").Statistics[2]
		assert.Equal(t, withheld(SumUnknown), mean.Values[Canary])
		assert.Equal(t, withheld(SumUnknown), mean.Ratio)
		equal(t, 1.5, mean.Values[Baseline])
	}
}

func TestFiguresOfAShare(t *testing.T) {
	s := newStage(DefaultOptions(testPane), 2, 1)
	s.alike(100)
	s.end()
	r := s.play(50, func() {
		s.alike(100)
		s.count(s.of("stable")[0], fleet.Errors, 1)
		s.count(s.of("stable")[1], fleet.Errors, 3)
		s.count(s.of("next")[0], fleet.Errors, 8)
	})
	ratio := measureOf(r, "errors").Statistics[0]
	equal(t, 0.08, ratio.Values[Canary])
	equal(t, 0.02, ratio.Values[Baseline])
	equal(t, 0.06, ratio.Delta)
	equal(t, 4, ratio.Ratio)
	// 400 and 200 events: within some 20 % each.
	assert.Greater(t, ratio.Low.Value, 2.0)
	assert.Less(t, ratio.High.Value, 8.0)
	sound(t, r)
}

// A replica's tokens a second: in two panes 600 and 1200 of the canary, and 900 and
// 2100 of each of the baseline.
func TestFiguresOfALevel(t *testing.T) {
	s := newStage(DefaultOptions(testPane), 2, 1)
	s.alike(10)
	s.end()
	var r *Report
	for i, tokens := range []uint64{600, 1200} {
		s.alike(10)
		for _, m := range s.of("stable") {
			s.count(m, fleet.GenerationTokens, []uint64{900, 2100}[i])
		}
		s.count(s.of("next")[0], fleet.GenerationTokens, tokens)
		r = s.end()
	}
	mean := measureOf(r, "generation_tokens").Statistics[0]
	equal(t, (10+20)/2., mean.Values[Canary])
	equal(t, (15+35)/2., mean.Values[Baseline])
	equal(t, -10, mean.Delta)
	equal(t, 15/25., mean.Ratio)
	sound(t, r)
}

// There is nothing to compare with in a pane in which the baseline makes nothing.
func TestALevelOfNothing(t *testing.T) {
	s := newStage(DefaultOptions(testPane), 2, 1)
	s.alike(10)
	s.end()
	var r *Report
	for _, tokens := range []uint64{600, 0, 600} {
		s.alike(10)
		for _, m := range s.of("stable") {
			s.count(m, fleet.GenerationTokens, tokens)
		}
		s.count(s.of("next")[0], fleet.GenerationTokens, 300)
		r = s.end()
		sound(t, r)
	}
	rate := measureOf(r, "generation_tokens")
	assert.Equal(t, [ArmCount]uint64{2, 2}, rate.Observations)
	equal(t, 0.5, rate.Statistics[0].Ratio)
}

// A canary that works every other minute makes half, and its ratio is bounded
// around that.
func TestALevelThatIsNothingAtTimes(t *testing.T) {
	s := newStage(DefaultOptions(testPane), 3, 2)
	s.alike(10)
	s.end()
	var r *Report
	for pane := range 100 {
		s.alike(10)
		for _, m := range s.of("stable") {
			s.count(m, fleet.GenerationTokens, 600)
		}
		for _, m := range s.of("next") {
			s.count(m, fleet.GenerationTokens, uint64(pane%2*600))
		}
		r = s.end()
	}
	mean := measureOf(r, "generation_tokens").Statistics[0]
	equal(t, 0.5, mean.Ratio)
	sound(t, r)
}

// Of a canary that does the same there is an interval around 1, and it narrows.
func TestIntervalsNarrow(t *testing.T) {
	s, random := newStage(DefaultOptions(testPane), 6, 3), seeded(29)
	width := func(r *Report) float64 {
		sound(t, r)
		p50 := measureOf(r, "ttft").Statistics[0]
		require.Equal(t, Given, p50.Low.Withheld)
		require.Equal(t, Given, p50.High.Withheld)
		assert.LessOrEqual(t, p50.Low.Value, 1.0)
		assert.GreaterOrEqual(t, p50.High.Value, 1.0)
		return p50.High.Value / p50.Low.Value
	}
	var bounds []float64
	for i := range 30 {
		bounds = append(bounds, 0.85+float64(i)/100)
	}
	tell := func() {
		for i := range s.frame.Members {
			s.tell(&s.frame.Members[i], fleet.TTFT, bounds, lognormals(random, 60, 1, 0.1)...)
		}
	}
	early := width(s.play(4, tell))
	assert.Less(t, width(s.play(100, tell)), early)
}

func TestAges(t *testing.T) {
	s := newStage(DefaultOptions(testPane), 3, 2)
	for i, started := range []float64{10, 20, 60, 100, 110} {
		s.frame.Members[i].Started = started
	}
	r := s.tens(5)
	equal(t, 300-105, r.Age[Canary])
	equal(t, 300-20, r.Age[Baseline])
	assert.Equal(t, 4*testPane, r.For)
}
