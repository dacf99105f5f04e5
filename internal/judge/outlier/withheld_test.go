// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

func TestEnoughObservations(t *testing.T) {
	// ceil(3 / (1-q)), so that three observations lie above the quantile.
	for q, want := range map[float64]uint64{0.5: 6, 0.75: 12, 0.8: 15, 0.9: 30, 0.95: 60, 0.98: 150, 0.99: 300, 0.999: 3000, 0.9999: 30000, 0.7: 10} {
		assert.Equal(t, want, (&Options{}).Enough(q), "q = %v", q)
	}
	assert.Equal(t, uint64(1), (&Options{MinObservations: 1}).Enough(0.99))
}

// latencies have bounds of 1 s to 4 s.
var latencies = []float64{1, 2, 3, 4}

// usual has 60 observations and its 0.95 quantile, rank 57, at
// 2 + (57-40)/20 = 2.85 s.
func usual() fleet.MemberFrame { return replica(distribution(latencies, 20, 20, 20, 0, 0)) }

const usualSeconds = 2.85

func TestWhyALatencyIsWithheld(t *testing.T) {
	with := func(change func(*fleet.MemberFrame)) fleet.MemberFrame {
		m := usual()
		change(&m)
		return m
	}
	for name, tc := range map[string]struct {
		replica      fleet.MemberFrame
		value        Reason
		ratio        Reason
		observations Reason
		state        State
	}{
		"it stands":           {usual(), Given, Given, Given, Judged},
		"not reported":        {replica(fleet.Distribution{}), NotReported, NotReported, NotReported, AllWithheld},
		"warming":             {with(func(m *fleet.MemberFrame) { m.Warming = true }), Warming, Warming, Given, StillWarming},
		"unreliable":          {with(func(m *fleet.MemberFrame) { m.Told[0].Unreliable = true }), Unreliable, Unreliable, Unreliable, AllWithheld},
		"no buckets":          {replica(distribution(nil, 500)), NoBuckets, NoBuckets, Given, AllWithheld},
		"one too few":         {replica(distribution(latencies, 20, 20, 19, 0, 0)), FewObservations, FewObservations, Given, AllWithheld},
		"none":                {replica(distribution(latencies, 0, 0, 0, 0, 0)), FewObservations, FewObservations, Given, AllWithheld},
		"all in the lowest":   {replica(distribution(latencies, 60, 0, 0, 0, 0)), LowestBucket, LowestBucket, Given, AllWithheld},
		"above the top bound": {replica(distribution(latencies, 20, 20, 0, 0, 20)), Given, Saturated, Given, AllWithheld},
		"at the top bound":    {replica(distribution(latencies, 20, 20, 0, 17, 3)), Given, Saturated, Given, AllWithheld},
		"below the top bound": {replica(distribution(latencies, 20, 20, 0, 18, 2)), Given, Given, Given, Judged},
		"unreachable but with evidence": {
			with(func(m *fleet.MemberFrame) { m.Unreachable, m.Warming = true, false }), Given, Given, Given, Unreachable,
		},
		"unreachable while warming": {
			with(func(m *fleet.MemberFrame) { m.Unreachable, m.Warming = true, true }), Warming, Warming, Given, Unreachable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var judge Judge
			report := judge.Judge(frameOf(t, usual(), usual(), tc.replica), options(0.95))
			got := report.Replicas[2]
			l := got.Latency[0]
			assert.Equal(t, tc.value.String(), l.Value.Withheld.String(), "latency")
			for which, f := range map[string]Figure{"ratio": l.Ratio, "low ratio": l.LowRatio, "high ratio": l.HighRatio} {
				if tc.ratio != Given {
					refused(t, tc.ratio, f, which)
				} else if which == "ratio" {
					assert.Equal(t, Given, f.Withheld)
				}
			}
			assert.Equal(t, tc.observations.String(), got.Observations[0].Withheld.String(), "observations")
			assert.Equal(t, tc.state.String(), got.State.String())
			given(t, usualSeconds, report.Replicas[0].Latency[0].Value, "the others are judged as ever")
		})
	}
}

func TestSaturatedLatencyIsTheTopBound(t *testing.T) {
	var judge Judge
	report := judge.Judge(frameOf(t, usual(), replica(distribution(latencies, 0, 0, 0, 0, 60))), options(0.95))
	given(t, 4, report.Replicas[1].Latency[0].Value)
	refused(t, Saturated, report.Replicas[0].Latency[0].Ratio, "a saturated baseline compares nothing")
	refused(t, Saturated, report.Spread[0])
	given(t, 4, report.Latency[0])
}

func TestComparisonNeedsReplicas(t *testing.T) {
	var judge Judge
	report := judge.Judge(frameOf(t, usual(), replica(distribution(latencies, 1, 0, 0, 0, 0))), options(0.95))
	given(t, usualSeconds, report.Replicas[0].Latency[0].Value)
	refused(t, FewReplicas, report.Replicas[0].Latency[0].Ratio)
	refused(t, FewReplicas, report.Spread[0])
	given(t, 2+(0.95*61-41)/20, report.Latency[0])

	alone := options(0.95)
	alone.MinReplicas, alone.Baseline = 1, WholeFleet
	report = judge.Judge(frameOf(t, usual()), alone)
	given(t, 1, report.Replicas[0].Latency[0].Ratio)
	given(t, 1, report.Spread[0])
	alone.Baseline = Peers
	report = judge.Judge(frameOf(t, usual()), alone)
	refused(t, FewObservations, report.Replicas[0].Latency[0].Ratio, "nobody is its peer")
}

func TestUnlikeBounds(t *testing.T) {
	other := func() fleet.MemberFrame { return replica(distribution([]float64{0.5, 5}, 20, 40, 0)) }
	var judge Judge
	report := judge.Judge(frameOf(t, usual(), other(), usual()), options(0.95))
	given(t, usualSeconds, report.Replicas[0].Latency[0].Value, "its own bounds suffice for its own quantile")
	refused(t, NoCommonBounds, report.Replicas[1].Latency[0].Ratio, "it has no bound of the others'")
	given(t, 1, report.Replicas[0].Latency[0].Ratio, "and blinds nobody else")
	given(t, 1, report.Spread[0])
	given(t, usualSeconds, report.Latency[0])

	// On the bounds that both have, 2 s and 4 s: 40, 20 and 30, 30.
	some := func() fleet.MemberFrame { return replica(distribution([]float64{2, 4, 8}, 30, 30, 0, 0)) }
	report = judge.Judge(frameOf(t, usual(), some()), options(0.95))
	given(t, usualSeconds, report.Replicas[0].Latency[0].Value)
	onCommon, peers := 2+2*17/20.0, 2+2*27/30.0
	given(t, onCommon/peers, report.Replicas[0].Latency[0].Ratio)
	given(t, peers/onCommon, report.Replicas[1].Latency[0].Ratio)
	given(t, 2+2*(114-70)/50.0, report.Latency[0])
	given(t, peers/(2+2*(114-70)/50.0), report.Spread[0])
}

func TestZeroBaseline(t *testing.T) {
	bounds := []float64{0, 1, 2}
	nothing := func() fleet.MemberFrame { return replica(distribution(bounds, 59, 1, 0, 0)) }
	var judge Judge
	report := judge.Judge(frameOf(t, nothing(), replica(distribution(bounds, 0, 30, 30, 0))), options(0.95))
	refused(t, ZeroBaseline, report.Replicas[1].Latency[0].Ratio)
	given(t, 1+27/30.0, report.Replicas[1].Latency[0].Value)
	assert.Equal(t, Figure{}, report.Replicas[0].Latency[0].Ratio, "zero over something is zero")
}

func TestUnboundedSideIsWithheld(t *testing.T) {
	// A finite upper bound of the 0.95 quantile takes 59 observations.
	for n, want := range map[uint64]Reason{58: Unbounded, 59: Given} {
		o := options(0.95)
		o.MinObservations = 1
		small := replica(distribution(latencies, 10, 10, n-20, 0, 0))
		large := replica(distribution(latencies, 1000, 1000, 1000, 0, 0))
		var judge Judge
		l := judge.Judge(frameOf(t, small, large), o).Replicas[0].Latency[0]
		assert.Equal(t, want.String(), l.HighRatio.Withheld.String(), "%d observations", n)
		assert.Equal(t, Given, l.LowRatio.Withheld)
		assert.Equal(t, Given, l.Ratio.Withheld)
	}
}

func TestFewObservationsAmongPeers(t *testing.T) {
	var judge Judge
	report := judge.Judge(frameOf(t, usual(), usual()), options(0.95))
	given(t, 1, report.Replicas[0].Latency[0].Ratio)
	o := options(0.95)
	o.MinReplicas = 1
	report = judge.Judge(frameOf(t, usual(), replica(distribution(latencies, 0, 59, 0, 0, 0))), o)
	refused(t, FewObservations, report.Replicas[0].Latency[0].Ratio)
}

func TestDepartedReplicasCountInTheFleet(t *testing.T) {
	f := frameOf(t, usual(), usual())
	f.Departed = []fleet.MemberFrame{replica(distribution(latencies, 0, 0, 0, 120, 0))}
	var judge Judge
	report := judge.Judge(f, options(0.95))
	// 40, 40, 40, 120: rank 228 lies at 3 + 108/120 s.
	given(t, 3.9, report.Latency[0])
	require.Len(t, report.Replicas, 2, "who has departed is not judged")
	// Peers: 20, 20, 20, 120, rank 171.
	given(t, usualSeconds/(3+111/120.0), report.Replicas[0].Latency[0].Ratio)
	given(t, usualSeconds/3.9, report.Spread[0])
}

func TestWarmingReplicaCountsInTheFleetAndIsNoCandidate(t *testing.T) {
	young := replica(distribution(latencies, 0, 0, 0, 120, 0))
	young.Warming = true
	var judge Judge
	report := judge.Judge(frameOf(t, usual(), usual(), young), options(0.95))
	given(t, 3.9, report.Latency[0])
	given(t, usualSeconds/3.9, report.Spread[0])
}

func TestUnreliableReplicaDoesNotCountInTheFleet(t *testing.T) {
	broken := replica(distribution(latencies, 0, 0, 0, 120, 0))
	broken.Told[0].Unreliable = true
	var judge Judge
	given(t, usualSeconds, judge.Judge(frameOf(t, usual(), usual(), broken), options(0.95)).Latency[0])
}

func TestStatesAndCoverage(t *testing.T) {
	silent := func(change func(*fleet.MemberFrame)) fleet.MemberFrame {
		m := replica(fleet.Distribution{})
		change(&m)
		return m
	}
	var judge Judge
	report := judge.Judge(frameOf(
		t, usual(), usual(), usual(),
		silent(func(m *fleet.MemberFrame) { m.Warming = true }),
		silent(func(m *fleet.MemberFrame) { m.Unreachable = true }),
		silent(func(m *fleet.MemberFrame) { m.Unreachable = true }),
		silent(func(*fleet.MemberFrame) {}), silent(func(*fleet.MemberFrame) {}),
	), options(0.95))
	assert.Equal(t, [StateCount]int{Judged: 3, StillWarming: 1, Unreachable: 2, AllWithheld: 2}, report.States)
	given(t, 3.0/8, report.Coverage)

	report = judge.Judge(frameOf(t), options(0.95))
	assert.Equal(t, [StateCount]int{}, report.States, "nothing is left of the frame before")
	refused(t, ZeroBaseline, report.Coverage, "of nobody, nobody")
	assert.Empty(t, report.Replicas)
}

func TestReplicaIsJudgedIfAnyRatioIsGiven(t *testing.T) {
	o := options(0.95)
	o.Signals = []fleet.Signal{fleet.TTFT, fleet.ITL}
	o.Quantiles = []float64{0.5, 0.95}
	member := func(second fleet.Distribution) fleet.MemberFrame {
		m := usual()
		m.Told = append(m.Told, second)
		return m
	}
	var judge Judge
	report := judge.Judge(frameOf(t, member(fleet.Distribution{}), member(distribution(latencies, 0, 60, 0, 0, 0))), o)
	assert.Equal(t, Judged, report.Replicas[0].State)
	require.Len(t, report.Replicas[0].Latency, 4)
	given(t, 1.5, report.Replicas[1].Latency[0].Value, "signal after signal, quantile after quantile")
	given(t, usualSeconds, report.Replicas[1].Latency[1].Value)
	given(t, 1.5, report.Replicas[1].Latency[2].Value)
	given(t, 1.95, report.Replicas[1].Latency[3].Value)
	refused(t, NotReported, report.Replicas[0].Latency[2].Value)
}

func TestNamesAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for r := range ReasonCount {
		seen[r.String()] = true
	}
	for s := range StateCount {
		if s != StillWarming { // a state and a reason in one
			seen[s.String()] = true
		}
	}
	assert.Len(t, seen, int(ReasonCount)+int(StateCount)-1)
	assert.Equal(t, "unknown", ReasonCount.String())
	assert.Equal(t, "unknown", StateCount.String())
}

// TestSignalThatNobodyTells: the fleet has no such figure, which is another
// thing than too few observations.
func TestSignalThatNobodyTells(t *testing.T) {
	var judge Judge
	silent := func() fleet.MemberFrame { return replica(fleet.Distribution{}) }
	report := judge.Judge(frameOf(t, silent(), silent()), options(0.95))
	refused(t, NotReported, report.Latency[0])
	refused(t, NotReported, report.Spread[0])
	report = judge.Judge(frameOf(t, silent(), silent(), usual()), options(0.95))
	given(t, usualSeconds, report.Latency[0])
	refused(t, FewReplicas, report.Spread[0])
}

// TestEnginesAreNotCompared: what a latency is differs from engine to engine.
func TestEnginesAreNotCompared(t *testing.T) {
	other := usual()
	other.Identity.Engine = "sglang"
	for i := range 3 { // of each engine more than one, and one
		members := []fleet.MemberFrame{usual(), other, usual()}[:2+min(i, 1)]
		var judge Judge
		report := judge.Judge(frameOf(t, members...), options(0.95))
		refused(t, MixedEngines, report.Latency[0])
		refused(t, MixedEngines, report.Spread[0])
		for _, r := range report.Replicas {
			given(t, usualSeconds, r.Latency[0].Value, "its own latency is what it is")
			refused(t, MixedEngines, r.Latency[0].Ratio)
			refused(t, MixedEngines, r.Latency[0].LowRatio)
			refused(t, MixedEngines, r.Latency[0].HighRatio)
		}
		assert.Equal(t, len(members), report.States[AllWithheld])
	}
}
