// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// sigma is the spread of log latency in the simulations.
const sigma = 0.6

// A replica that belongs to what it is compared to pulls it along: among R
// equally busy replicas of log-normal latency, one that is 2 or 3 times slower
// shows less of it, the less the smaller the fleet. The figures follow from
// the mixture's 0.95 quantile; against its peers, the truth shows.
func TestIncludingItselfHidesASlowReplica(t *testing.T) {
	for _, tc := range []struct {
		replicas     int
		twice, three float64
	}{
		{2, 1.21, 1.24},
		{3, 1.36, 1.43},
		{4, 1.46, 1.58},
		{8, 1.68, 2.04},
		{16, 1.82, 2.46},
		{64, 1.95, 2.86},
	} {
		for factor, want := range map[float64]float64{2: tc.twice, 3: tc.three} {
			members := []fleet.MemberFrame{replica(distribution(fine, lognormal(1e6, factor)...))}
			for range tc.replicas - 1 {
				members = append(members, replica(distribution(fine, lognormal(1e6, 1)...)))
			}
			f := frameOf(t, members...)
			o := options(0.95)
			o.Bounds = false
			var judge Judge
			assert.InDelta(t, factor, judge.Judge(f, o).Replicas[0].Latency[0].Ratio.Value, 0.01, "peers, R = %d", tc.replicas)

			o.Baseline = WholeFleet
			report := judge.Judge(f, o)
			assert.InDelta(t, want, report.Replicas[0].Latency[0].Ratio.Value, 0.006, "fleet, R = %d, %v times slower", tc.replicas, factor)
			assert.InDelta(t, want, report.Spread[0].Value, 0.006, "it is the slowest")
		}
	}
}

func TestBaselines(t *testing.T) {
	bounds := []float64{1, 2, 3}
	members := func() []fleet.MemberFrame {
		return []fleet.MemberFrame{
			replica(distribution(bounds, 100, 100, 0, 0)), // 0.5: 1 s
			replica(distribution(bounds, 50, 150, 0, 0)),  // 1 + 50/150 s
			replica(distribution(bounds, 0, 100, 100, 0)), // 2 s
		}
	}
	var judge Judge
	o := options(0.5)
	report := judge.Judge(frameOf(t, members()...), o)
	given(t, 1/(1+150.0/250), report.Replicas[0].Latency[0].Ratio) // peers 50, 250, 100
	given(t, (1+50.0/150)/1.5, report.Replicas[1].Latency[0].Ratio)
	given(t, 2/(1+50.0/250), report.Replicas[2].Latency[0].Ratio)
	o.Baseline = WholeFleet
	report = judge.Judge(frameOf(t, members()...), o)
	whole := 1 + 150.0/350 // 150, 350, 100
	given(t, whole, report.Latency[0])
	for i, own := range []float64{1, 1 + 50.0/150, 2} {
		given(t, own/whole, report.Replicas[i].Latency[0].Ratio)
		given(t, 200, report.Replicas[i].Observations[0])
	}
	given(t, 2/whole, report.Spread[0])
}

// unit is n observations of 1 s, 2 s, …, n s, so that the r-th smallest is r.
func unit(n int) ([]float64, []uint64) {
	bounds, counts := make([]float64, n+1), make([]uint64, n+2)
	for i := range bounds {
		bounds[i], counts[i] = float64(i+1), 1
	}
	counts[n] = 0
	return bounds, counts
}

func TestBoundsAreOrderStatistics(t *testing.T) {
	// Ranks of the 0.95 quantile's one-sided bounds, computed from the
	// binomial distribution by hand.
	for n, want := range map[int][2]int{12: {10, 0}, 60: {54, 60}, 300: {279, 292}} {
		bounds, counts := unit(n)
		var r ranks
		for range 2 { // computed, then remembered
			low, high := r.bounds(0.95, layouts.Intern(bounds), counts)
			assert.InDelta(t, float64(want[0]), low.seconds, 1e-9, "n = %d", n)
			if want[1] == 0 {
				assert.Equal(t, Unbounded, high.withheld)
				continue
			}
			assert.InDelta(t, float64(want[1]), high.seconds, 1e-9, "n = %d", n)
		}
	}
	bounds, counts := unit(300)
	var judge Judge
	same := func() fleet.MemberFrame { return replica(distribution(bounds, counts...)) }
	l := judge.Judge(frameOf(t, same(), same()), options(0.95)).Replicas[0].Latency[0]
	given(t, 279.0/292, l.LowRatio)
	given(t, 292.0/279, l.HighRatio)
}

// Against a baseline that is known well, each bound misses the true ratio in
// at most 5 % of all windows, and not much less: it is no wider than needed.
func TestBoundsHoldTheTrueRatio(t *testing.T) {
	const (
		windows      = 3000
		observations = 300
		truth        = 1.5
	)
	random := rand.New(rand.NewPCG(1, 2))
	baseline := lognormal(5e7, 1)
	f := frameOf(t, replica(fleet.Distribution{}), replica(distribution(fine, baseline...)))
	counts := make([]uint64, len(fine)+1)
	f.Members[0].Told[0] = distribution(fine, counts...)
	var judge Judge
	tooHigh, tooLow := 0, 0
	for range windows {
		clear(counts)
		for range observations {
			i, _ := slices.BinarySearch(fine, truth*math.Exp(sigma*random.NormFloat64()))
			counts[i]++
		}
		l := judge.Judge(f, options(0.95)).Replicas[0].Latency[0]
		if l.LowRatio.Withheld != Given || l.HighRatio.Withheld != Given {
			t.Fatalf("a bound is withheld: %v, %v", l.LowRatio.Withheld, l.HighRatio.Withheld)
		}
		if l.LowRatio.Value > truth {
			tooHigh++
		}
		if l.HighRatio.Value < truth {
			tooLow++
		}
	}
	// Three standard deviations of a share of 5 % in so many windows are 1.2 %.
	for side, misses := range map[string]int{"low": tooHigh, "high": tooLow} {
		share := float64(misses) / windows
		assert.LessOrEqual(t, share, 0.062, side)
		assert.GreaterOrEqual(t, share, 0.02, side)
	}
}

// Whatever the counts: a ratio lies between its bounds, a fleet of equals has
// ratios of 1, and nothing that is given is no number.
func TestRatioLiesBetweenItsBounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		bounds := []float64{0.1, 0.5, 1, 5}
		draw := rapid.SliceOfN(rapid.Uint64Range(0, 400), len(bounds)+1, len(bounds)+1)
		var members []fleet.MemberFrame
		for range rapid.IntRange(1, 5).Draw(rt, "replicas") {
			members = append(members, replica(distribution(bounds, draw.Draw(rt, "counts")...)))
		}
		o := options(rapid.SampledFrom([]float64{0.5, 0.95, 0.99}).Draw(rt, "q"))
		o.MinObservations = rapid.Uint64Range(0, 10).Draw(rt, "min observations")
		o.Baseline = rapid.SampledFrom([]Baseline{Peers, WholeFleet, Median}).Draw(rt, "baseline")
		var judge Judge
		report := judge.Judge(frameOf(t, members...), o)
		for _, r := range report.Replicas {
			l := r.Latency[0]
			for _, f := range []Figure{l.Value, l.Ratio, l.LowRatio, l.HighRatio} {
				if math.IsNaN(f.Value) || math.IsInf(f.Value, 0) || f.Withheld != Given && f.Value != 0 {
					rt.Fatalf("%+v", f)
				}
			}
			if l.Ratio.Withheld == Given && l.LowRatio.Withheld == Given && l.LowRatio.Value > l.Ratio.Value*(1+1e-12) ||
				l.Ratio.Withheld == Given && l.HighRatio.Withheld == Given && l.HighRatio.Value < l.Ratio.Value*(1-1e-12) {
				rt.Fatalf("%+v", l)
			}
		}
		judged := 0
		for _, n := range report.States {
			judged += n
		}
		if judged != len(members) {
			rt.Fatalf("%d states of %d replicas", judged, len(members))
		}
	})
}
