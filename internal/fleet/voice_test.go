// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/llmfleet/llmfleet/internal/window"
)

// named is a scrape of one replica that tells time to first token by the name
// with that place in the order of preference.
func named(tl *timeline, alias uint8) *scrape {
	s := tl.scrape(1, "a")
	s.spelling = Spelling{Alias: alias}
	return s
}

func TestOneSignalByTwoNamesCountsOnce(t *testing.T) {
	for name, order := range map[string][2]uint8{"newer name first on the page": {0, 1}, "older name first": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			tl := newTimeline()
			for _, alias := range order {
				tl.scraped(3, 400, named(tl, alias).steady)
			}
			views := tl.run(390)
			assert.Equal(t, perWindow, views[330].members["a"].observations)
			assert.Equal(t, perWindow, views[390].members["a"].observations)
		})
	}
}

func TestNewerNameTakesOverAtOnce(t *testing.T) {
	tl := newTimeline()
	older, newer := named(tl, 1), named(tl, 0)
	tl.scraped(3, 900, older.steady)
	tl.scraped(408, 900, func(at window.Instant) { newer.total(at, uint64(2*at.Sub(after(400)).Seconds())) })
	views := tl.run(750)
	assert.Equal(t, perWindow, views[390].members["a"].observations)
	assert.Equal(t, uint64(0), views[420].members["a"].observations, "what the older name told is forgotten")
	assert.Equal(t, 2*perWindow, views[750].members["a"].observations)
}

func TestOlderNameSpeaksAgainWhenTheNewerIsSilent(t *testing.T) {
	tl := newTimeline()
	older, newer := named(tl, 1), named(tl, 0)
	tl.scraped(3, 1100, older.steady)
	tl.scraped(4, 400, func(at window.Instant) { newer.total(at, 7) })
	views := tl.run(1080)
	assert.Zero(t, views[420].members["a"].observations)
	assert.Equal(t, perWindow, views[1080].members["a"].observations)
}

func TestOneTensorParallelRankSpeaksForAll(t *testing.T) {
	tl := newTimeline()
	var ranks [3]*scrape
	for i := range ranks {
		ranks[i] = tl.scrape(1, "a")
		ranks[i].spelling = Spelling{Group: 7, Choice: ID(i + 1)}
	}
	tl.scraped(3, 600, ranks[0].steady)
	tl.scraped(3, 1300, ranks[1].steady)
	tl.scraped(3, 1300, ranks[2].steady)
	views := tl.run(1290)
	assert.Equal(t, perWindow, views[600].members["a"].observations)
	assert.Equal(t, perWindow, views[1290].members["a"].observations, "another one speaks when the first is silent")
	for end := 330; end <= 1290; end += 30 {
		assert.LessOrEqual(t, views[end].members["a"].observations, perWindow, "at %d s", end)
	}
}

func TestDataParallelRanksAllSpeak(t *testing.T) {
	tl := newTimeline()
	for i := range 2 {
		s := tl.scrape(1, "a")
		s.spelling = Spelling{Group: ID(7 + i), Choice: 1, Rank: ID(i)} // of two groups, one rank each
		id := ID(100 + i)
		tl.scraped(3, 400, func(at window.Instant) {
			s.page(at, func(target *Target) error {
				series, err := target.Series(id), error(nil)
				if series == nil {
					series, err = target.Join(id, &s.identity, TTFT, s.spelling)
				}
				n := uint64(at.Sub(noon).Seconds())
				series.Touch(at)
				_, heard := series.ObserveHistogram(bounds, &window.Sample{At: at, Counts: []uint64{n, 0, 0}})
				assert.True(t, heard)
				return err
			})
		})
	}
	assert.Equal(t, 2*perWindow, tl.run(390)[390].members["a"].observations)
}

func TestUnheardSampleIsTold(t *testing.T) {
	tl := newTimeline()
	s := tl.scrape(1, "a")
	s.page(after(3), func(target *Target) error {
		for i, want := range []bool{true, false} {
			series, err := target.Join(ID(i), &s.identity, Waiting, Spelling{Alias: uint8(i)})
			if err != nil {
				return err
			}
			outcome, heard := series.ObserveGauge(after(3), float64(i))
			assert.Equal(t, window.Accepted, outcome)
			assert.Equal(t, want, heard)
		}
		return nil
	})
}
