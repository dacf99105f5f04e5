// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// playStory plays a scenario of tenants with its surge moved to the twentieth
// minute, and measures 15 minutes before it and 15 from the second minute of it
// on: mean inter-token latency in seconds, acme's share of the uncached prompt
// tokens, and of all tokens made.
func playStory(t *testing.T, name string) (itl, uncached, output [2]float64) {
	t.Helper()
	s, err := Builtin(name)
	require.NoError(t, err)
	s.Faults[0].To -= s.Faults[0].From - 20*time.Minute
	s.Faults[0].From = 20 * time.Minute
	sim, err := New(s, start)
	require.NoError(t, err)
	var own, all struct{ uncached, output float64 }
	sim.Watch(func(records []RequestRecord) {
		for _, r := range records {
			require.Equal(t, http.StatusOK, r.Status)
			if r.Tenant == "acme" {
				own.uncached += float64(r.Prompt - r.Cached)
				own.output += float64(r.Output)
			}
			all.uncached += float64(r.Prompt - r.Cached)
			all.output += float64(r.Output)
		}
	})
	latency := func() (sum, count float64) {
		for _, e := range sim.Engines() {
			of := e.Snapshot().ITL
			sum += of.Sum
			count += float64(of.Count)
		}
		return sum, count
	}
	for i, from := range []time.Duration{5 * time.Minute, 22 * time.Minute} {
		sim.AdvanceTo(from)
		own, all = struct{ uncached, output float64 }{}, struct{ uncached, output float64 }{}
		sumWas, countWas := latency()
		sim.AdvanceTo(from + 15*time.Minute)
		sum, count := latency()
		itl[i] = (sum - sumWas) / (count - countWas)
		uncached[i], output[i] = own.uncached/all.uncached, own.output/all.output
	}
	for _, e := range sim.Engines() {
		assert.Less(t, e.Snapshot().Waiting, 4, "the fleet is not overloaded")
	}
	return itl, uncached, output
}

// acme sends three times its 5 % of the requests: 15 of then 110.
func TestNoisyNeighbour(t *testing.T) {
	itl, uncached, output := playStory(t, "noisy_neighbour")
	assert.InDelta(t, .020, itl[0], .001)
	assert.InDelta(t, .028, itl[1], .001)
	assert.InDelta(t, .05, uncached[0], .01)
	assert.InDelta(t, .45, uncached[1], .04)
	assert.InDelta(t, .05, output[0], .01)
	assert.InDelta(t, 15./110, output[1], .02)
}

func TestASurgeOfAllBlamesNobody(t *testing.T) {
	itl, uncached, output := playStory(t, "surge")
	assert.InDelta(t, .020, itl[0], .001)
	assert.InDelta(t, .028, itl[1], .001)
	for i := range 2 {
		assert.InDelta(t, .05, uncached[i], .01)
		assert.InDelta(t, .05, output[i], .01)
	}
}
