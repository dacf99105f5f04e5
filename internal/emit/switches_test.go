// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package emit

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// What is on by default is a promise: a replica has a budget of series.
func TestMetricsThatAreOffByDefault(t *testing.T) {
	var off []string
	for _, m := range Of(fleetOutlier) {
		if !(Switches{}).Enabled(&m) {
			off = append(off, m.Name)
		}
	}
	assert.ElementsMatch(t, []string{
		"llmfleet.replica.latency_low_ratio", "llmfleet.replica.latency_high_ratio", "llmfleet.replica.load_ratio",
		"llmfleet.replica.prefix_hit_ratio", "llmfleet.fleet.prefix_hit_ratio",
		"llmfleet.replica.error_ratio", "llmfleet.replica.generation_tokens", "llmfleet.replica.preemptions",
		"llmfleet.replica.prompt_length", "llmfleet.replica.output_length", "llmfleet.replica.work_ratio",
		"llmfleet.fleet.error_ratio", "llmfleet.fleet.generation_tokens", "llmfleet.fleet.preemptions",
		"llmfleet.fleet.prompt_length", "llmfleet.fleet.output_length",
	}, off)
	assert.Empty(t, Of("nobody"))
}

func TestSwitches(t *testing.T) {
	var s sink
	w := NewWriter(Options{
		Component: fleetOutlier,
		Switches:  Switches{ReplicaLoadRatio: {Enabled: true}, ReplicaLatency: {Enabled: false}},
		Next:      s.next,
	})
	on, off, usual := w.Slot(ReplicaLoadRatio), w.Slot(ReplicaLatency), w.Slot(ReplicaLatencyRatio)
	assert.Equal(t, None, off)
	for range 2 { // what is off does not end either
		w.Begin(10)
		w.About(t.Context(), []fleet.Label{label("replica", "a")})
		for _, slot := range []Slot{on, off, usual} {
			w.Set(slot, 1)
		}
		require.NoError(t, w.End(t.Context()))
		assert.ElementsMatch(t, []string{
			"llmfleet.replica.load_ratio replica=a", "llmfleet.replica.latency_ratio replica=a",
		}, seriesOf(s.take(), false))
	}
}

func TestSwitchOfAMetricThatIsNotEmittedIsRefused(t *testing.T) {
	require.NoError(t, Switches{}.Validate(fleetOutlier))
	require.NoError(t, Switches{ReplicaLatency: {}}.Validate(fleetOutlier))
	err := Switches{"llmfleet.replica.latencies": {Enabled: true}}.Validate(fleetOutlier)
	require.ErrorContains(t, err, `"llmfleet.replica.latencies"`)
	require.ErrorContains(t, err, "llmfleet.replica.latency_ratio", "the remedy names what there is")
	require.Error(t, Switches{ReplicaLatency: {}}.Validate("cold_start"), "another component's metric")
}
