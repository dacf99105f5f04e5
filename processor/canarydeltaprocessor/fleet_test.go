// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Pages of twenty engines take long under the race detector.
//go:build !race

package canarydeltaprocessor

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/scenariotest"
	"github.com/llmfleet/llmfleet/internal/scrapetest"
)

const (
	scrapeEvery = 30 * time.Second
	rolledOut   = 10 * time.Minute // when the scenarios replace three replicas
	watched     = 15 * time.Minute // from then on
)

// play plays a scenario of the simulator through the processor, in simulated time:
// the pages of its engines, each scraped at its own moment while there is one.
func play(t *testing.T, scenario string, lasts time.Duration) (told scenariotest.Told) {
	t.Helper()
	s, err := fleetsim.Builtin(scenario)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		config := subject.Defaults()
		stage := subject.Stage(t, config)
		sim, err := fleetsim.New(s, stage.Began)
		require.NoError(t, err)
		stage.Raise()
		targets := sim.Targets()
		scrapers := make([]*scrapetest.Scraper, len(targets))
		for i, target := range targets {
			scrapers[i] = scrapetest.NewScraper(target.Name(), nil)
		}
		for tick := time.Duration(0); tick < lasts; tick += scrapeEvery {
			for i, target := range targets {
				at := tick + scrapeEvery*time.Duration(i)/time.Duration(len(targets))
				scenariotest.Wait(stage.Began.Add(at))
				sim.AdvanceTo(at)
				if !target.Exists() {
					continue
				}
				page, status := target.AppendPage(nil)
				require.Equal(t, http.StatusOK, status)
				md, err := scrapers[i].Scrape(string(page), target.Labels(), time.Now())
				require.NoError(t, err)
				stage.Consume(md)
			}
		}
		scenariotest.Wait(stage.Began.Add(lasts + config.Lateness + time.Millisecond))
		stage.Shutdown()
		told = stage.Told(t)
	})
	return told
}

// is tells whether a flag of a measure is on at a time.
func is(points []scenariotest.Point, metric, measure, verdict string) bool {
	for _, p := range points {
		if p.Name == metric && p.Labels["measure"] == measure && p.Labels["verdict"] == verdict {
			return p.Value == 1
		}
	}
	return false
}

// TestCanaryOfASimulatedFleet: a revision whose first tokens take 1.3 times as long,
// on three replicas of twenty, fails within 15 panes; its answers, which are
// shorter, fail that measure, too.
func TestCanaryOfASimulatedFleet(t *testing.T) {
	told := play(t, "canary", rolledOut+watched)
	for at := time.Minute; at <= rolledOut; at += time.Minute {
		assert.Empty(t, told[at], "%s", at)
	}
	assert.True(t, is(told[rolledOut+2*time.Minute], emit.CanaryVerdict, "overall", "inconclusive"))
	last := told[rolledOut+watched]
	assert.True(t, is(last, emit.CanaryVerdict, "overall", "fail"))
	assert.True(t, is(last, emit.CanaryDriver, "ttft", ""))
	assert.True(t, is(last, emit.CanaryVerdict, "output_length", "fail"))
	i := slices.IndexFunc(last, func(p scenariotest.Point) bool {
		return p.Name == emit.CanaryRatio && p.Labels["measure"] == "ttft" && p.Labels["statistic"] == "mean"
	})
	require.GreaterOrEqual(t, i, 0)
	assert.InDelta(t, 1.3, last[i].Value, 0.1)
}

// TestHealthyCanaryOfASimulatedFleet: the same rollout of a revision that does what
// the one before did passes, and never fails.
func TestHealthyCanaryOfASimulatedFleet(t *testing.T) {
	told := play(t, "canary_aa", rolledOut+watched)
	for at := rolledOut + 2*time.Minute; at <= rolledOut+watched; at += time.Minute {
		assert.False(t, is(told[at], emit.CanaryVerdict, "overall", "fail"), "%s", at)
	}
	assert.True(t, is(told[rolledOut+watched], emit.CanaryVerdict, "overall", "pass"))
}
