// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/window"
)

func TestReplicasToTheLimit(t *testing.T) {
	const limit = 3
	tl := newTimeline(func(o *Options) { o.MaxReplicas = limit })
	join := func(n int) error {
		target, err := tl.registry.Acquire(ID(n), true)
		require.NoError(t, err)
		defer target.Unlock()
		s := tl.scrape(ID(n), fmt.Sprint(n))
		_, err = s.series(target, TTFT)
		return err
	}
	for n := 1; n <= limit; n++ {
		require.NoError(t, join(n))
	}
	require.ErrorIs(t, join(limit+1), ErrLimit)
	require.NoError(t, join(1), "who is in stays in")
	members, most := tl.registry.Members()
	assert.Equal(t, limit, members)
	assert.Equal(t, limit, most)

	tl.run(360) // nobody was heard: all is forgotten, and there is room again
	assertForgotten(t, tl.registry)
	require.NoError(t, join(limit+1))
}

func TestOneReplicaInTwoFleetsCountsTwice(t *testing.T) {
	tl := newTimeline(func(o *Options) { o.MaxReplicas = 2 })
	target, err := tl.registry.Acquire(1, true)
	require.NoError(t, err)
	defer target.Unlock()
	for i, model := range []string{"m", "n"} {
		id := Identity{Replica: "a", Keys: []Label{{"model_name", model}}}
		_, err := target.Join(ID(i), &id, TTFT, Spelling{})
		require.NoError(t, err)
	}
	_, err = target.Join(9, &Identity{Replica: "a", Keys: []Label{{"model_name", "o"}}}, TTFT, Spelling{})
	require.ErrorIs(t, err, ErrLimit)
	assert.Len(t, tl.registry.fleets, 2, "a refused replica makes no fleet")
}

func TestTargetsToTheLimit(t *testing.T) {
	tl := newTimeline(func(o *Options) { o.MaxReplicas = 1 })
	acquire := func(id ID, create bool) (*Target, error) {
		target, err := tl.registry.Acquire(id, create)
		if target != nil {
			target.Unlock()
		}
		return target, err
	}
	for id := range ID(targetsPerReplica) {
		target, err := acquire(id, true)
		require.NoError(t, err)
		require.NotNil(t, target)
	}
	target, err := acquire(targetsPerReplica, true)
	require.ErrorIs(t, err, ErrLimit)
	assert.Nil(t, target)
	target, err = acquire(targetsPerReplica, false)
	require.NoError(t, err, "nothing new was asked for")
	assert.Nil(t, target)
	again, err := acquire(0, true)
	require.NoError(t, err)
	assert.NotNil(t, again)

	tl.run(30) // a target without replicas is kept for no longer than a pane
	assertForgotten(t, tl.registry)
}

func TestSeriesToTheLimit(t *testing.T) {
	tl := newTimeline(func(o *Options) { o.MaxReplicas = 1 })
	target, err := tl.registry.Acquire(1, true)
	require.NoError(t, err)
	defer target.Unlock()
	id := tl.scrape(1, "a").identity
	for n := range ID(seriesPerReplica) {
		_, err := target.Join(n, &id, TTFT, Spelling{Rank: n})
		require.NoError(t, err)
	}
	_, err = target.Join(seriesPerReplica, &id, TTFT, Spelling{})
	require.ErrorIs(t, err, ErrLimit)
	target.drop(0)
	_, err = target.Join(seriesPerReplica, &id, TTFT, Spelling{})
	require.NoError(t, err)
}

func TestDepartedReplicasMakeRoom(t *testing.T) {
	tl := newTimeline(func(o *Options) { o.MaxReplicas = 1 })
	old, fresh := tl.scrape(1, "old"), tl.scrape(2, "new")
	tl.scraped(3, 60, old.steady)
	tl.run(60)
	join := func(s *scrape) error {
		target, err := tl.registry.Acquire(s.target, true)
		require.NoError(t, err)
		defer target.Unlock()
		_, err = s.series(target, TTFT)
		return err
	}
	require.ErrorIs(t, join(fresh), ErrLimit, "the old one was heard just now")
	tl.run(120)
	require.NoError(t, join(fresh), "its panes are still in the window, but it is gone")
	third := tl.scrape(3, "third")
	require.ErrorIs(t, join(third), ErrLimit)
}

func TestOneSenderCannotBeInAllFleets(t *testing.T) {
	tl := newTimeline()
	target, err := tl.registry.Acquire(1, true)
	require.NoError(t, err)
	defer target.Unlock()
	join := func(replica string, model int) error {
		id := tl.scrape(1, replica).identity
		id.Keys = []Label{{"model_name", strconv.Itoa(model)}}
		_, err := target.Join(ID(1000*len(replica)+model), &id, TTFT, Spelling{})
		return err
	}
	for model := range fleetsPerReplica {
		require.NoError(t, join("a", model))
	}
	require.ErrorIs(t, join("a", fleetsPerReplica), ErrLimit)
	require.NoError(t, join("bb", fleetsPerReplica))
}

func TestOneReplicaCannotTakeAllSeries(t *testing.T) {
	tl := newTimeline()
	target, err := tl.registry.Acquire(1, true)
	require.NoError(t, err)
	defer target.Unlock()
	runaway, other := tl.scrape(1, "a").identity, tl.scrape(1, "b").identity
	for n := range ID(seriesPerSource) {
		_, err := target.Join(n, &runaway, TTFT, Spelling{})
		require.NoError(t, err)
	}
	_, err = target.Join(seriesPerSource, &runaway, TTFT, Spelling{})
	require.ErrorIs(t, err, ErrLimit)
	_, err = target.Join(seriesPerSource, &other, TTFT, Spelling{})
	require.NoError(t, err)
}

func TestRefusedPointsAreRememberedToALimit(t *testing.T) {
	tl := newTimeline()
	target, err := tl.registry.Acquire(1, true)
	require.NoError(t, err)
	defer target.Unlock()
	for id := range ID(3 * maxRefused) {
		target.Refuse(id, 7)
		require.LessOrEqual(t, len(target.refused), maxRefused)
		why, ok := target.Refused(id)
		require.True(t, ok)
		require.Equal(t, uint8(7), why)
	}
	_, ok := target.Refused(3 * maxRefused)
	assert.False(t, ok)
}

func TestEverythingIsForgottenAfterDeparture(t *testing.T) {
	tl := newTimeline()
	one, two, other := tl.scrape(1, "a"), tl.scrape(2, "a"), tl.scrape(3, "b")
	other.identity.Keys = []Label{{"model_name", "n"}}
	tl.scraped(3, 600, one.steady)
	tl.scraped(5, 600, two.steady) // a copy
	tl.scraped(7, 600, func(at window.Instant) { other.gauge(at, Waiting, 3) })
	tl.run(600)
	assert.Len(t, tl.registry.targets, 3)
	assert.Len(t, tl.registry.fleets, 2)
	assert.Equal(t, 2, tl.registry.members)
	assert.Equal(t, int64(3), tl.registry.seriesCount.Load())

	tl.run(870) // the last pages came at 588 s, 590 s and 592 s
	assert.Equal(t, int64(3), tl.registry.seriesCount.Load(), "still in the window")
	tl.run(900)
	assertForgotten(t, tl.registry)
}

func TestSeriesThatVanishesInALiveTargetIsForgotten(t *testing.T) {
	tl := newTimeline()
	s := tl.scrape(1, "a")
	tl.scraped(3, 1000, s.steady)
	tl.scraped(3, 300, func(at window.Instant) { s.gauge(at, Waiting, 3) })
	tl.run(300)
	assert.Equal(t, int64(2), tl.registry.seriesCount.Load())
	tl.run(900)
	assert.Equal(t, int64(1), tl.registry.seriesCount.Load())
	assert.Equal(t, 1, tl.registry.members)
}

func TestFleetsAreJudgedInTheOrderOfTheirKeys(t *testing.T) {
	tl := newTimeline()
	for i, model := range []string{"c", "a", "b"} {
		s := tl.scrape(ID(i), "r")
		s.identity.Keys = []Label{{"model_name", model}}
		s.steady(after(3))
	}
	var order []string
	tl.registry.Close(after(30), Ask{Signals: []Signal{TTFT}}, func(f *Frame) { order = append(order, f.Fleet.Keys[0].Value) })
	assert.Equal(t, []string{"a", "b", "c"}, order)
}

func TestEachFleetHasItsOwnWindow(t *testing.T) {
	tl := newTimeline(func(o *Options) {
		o.Grids = append(o.Grids, window.NewGrid(interval, time.Minute, lateness))
		o.Grid = func(keys []Label) int {
			if keys[0].Value == "short" {
				return 1
			}
			return 0
		}
	})
	short := tl.scrape(1, "a")
	short.identity.Keys = []Label{{"model_name", "short"}}
	tl.scraped(3, 400, short.steady)
	views := tl.run(390)
	assert.Equal(t, uint64(60), views[390].members["a"].observations)
	assert.True(t, views[60].members["a"].warming)
	assert.False(t, views[90].members["a"].warming)
}

func TestPointsOfOtherTimesAreNotTaken(t *testing.T) {
	tl := newTimeline()
	target, err := tl.registry.Acquire(1, true)
	require.NoError(t, err)
	defer target.Unlock()
	s := tl.scrape(1, "a")
	histogram, err := s.series(target, TTFT)
	require.NoError(t, err)
	gauge, err := s.series(target, Waiting)
	require.NoError(t, err)
	for at, want := range map[int]window.Outcome{-270: window.Late, 41: window.Future} {
		outcome, heard := histogram.ObserveHistogram(bounds, &window.Sample{At: after(at), Counts: []uint64{1, 1, 1}})
		assert.Equal(t, want, outcome)
		assert.True(t, heard)
		outcome, _ = gauge.ObserveGauge(after(at), 1)
		assert.Equal(t, want, outcome)
	}
	assert.Zero(t, histogram.at())
	assert.Zero(t, gauge.at())
	assert.Equal(t, "a", gauge.Replica())
	assert.Equal(t, Waiting, gauge.Signal())
}

func TestRefusalHoldsUntilTheNextEvaluation(t *testing.T) {
	tl := newTimeline()
	s := tl.scrape(1, "a")
	s.steady(after(3))
	target, err := tl.registry.Acquire(1, false)
	require.NoError(t, err)
	target.Refuse(7, 3)
	target.Unlock()
	tl.run(30)
	target.Lock()
	defer target.Unlock()
	_, refused := target.Refused(7)
	assert.False(t, refused)
}

func TestFormerLayoutsAreKeptToALimit(t *testing.T) {
	tl := newTimeline()
	tl.scrape(1, "a").steady(after(3))
	target, err := tl.registry.Acquire(1, false)
	require.NoError(t, err)
	defer target.Unlock()
	for _, s := range target.series.all() {
		for i := range 3 * maxFormer {
			sample := window.Sample{At: after(10 + i), Counts: []uint64{1, 1}}
			s.ObserveHistogram([]float64{float64(i + 100)}, &sample)
			former := 0
			for f := s.former(); f != nil; f = f.next {
				former++
			}
			assert.LessOrEqual(t, former, maxFormer)
		}
	}
}
