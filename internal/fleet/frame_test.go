// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/window"
)

func TestDepartedReplicaCountsUntilItsPanesLeave(t *testing.T) {
	tl := newTimeline()
	gone, stays := tl.scrape(1, "gone"), tl.scrape(2, "stays")
	tl.scraped(3, 600, gone.steady) // for the last time at 588 s
	tl.scraped(3, 1000, stays.steady)
	views := tl.run(990)

	// Three intervals of silence end at 633 s.
	assert.Contains(t, views[630].members, "gone")
	for end := 660; end < 900; end += 30 {
		v := views[end]
		assert.NotContains(t, v.members, "gone", "at %d s", end)
		// Of its samples, 15 s apart from 3 s to 588 s, those later than
		// end - 300 s each stand for 15 first tokens.
		left := uint64(0)
		for at := 18; at <= 588; at += 15 {
			if at > end-300 {
				left += 15
			}
		}
		assert.Equal(t, map[string]uint64{"gone": left}, v.departed, "at %d s", end)
		assert.Equal(t, perWindow+left, v.pool, "at %d s", end)
	}
	assert.Equal(t, perWindow, views[900].pool)
	assert.Empty(t, views[930].departed)
}

func TestReturnInTimeIsNoJoin(t *testing.T) {
	tl := newTimeline()
	s := tl.scrape(1, "a")
	tl.scraped(3, 600, s.steady)
	tl.scraped(633, 700, s.steady) // exactly three intervals after 588 s
	views := tl.run(690)
	for end := 330; end <= 690; end += 30 {
		require.Contains(t, views[end].members, "a")
		assert.False(t, views[end].members["a"].warming, "at %d s", end)
	}
	assert.Equal(t, perWindow, views[690].members["a"].observations, "the gap is bridged")
}

func TestReturnAfterDepartureWarmsAgain(t *testing.T) {
	tl := newTimeline()
	s := tl.scrape(1, "a")
	tl.scraped(3, 600, s.steady)
	tl.scraped(697, 1100, s.steady)
	views := tl.run(1080)
	assert.Contains(t, views[690].departed, "a")
	for end := 720; end <= 1080; end += 30 {
		require.Contains(t, views[end].members, "a", "at %d s", end)
		assert.Equal(t, end < 997, views[end].members["a"].warming, "at %d s", end)
	}
	assert.Equal(t, perWindow, views[1080].members["a"].observations)
}

func TestAbsenceBetweenTwoEvaluationsIsADeparture(t *testing.T) {
	tl := newTimeline()
	s := tl.scrape(1, "a")
	for at := 0; at <= 1000; at += 5 { // it may be silent for 15 s
		if at <= 605 || at >= 623 {
			tl.events = append(tl.events, event{after(at), func() { s.steady(after(at)) }})
		}
	}
	views := tl.run(960)
	assert.False(t, views[600].members["a"].warming)
	for end := 630; end <= 960; end += 30 {
		require.Contains(t, views[end].members, "a", "at %d s", end)
		assert.Equal(t, end < 925, views[end].members["a"].warming, "at %d s", end) // back at 625 s
	}
}

// The page of a return may be there before the pane that ends in the absence
// is judged.
func TestReturnAfterTheEndLeavesDepartedPanesInTheWindow(t *testing.T) {
	tl := newTimeline()
	s := tl.scrape(1, "a")
	tl.scraped(3, 600, s.steady)
	tl.scraped(692, 800, s.steady)
	v := tl.run(690)[690]
	assert.NotContains(t, v.members, "a", "at 690 s it was not there")
	// Its samples later than 390 s: from 393 s to 588 s.
	assert.Equal(t, map[string]uint64{"a": 14 * 15}, v.departed)
	assert.Equal(t, uint64(14*15), v.pool)
}

func TestDepartedAfterIsWhatIsSet(t *testing.T) {
	tl := newTimeline(func(o *Options) { o.DepartedAfter = 2 * time.Minute })
	s := tl.scrape(1, "a")
	tl.scraped(0, 571, s.steady) // for the last time at 570 s
	views := tl.run(690)
	assert.Contains(t, views[660].members, "a")
	assert.Contains(t, views[690].departed, "a", "exactly two minutes later, as in PromQL's left-open lookback")
}

func TestUnreachableReplicaKeepsItsEvidence(t *testing.T) {
	tl := newTimeline()
	s := tl.scrape(1, "a")
	tl.scraped(3, 400, func(at window.Instant) {
		s.steady(at)
		s.gauge(at, Waiting, 4)
	})
	tl.scraped(408, 600, s.fail)
	tl.scraped(603, 700, func(at window.Instant) {
		s.steady(at)
		s.gauge(at, Waiting, 2)
	})
	views := tl.run(690)

	require.Contains(t, views[420].members, "a", "a failed scrape is heard from")
	m := views[420].members["a"]
	assert.True(t, m.unreachable)
	assert.False(t, m.warming)
	// Its samples, 15 s apart, those from 123 s to 393 s in the window.
	assert.Equal(t, uint64(19*15), m.observations, "counters keep what they counted")
	waiting := m.load[LoadOf(Waiting)]
	assert.False(t, waiting.NowKnown, "a gauge has no value while nobody tells it")
	assert.True(t, waiting.MeanKnown)
	assert.InDelta(t, 4, waiting.Mean, 1e-9)

	require.Contains(t, views[600].members, "a", "failing for long is no departure")
	m = views[690].members["a"]
	assert.False(t, m.unreachable)
	assert.False(t, m.warming, "a return from an outage is no join")
	assert.Equal(t, perWindow, m.observations, "what it did meanwhile is counted")
	assert.True(t, m.load[LoadOf(Waiting)].NowKnown)
}

func TestFirstPageAfterTheEndIsNoMemberYet(t *testing.T) {
	tl := newTimeline()
	s := tl.scrape(1, "a")
	tl.scraped(32, 100, s.steady)
	views := tl.run(60)
	assert.Empty(t, views[30].members)
	assert.Empty(t, views[30].departed)
	assert.NotEmpty(t, tl.registry.targets)
	assert.Contains(t, views[60].members, "a")
}

func TestRequestsAreSummedOverRanksAndUsageIsTheirMean(t *testing.T) {
	tl := newTimeline()
	for rank, value := range map[ID]float64{1: 0.2, 2: 0.6} {
		s := tl.scrape(rank, "a") // two ports of one pod
		s.process = float64(rank) // two processes
		tl.scraped(0, 400, func(at window.Instant) {
			s.total(at, uint64(rank)*1000)
			s.gauge(at, KVUsage, value)
			s.gauge(at, Running, 10*value)
		})
	}
	// A rank that is there for the last fifth of the window counts for a fifth.
	late := tl.scrape(3, "a")
	late.process = 3
	tl.scraped(330, 400, func(at window.Instant) {
		late.total(at, 1)
		late.gauge(at, KVUsage, 1)
		late.gauge(at, Running, 50)
	})
	m := tl.run(390)[390].members["a"]
	usage, running := m.load[LoadOf(KVUsage)], m.load[LoadOf(Running)]
	assert.InDelta(t, (0.2*300+0.6*300+1*60)/660, usage.Mean, 1e-9)
	assert.InDelta(t, 0.6, usage.Now, 1e-9)
	assert.InDelta(t, (2*300+6*300+50*60)/300.0, running.Mean, 1e-9)
	assert.InDelta(t, 58, running.Now, 1e-9)
}

func TestDistributionOfRanks(t *testing.T) {
	// Two ranks of one replica, each with its own buckets and what they gained.
	type rank struct {
		bounds []float64
		sum    float64
		counts []uint64
	}
	unknown := math.NaN()
	for name, tc := range map[string]struct {
		ranks  []rank
		bounds []float64
		sum    float64 // NaN: unknown
		counts []uint64
	}{
		"one": {[]rank{{[]float64{1, 2}, 20, []uint64{1, 2, 3}}}, []float64{1, 2}, 20, []uint64{1, 2, 3}},
		"equal bounds": {
			[]rank{{[]float64{1, 2}, 20, []uint64{1, 2, 3}}, {[]float64{1, 2}, 9, []uint64{4, 0, 1}}},
			[]float64{1, 2},
			29,
			[]uint64{5, 2, 4},
		},
		"differing bounds": {
			[]rank{{[]float64{1, 2}, 20, []uint64{1, 2, 3}}, {[]float64{2, 4}, 9, []uint64{4, 1, 1}}},
			[]float64{2},
			29,
			[]uint64{7, 5},
		},
		"a sum of the unknown is unknown": {
			[]rank{{[]float64{1, 2}, 20, []uint64{1, 2, 3}}, {[]float64{1, 2}, unknown, []uint64{4, 0, 1}}},
			[]float64{1, 2},
			unknown,
			[]uint64{5, 2, 4},
		},
		"an idle rank says nothing about bounds": {
			[]rank{{[]float64{1, 2}, 20, []uint64{1, 2, 3}}, {[]float64{2, 4}, 0, []uint64{0, 0, 0}}},
			[]float64{1, 2},
			20,
			[]uint64{1, 2, 3},
		},
		"count and sum alone add nothing to buckets": {
			[]rank{{[]float64{1, 2}, 20, []uint64{1, 2, 3}}, {nil, 9, []uint64{9}}},
			[]float64{1, 2},
			20,
			[]uint64{1, 2, 3},
		},
		"count and sum alone are added to each other": {
			[]rank{{nil, 9, []uint64{9}}, {nil, 3, []uint64{4}}},
			nil, 12,
			[]uint64{13},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, reversed := range []bool{false, true} {
				tl := newTimeline()
				s := tl.scrape(1, "a")
				ranks := slices.Clone(tc.ranks)
				if reversed {
					slices.Reverse(ranks)
				}
				for i, r := range ranks {
					s.page(after(3), func(target *Target) error {
						series, err := target.Join(ID(i), &s.identity, TTFT, Spelling{Rank: ID(i)})
						series.Touch(after(3))
						series.ObserveHistogram(r.bounds, &window.Sample{At: after(3), Counts: make([]uint64, len(r.counts))})
						series.ObserveHistogram(r.bounds, &window.Sample{At: after(18), Sum: r.sum, Counts: r.counts})
						return err
					})
				}
				tl.registry.Close(after(30), Ask{Signals: []Signal{TTFT}}, func(f *Frame) {
					d := &f.Members[0].Told[0]
					assert.Equal(t, tc.bounds, d.Layout.Bounds())
					assert.Equal(t, tc.counts, d.Counts)
					assert.Equal(t, !math.IsNaN(tc.sum), d.SumKnown)
					if d.SumKnown {
						assert.InDelta(t, tc.sum, d.Sum, 1e-9)
					}
				})
			}
		})
	}
}

func TestUnreliableReplicaIsNotCounted(t *testing.T) {
	tl := newTimeline()
	s, sound := tl.scrape(1, "a"), tl.scrape(2, "b")
	process := uint64(0)
	tl.scraped(3, 200, func(at window.Instant) {
		process = 1000 - process // two processes answer in turn
		s.total(at, process+uint64(at.Sub(noon).Seconds()))
	})
	tl.scraped(3, 200, sound.steady)
	tl.registry.Close(after(30), Ask{}, func(*Frame) {})
	v := tl.run(180)[180]
	assert.Zero(t, v.members["a"].observations)
	assert.Equal(t, v.members["b"].observations, v.pool)
	assert.Positive(t, v.pool)
}

func TestChangedBoundsBeginANewSeries(t *testing.T) {
	tl := newTimeline()
	s := tl.scrape(1, "a")
	tell := func(at int, bounds []float64, counts ...uint64) {
		s.page(after(at), func(target *Target) error {
			series, err := s.series(target, TTFT)
			series.Touch(after(at))
			series.ObserveHistogram(bounds, &window.Sample{At: after(at), Counts: counts})
			return err
		})
	}
	former, current := []float64{1, 2}, []float64{2, 4}
	tell(3, former, 10, 0, 0)
	tell(18, former, 12, 3, 1)
	tell(33, current, 500, 500, 500) // the first with these bounds: a baseline
	tell(38, current, 501, 502, 500)
	v := tl.run(30)
	assert.Equal(t, uint64(6), v[30].members["a"].observations)
	v = tl.run(60)
	assert.Equal(t, uint64(6+3), v[60].members["a"].observations, "what the former series counted stays")
	tell(65, former, 14, 3, 1)
	v = tl.run(90)
	assert.Equal(t, uint64(6+3+2), v[90].members["a"].observations, "former bounds go on where they stopped")
}
