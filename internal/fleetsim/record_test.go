// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const watchedFleet = `
fleets:
  - name: f
    engine: vllm
    model_name: m
    replicas: 3
    router: least_loaded
    prefix_hit_ratio: 0.4
    arrivals: {rate: 20, requests: 2000}
    tenants: {count: 20, tiers: [gold, trial], named: [{name: acme, share: 0.2}]}
`

// watch collects what a simulation hands out, and checks its order.
func watch(t *testing.T, sim *Simulation) *[]RequestRecord {
	t.Helper()
	var all []RequestRecord
	sim.Watch(func(records []RequestRecord) {
		require.NotEmpty(t, records)
		assert.LessOrEqual(t, records[len(records)-1].Ended.Sub(records[0].Ended), time.Second)
		for i := range records {
			if len(all) > 0 {
				require.False(t, records[i].Ended.Before(all[len(all)-1].Ended), "in order of time")
			}
			all = append(all, records[i])
		}
	})
	return &all
}

func TestRecordsSumToWhatTheEnginesCount(t *testing.T) {
	sim := simulate(t, watchedFleet)
	all := watch(t, sim)
	sim.AdvanceTo(5 * time.Minute)
	require.Len(t, *all, 2000)
	type totals struct{ prompt, cached, output, ttft, finished float64 }
	told, counted := map[string]totals{}, map[string]totals{}
	numbers := map[uint64]bool{}
	for _, r := range *all {
		numbers[r.Number] = true
		assert.Equal(t, http.StatusOK, r.Status)
		assert.NotEmpty(t, r.Tenant)
		sum := told[r.Replica]
		sum.prompt += float64(r.Prompt)
		sum.cached += float64(r.Cached)
		sum.output += float64(r.Output)
		sum.ttft += r.FirstToken.Sub(r.Arrived).Seconds()
		sum.finished++
		told[r.Replica] = sum
		assert.False(t, r.Scheduled.Before(r.Arrived))
		assert.True(t, r.FirstToken.After(r.Scheduled))
		assert.False(t, r.Ended.Before(r.FirstToken))
	}
	assert.Len(t, numbers, 2000, "each request once")
	for _, e := range sim.Engines() {
		s := e.Snapshot()
		assert.InDelta(t, s.TTFT.Sum, told[e.Name()].ttft, 1e-5, "nanoseconds are rounded")
		counted[e.Name()] = totals{s.PromptTokens, s.PrefixHits, s.GeneratedTokens, told[e.Name()].ttft, s.Finished}
	}
	assert.Equal(t, counted, told)
}

func TestWatchingChangesNothing(t *testing.T) {
	for _, name := range []string{"noisy_neighbour", "black_hole"} {
		s, err := Builtin(name)
		require.NoError(t, err)
		s.Faults[0].From = time.Minute
		watched, err := New(s, start)
		require.NoError(t, err)
		records := watch(t, watched)
		alone, err := New(s, start)
		require.NoError(t, err)
		assert.Equal(t, pageAt(t, alone, 0, 3*time.Minute), pageAt(t, watched, 0, 3*time.Minute))
		assert.NotEmpty(t, *records)
	}
}

func TestRecordsDoNotDependOnTheScrapes(t *testing.T) {
	often, seldom := simulate(t, watchedFleet), simulate(t, watchedFleet)
	one, other := watch(t, often), watch(t, seldom)
	for at := time.Duration(0); at < 2*time.Minute; at += 700 * time.Millisecond {
		often.AdvanceTo(at)
	}
	often.AdvanceTo(2 * time.Minute)
	seldom.AdvanceTo(2 * time.Minute)
	assert.Equal(t, *one, *other)
}

func TestFailuresAreTold(t *testing.T) {
	sim := simulate(t, watchedFleet+`
faults:
  - {kind: errors, replicas: [0], share: 0.5, from: 10s, to: 20s}
  - {kind: restart, replicas: [1], from: 30s, to: 31s}
`)
	all := watch(t, sim)
	sim.AdvanceTo(30*time.Second - time.Nanosecond)
	onBoard := sim.Engines()[1].Snapshot()
	failed := sim.Engines()[0].Snapshot().Failed
	sim.AdvanceTo(5 * time.Minute)
	require.Len(t, *all, 2000, "none is lost without a word")
	statuses := map[int]int{}
	lost := 0
	for _, r := range *all {
		statuses[r.Status]++
		switch r.Status {
		case http.StatusInternalServerError:
			assert.Equal(t, "f-0", r.Replica)
			assert.Equal(t, 5*time.Millisecond, r.Ended.Sub(r.Arrived))
			assert.Zero(t, r.Output)
			assert.True(t, r.FirstToken.IsZero())
		case http.StatusServiceUnavailable:
			assert.Equal(t, "f-1", r.Replica)
			if r.Ended.Equal(start.Add(30 * time.Second)) {
				lost++
			}
		}
	}
	assert.Equal(t, int(failed), statuses[http.StatusInternalServerError])
	assert.Equal(t, onBoard.Running+onBoard.Waiting, lost, "those on board")
	assert.Greater(t, statuses[http.StatusServiceUnavailable], lost, "and those that came while it was down")
}

// Of 20 requests a second acme sends half, of which 2 a second come through.
func TestARateLimitTurnsAway(t *testing.T) {
	sim := simulate(t, `
fleets:
  - {name: f, engine: vllm, model_name: m, arrivals: {rate: 20}, tenants: {named: [{name: acme, share: 0.5, rate_limit: 2, tier: trial}]}}
`)
	all := watch(t, sim)
	sim.AdvanceTo(10 * time.Minute)
	statuses := map[int]float64{}
	for _, r := range *all {
		if r.Tenant == "acme" {
			statuses[r.Status]++
			assert.Equal(t, "trial", r.Tier)
		} else {
			require.Equal(t, http.StatusOK, r.Status)
		}
		if r.Status == http.StatusTooManyRequests {
			assert.Empty(t, r.Replica)
			assert.Equal(t, r.Arrived, r.Ended)
			assert.Positive(t, r.Prompt)
		}
	}
	assert.InEpsilon(t, 1200, statuses[http.StatusOK], .02)
	assert.InDelta(t, 6000, statuses[http.StatusOK]+statuses[http.StatusTooManyRequests], 4*math.Sqrt(6000))
	assert.InDelta(t, 12_000-statuses[http.StatusTooManyRequests], sim.Engines()[0].Snapshot().Finished, 4*math.Sqrt(12_000))
}
