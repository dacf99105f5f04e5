// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Hours of simulated pages take minutes under the race detector.
//go:build !race

package tenantshareprocessor

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
	strikes     = 60 * time.Minute // when the fault of the scenarios does
	ceases      = 90 * time.Minute
	crowd       = 19 // tenants beside the one that is named: pages of two hundred take long to read
)

// play plays a scenario of the simulator through the processor, in simulated time:
// the pages of its engines and of its gateway, each scraped at its own moment.
func play(t *testing.T, scenario string, lasts time.Duration) (told scenariotest.Told) {
	t.Helper()
	s, err := fleetsim.Builtin(scenario)
	require.NoError(t, err)
	s.GatewayPage = true
	s.Fleets[0].Tenants.Count = crowd
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

// named are the tenants that were noisy at a time.
func named(told []scenariotest.Point) (tenants []string) {
	for _, p := range told {
		if p.Name == emit.TenantNoisy && p.Value == 1 {
			tenants = append(tenants, p.Labels["tenant"])
		}
	}
	return tenants
}

// value is that of one metric and tenant at a time.
func value(t *testing.T, told []scenariotest.Point, metric, tenant string) float64 {
	t.Helper()
	i := slices.IndexFunc(told, func(p scenariotest.Point) bool { return p.Name == metric && p.Labels["tenant"] == tenant })
	require.GreaterOrEqual(t, i, 0, "%s of %q is not told", metric, tenant)
	return told[i].Value
}

// TestNoisyNeighbourOfASimulatedFleet: one of twenty tenants goes from 5 to
// 45 % of the uncached input, everyone's latency from 20 to 28 ms, and after half
// an hour it is over. What a pane of it measures differs from the next by more
// than their mean may be wrong.
func TestNoisyNeighbourOfASimulatedFleet(t *testing.T) {
	told := play(t, "noisy_neighbour", ceases+10*time.Minute)
	var noisy []time.Duration
	excess := 0.0
	for at := time.Minute; at <= ceases+10*time.Minute; at += time.Minute {
		tenants := named(told[at])
		if len(tenants) == 0 {
			continue
		}
		require.Equal(t, []string{"acme"}, tenants, "%s", at)
		noisy = append(noisy, at)
		excess += value(t, told[at], emit.TenantITLExcess, "acme")
	}
	require.NotEmpty(t, noisy)
	onset, last := noisy[0], noisy[len(noisy)-1]
	assert.Greater(t, onset, strikes)
	assert.LessOrEqual(t, onset, strikes+5*time.Minute)
	assert.InDelta(t, ceases, last, float64(5*time.Minute))
	assert.Len(t, noisy, 1+int((last-onset)/time.Minute), "without a break")
	since := onset - time.Duration(value(t, told[onset], emit.TenantNoisyDuration, "acme")*float64(time.Second))
	assert.InDelta(t, strikes, since, float64(time.Minute))
	assert.InDelta(t, 0.40, value(t, told[onset], emit.TenantITLExcess, "acme"), 0.1)
	assert.InDelta(t, 0.40, excess/float64(len(noisy)), 0.1)
	assert.InDelta(t, 0.05, value(t, told[onset], emit.TenantUsualShare, "acme"), 0.01)
	assert.InDelta(t, 0.020, value(t, told[onset], emit.FleetUsualITL, ""), 0.001)
}

// TestSurgeOfASimulatedFleet: everyone sends twice as much, everyone's latency
// goes from 20 to 28 ms, and nobody is named.
func TestSurgeOfASimulatedFleet(t *testing.T) {
	told := play(t, "surge", ceases)
	for at := time.Minute; at <= ceases; at += time.Minute {
		assert.Empty(t, named(told[at]), "%s", at)
	}
	assert.Greater(t, value(t, told[ceases], emit.FleetITL, ""), 0.025)
}
