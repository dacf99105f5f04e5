// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// toTheMedian judges one quantile of one latency against the replica in the middle.
func toTheMedian(t *testing.T, q float64, members ...fleet.MemberFrame) *Report {
	t.Helper()
	o := options(q)
	o.Baseline = Median
	var judge Judge
	return judge.Judge(frameOf(t, members...), o)
}

// within is a replica whose n observations lie evenly within one second that begins
// at low: its median is low + 0.5 s.
func within(low int, n uint64) fleet.MemberFrame {
	counts := make([]uint64, 11)
	counts[low] = n
	return replica(distribution([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, counts...))
}

func TestMedianOfReplicas(t *testing.T) {
	for name, tc := range map[string]struct {
		lows  []int
		ratio []float64
	}{
		"the one in the middle":       {[]int{3, 1, 8}, []float64{1, 1.5 / 3.5, 8.5 / 3.5}},
		"the mean of the middle two":  {[]int{1, 2, 4, 9}, []float64{1.5 / 3.5, 2.5 / 3.5, 4.5 / 3.5, 9.5 / 3.5}},
		"two of five may be anything": {[]int{2, 2, 2, 9, 9}, []float64{1, 1, 1, 9.5 / 2.5, 9.5 / 2.5}},
	} {
		var members []fleet.MemberFrame
		for i, low := range tc.lows {
			members = append(members, within(low, uint64(100+1000*i))) // how busy each is does not matter
		}
		report := toTheMedian(t, 0.5, members...)
		for i, want := range tc.ratio {
			given(t, want, report.Replicas[i].Latency[0].Ratio, "%s: replica %d", name, i)
		}
	}
}

// TestHalfOfTheFleetMayBeBad: 4 of 10 are twice as slow. Against its peers a good
// replica seems fast, and a bad one hardly slow; against the one in the middle
// each is what it is.
func TestHalfOfTheFleetMayBeBad(t *testing.T) {
	var members []fleet.MemberFrame
	for i := range 10 {
		scale := 1.0
		if i >= 6 {
			scale = 2
		}
		members = append(members, replica(distribution(fine, lognormal(1e5, scale)...)))
	}
	report := toTheMedian(t, 0.95, members...)
	for i, r := range report.Replicas {
		want := 1.0
		if i >= 6 {
			want = 2
		}
		assert.InDelta(t, want, r.Latency[0].Ratio.Value, 0.01)
	}
	o := options(0.95)
	var judge Judge
	peers := judge.Judge(frameOf(t, members...), o)
	assert.Less(t, peers.Replicas[0].Latency[0].Ratio.Value, 0.7)
	assert.Less(t, peers.Replicas[9].Latency[0].Ratio.Value, 1.4)
}

// TestBoundsToTheMedian: the ranks of the 0.95 quantile's bounds are 279 and 292
// of 300 observations.
func TestBoundsToTheMedian(t *testing.T) {
	bounds, counts := unit(300)
	l := toTheMedian(t, 0.95, replica(distribution(bounds, counts...)), replica(distribution(bounds, counts...))).Replicas[0].Latency[0]
	given(t, 279.0/292, l.LowRatio)
	given(t, 292.0/279, l.HighRatio)

	// Once a second up to 300 s, and once in two up to 600 s.
	wide := make([]float64, 600)
	usual, slow := make([]uint64, 601), make([]uint64, 601)
	for i := range wide {
		wide[i] = float64(i + 1)
		usual[i/2], slow[i/2*2+1] = 1, 1
	}
	report := toTheMedian(t, 0.95, replica(distribution(wide, usual...)), replica(distribution(wide, slow...)), replica(distribution(wide, usual...)))
	l = report.Replicas[1].Latency[0]
	given(t, 2, l.Ratio)
	given(t, 2*279.0/292, l.LowRatio)
	given(t, 2*292.0/279, l.HighRatio)
}

// TestUnknownBoundsOfTheMedian: a bound that a few do not have is that of the
// others; one that most do not have is none.
func TestUnknownBoundsOfTheMedian(t *testing.T) {
	o := options(0.95)
	o.Baseline, o.MinObservations = Median, 1
	for few, want := range map[int]Reason{1: Given, 2: Given, 3: Unbounded, 4: Unbounded} {
		var members []fleet.MemberFrame
		for i := range 5 {
			n := uint64(60)
			if i < few {
				n = 12 // the upper bound of the 0.95 quantile is not known
			}
			members = append(members, within(2, n))
		}
		var judge Judge
		report := judge.Judge(frameOf(t, members...), o)
		l := report.Replicas[4].Latency[0]
		given(t, 1, l.Ratio)
		assert.Equal(t, want.String(), l.LowRatio.Withheld.String(), "%d of 5 have no upper bound", few)
		assert.Equal(t, Given, l.HighRatio.Withheld)
		refused(t, Unbounded, report.Replicas[0].Latency[0].HighRatio, "its own is not known")
	}
}

// TestMedianAboveTheTopBound: what is above all bounds is slower than the rest,
// and the middle of most is not known. How fast it might be is not known either;
// the bounds of the others' medians are the ranks 42 and 59 of 100.
func TestMedianAboveTheTopBound(t *testing.T) {
	report := toTheMedian(t, 0.5, within(2, 100), within(3, 100), within(10, 100))
	given(t, 2.5/3.5, report.Replicas[0].Latency[0].Ratio)
	given(t, 3.59/2.42, report.Replicas[1].Latency[0].HighRatio)
	given(t, 3.42/3.59, report.Replicas[1].Latency[0].LowRatio)
	refused(t, Saturated, report.Replicas[2].Latency[0].Ratio)
	report = toTheMedian(t, 0.5, within(2, 100), within(10, 100), within(10, 100))
	refused(t, Saturated, report.Replicas[0].Latency[0].Ratio)
}

// TestWhoIsInTheMedian: replicas that are there and have a quantile on the bounds
// that all share.
func TestWhoIsInTheMedian(t *testing.T) {
	young, few := within(9, 100), within(9, 5)
	young.Warming = true
	other := replica(distribution([]float64{0.5, 5.5}, 0, 60, 0))
	f := frameOf(t, within(1, 100), within(2, 100), within(4, 100), young, few, other)
	f.Departed = []fleet.MemberFrame{within(9, 100)}
	o := options(0.5)
	o.Baseline = Median
	var judge Judge
	report := judge.Judge(f, o)
	for i, want := range []float64{1.5 / 2.5, 1, 4.5 / 2.5} {
		given(t, want, report.Replicas[i].Latency[0].Ratio)
	}
	refused(t, Warming, report.Replicas[3].Latency[0].Ratio)
	refused(t, FewObservations, report.Replicas[4].Latency[0].Ratio)
	refused(t, NoCommonBounds, report.Replicas[5].Latency[0].Ratio)
	refused(t, FewReplicas, toTheMedian(t, 0.5, within(1, 100)).Replicas[0].Latency[0].Ratio)
}

// TestLoadIsComparedWithTheMean, whatever latencies are compared with.
func TestLoadIsComparedWithTheMean(t *testing.T) {
	report := toTheMedian(t, 0.5, gauges(0, 10, 0.1), gauges(0, 20, 0.1), gauges(0, 90, 0.1))
	given(t, 2.25, report.Replicas[2].LoadRatio[fleet.LoadOf(fleet.Running)])
}
