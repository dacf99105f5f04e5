// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package fleetoutlierprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/emit"
)

// stories are scenarios of the simulator, and what has to be told of each.
var stories = []struct {
	scenario string
	strikes  time.Duration // its first fault
	lasts    time.Duration
	outliers []string // pods that are flagged then, and stay so; nobody else ever is
	cause    string   // of all of them, the only one that is told
	also     func(*testing.T, *chronicle)
}{
	{
		scenario: "mixed_gpus", strikes: 60 * time.Minute, lasts: 75 * time.Minute,
		outliers: []string{"h100-0"}, cause: "hardware", also: oneAndAHalfTimesAsSlow,
	},
	{
		scenario: "flapping", strikes: 20 * time.Minute, lasts: 35 * time.Minute,
		outliers: []string{"chat-5"}, cause: "hardware", also: unreachableAndJudged,
	},
	{
		scenario: "reasoning", strikes: 15 * time.Minute, lasts: 20 * time.Minute,
		also: stuckOnceItsTokensStop,
	},
	{
		scenario: "black_hole", strikes: 20 * time.Minute, lasts: 35 * time.Minute,
		outliers: []string{"chat-3"}, cause: "errors", also: failsAllThatItGets,
	},
	{
		scenario: "rollout", strikes: 20 * time.Minute, lasts: 35 * time.Minute,
		outliers: []string{"chat-0", "chat-1"}, cause: "variant",
	},
	{
		scenario: "slow_fleet", strikes: 20 * time.Minute, lasts: 40 * time.Minute,
		also: allAreSlower,
	},
}

// TestStories plays them with the default configuration, but for what is off by
// default and a warm-up that lets the alarm watch before anything happens.
func TestStories(t *testing.T) {
	for _, story := range stories {
		t.Run(story.scenario, func(t *testing.T) {
			t.Parallel()
			config := subject.Defaults()
			config.Alarm.Warmup = 10 * time.Minute
			config.Metrics = emit.Switches{
				emit.ReplicaErrorRatio: {Enabled: true}, emit.FleetErrorRatio: {Enabled: true}, emit.ReplicaWorkRatio: {Enabled: true},
			}
			c := play(t, config, story.scenario, story.strikes, story.lasts)

			require.Less(t, c.of(emit.ReplicaOutlier, nil, 0)[0].at, story.strikes, "the alarm watches in time")
			assert.Equal(t, story.outliers, c.flagged(emit.ReplicaOutlier, "pod", nil))
			assert.Empty(t, c.flagged(emit.NodeOutlier, "node", nil))
			for _, pod := range story.outliers {
				onset := c.onset(emit.ReplicaOutlier, pod)
				assert.Greater(t, onset, story.strikes, pod)
				assert.LessOrEqual(t, onset, story.strikes+10*config.Alarm.Pane, pod)
				c.all(emit.ReplicaOutlier, labels{"pod": pod}, onset, 1, 0)
				assert.Equal(t, []string{story.cause}, c.flagged(emit.ReplicaOutlierCause, "cause", labels{"pod": pod}))
			}
			if story.also != nil {
				story.also(t, c)
			}
		})
	}
}

// settled is when nothing in the window is older than the first fault.
func (c *chronicle) settled() time.Duration { return c.strikes + c.config.Window + c.config.Interval }

func oneAndAHalfTimesAsSlow(_ *testing.T, c *chronicle) {
	c.all(emit.ReplicaLatencyRatio, labels{"pod": "h100-0", "signal": "itl", "quantile": "0.5"}, c.settled(), 1.5, .1)
}

func unreachableAndJudged(t *testing.T, c *chronicle) {
	t.Helper()
	scraped := c.strikes + 2*scrapeEvery // the second scrape is the first to time out
	for state, replicas := range map[string]float64{"unreachable": 1, "judged": 7, "warming": 0, "withheld": 0} {
		c.all(emit.FleetReplicas, labels{"state": state}, scraped, replicas, 0)
	}
	flagged := labels{"pod": "chat-5"}
	onset := c.onset(emit.ReplicaOutlier, "chat-5")
	evidence := len(c.of(emit.ReplicaOutlierEvidence, flagged, c.strikes))
	assert.Equal(t, c.evaluations(c.strikes), evidence, "told at every evaluation")
	for _, x := range c.of(emit.ReplicaOutlierEvidence, flagged, onset) {
		assert.GreaterOrEqual(t, x.Value, 1.0, "@%s", x.at)
	}
}

func stuckOnceItsTokensStop(t *testing.T, c *chronicle) {
	t.Helper()
	assert.Equal(t, []string{"reason-3"}, c.flagged(emit.ReplicaStuck, "pod", nil))
	onset := c.onset(emit.ReplicaStuck, "reason-3")
	assert.Greater(t, onset, c.strikes)
	assert.LessOrEqual(t, onset, c.strikes+2*c.config.Interval, "within two evaluations")
	c.all(emit.ReplicaStuck, labels{"pod": "reason-3"}, onset, 1, 0)
}

// Of 3,900 requests in a window all but 3 · 300 fail: 0.769, give or take three
// times sqrt(0.769 · 0.231 / 3900).
func failsAllThatItGets(t *testing.T, c *chronicle) {
	t.Helper()
	c.all(emit.ReplicaErrorRatio, labels{"pod": "chat-3"}, c.settled(), 1, 0)
	c.all(emit.FleetErrorRatio, nil, c.settled(), .769, .0202)
	for _, pod := range []string{"chat-0", "chat-1", "chat-2"} {
		c.all(emit.ReplicaErrorRatio, labels{"pod": pod}, c.settled(), 0, 0)
	}
	assert.Empty(t, c.of(emit.ReplicaWorkRatio, labels{"pod": "chat-3", "signal": "errors"}, 0), "its peers' is 0")
	assert.Empty(t, c.of(emit.ReplicaLatency, labels{"pod": "chat-3"}, c.settled()), "it is not the fastest")
}

// The step of an engine is longer by 1.8, and so is the fleet's latency: by what
// buckets from 10 to 25 and to 50 ms tell, at least half as much again.
func allAreSlower(t *testing.T, c *chronicle) {
	t.Helper()
	of := labels{"signal": "itl", "quantile": "0.5"}
	before := c.of(emit.FleetLatency, of, c.strikes)[0].Value
	after := c.of(emit.FleetLatency, of, c.settled())
	require.NotEmpty(t, after)
	for _, x := range after {
		assert.Greater(t, x.Value, 1.5*before, "@%s", x.at)
	}
	c.all(emit.FleetOutliers, nil, c.strikes, 0, 0)
}
