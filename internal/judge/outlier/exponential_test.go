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

// exponentialOf has counts of 16 buckets from the index 0 up: the zero bucket's,
// then at each given index, and last those of no bucket.
func exponentialOf(scale int, unit float64, zero uint64, at map[int]uint64, none uint64) fleet.Distribution {
	l := layouts.InternExponential(window.Exponential{Scale: scale, Buckets: 16, ZeroThreshold: 0.125, Unit: unit})
	counts := make([]uint64, l.Width())
	counts[0], counts[17] = zero, none
	for i, n := range at {
		counts[1+i] = n
	}
	return fleet.Distribution{Layout: l, Counts: counts, SumKnown: true}
}

// Two replicas have 60 observations each: one in (4, 8], one in (2^2.5, 2^3].
// The second has finer buckets, and is put into those of the first for the
// comparison; its own quantile is told by its own.
func TestExponentialReplicasOfUnlikeScales(t *testing.T) {
	f := frameOf(t, replica(exponentialOf(0, 1, 0, map[int]uint64{2: 60}, 0)), replica(exponentialOf(1, 1, 0, map[int]uint64{5: 60}, 0)))
	var judge Judge
	report := judge.Judge(f, options(0.75))
	given(t, math.Pow(2, 2.75), report.Replicas[0].Latency[0].Value)
	given(t, math.Pow(2, 2.875), report.Replicas[1].Latency[0].Value)
	given(t, math.Pow(2, 2.75), report.Latency[0], "the fleet: 120 in (4, 8]")
	for i := range report.Replicas {
		given(t, 1, report.Replicas[i].Latency[0].Ratio)
	}
	given(t, 1, report.Spread[0])
}

// The unit of the bounds is in milliseconds for one of two replicas, so they
// share none, and each is told in seconds.
func TestExponentialReplicasOfUnlikeUnits(t *testing.T) {
	f := frameOf(t, replica(exponentialOf(0, 1, 0, map[int]uint64{2: 60}, 0)), replica(exponentialOf(0, 0.001, 0, map[int]uint64{12: 30}, 0)))
	var judge Judge
	report := judge.Judge(f, options(0.5))
	given(t, math.Pow(2, 2.5), report.Replicas[0].Latency[0].Value)
	given(t, math.Pow(2, 12.5)/1000, report.Replicas[1].Latency[0].Value)
	refused(t, NoCommonBounds, report.Replicas[1].Latency[0].Ratio)
	given(t, math.Pow(2, 2.5), report.Latency[0], "the one with more observations")
}

func TestWhyAnExponentialLatencyIsWithheld(t *testing.T) {
	for name, tc := range map[string]struct {
		d    fleet.Distribution
		want Reason
	}{
		"it stands":                  {exponentialOf(0, 1, 30, map[int]uint64{0: 30}, 0), Given},
		"one too few":                {exponentialOf(0, 1, 29, map[int]uint64{0: 30}, 0), FewObservations},
		"all in the zero bucket":     {exponentialOf(0, 1, 60, nil, 0), LowestBucket},
		"no number at the quantile":  {exponentialOf(0, 1, 0, map[int]uint64{0: 56}, 4), FewObservations},
		"fewer that are no number":   {exponentialOf(0, 1, 0, map[int]uint64{0: 57}, 3), Given},
		"all in one bucket is known": {exponentialOf(8, 1, 0, map[int]uint64{15: 60}, 0), Given},
	} {
		t.Run(name, func(t *testing.T) {
			var judge Judge
			report := judge.Judge(frameOf(t, replica(tc.d), replica(tc.d)), options(0.95))
			assert.Equal(t, tc.want.String(), report.Replicas[0].Latency[0].Value.Withheld.String())
		})
	}
}

// The bounds of a quantile are order statistics: of 60 observations, one in each
// of 60 buckets, the 54th and the 60th hold the 0.95 quantile, with 5 % error on
// either side (P(Bin(60, 0.95) >= 54) = 0.98, P(... <= 59) = 0.95).
func TestExponentialRankBounds(t *testing.T) {
	l := layouts.InternExponential(window.Exponential{Scale: 3, Buckets: 64, Unit: 1})
	counts := make([]uint64, l.Width())
	for i := range 60 {
		counts[1+i] = 1
	}
	var r ranks
	low, high := r.bounds(0.95, l, counts)
	assert.InEpsilon(t, math.Pow(2, 54./8), low.seconds, 1e-9)
	assert.InEpsilon(t, math.Pow(2, 60./8), high.seconds, 1e-9)
}

func TestJudgingExponentialCountsDoesNotAllocate(t *testing.T) {
	d := exponentialOf(3, 1, 1, map[int]uint64{3: 50, 9: 60}, 0)
	var r ranks
	r.bounds(0.95, d.Layout, d.Counts)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		quantileOf(0.95, d.Layout, d.Counts, 60)
		r.bounds(0.95, d.Layout, d.Counts)
	}))
}
