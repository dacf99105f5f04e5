// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTyposAreNamedByLineAndKey(t *testing.T) {
	for text, want := range map[string]string{
		"fleet: []": "line 1: fleet: there is no such key: write one of seed, fleets, faults",
		"seed: -1":  `line 1: seed: is "-1": write a whole number, 0 or more`,
		"- a":       "line 1: the file: is a list: write keys with values; the keys are seed, fleets, faults",
		"fleets:\n  - {}\n  - latency: {itl_base: 300}": `line 3: fleets[1].latency.itl_base: is "300": write a duration with its unit, such as 30s or 120us`,
		"fleets:\n  - replicas: two":                    `line 2: fleets[0].replicas: is "two": write a whole number`,
		"fleets:\n  - replicas: 1.5":                    `line 2: fleets[0].replicas: is "1.5": write a whole number`,
		"fleets:\n  - arrivals:\n      rate: {mean: 4}": "line 3: fleets[0].arrivals.rate: is a mapping of keys: write a number",
		"fleets: {}":                                                    "line 1: fleets: is a mapping of keys: write a list, each item after a dash",
		"fleets: [{versions: ray}]":                                     `line 1: fleets[0].versions: is "ray": write a list of words, such as [a, b]`,
		"fleets: [{name: [a]}]":                                         "line 1: fleets[0].name: is a list: write a word",
		"fleets: [{latency: {jitter: low}}]":                            `line 1: fleets[0].latency.jitter: is "low": write a number`,
		"faults:\n  - {kind: hung, replicas: 3}":                        `line 2: faults[0].replicas: is "3": write a list of numbers, such as [0, 1]`,
		"faults:\n  - {kind: hung, replicas: [0, x]}":                   `line 2: faults[0].replicas[1]: is "x": write a whole number`,
		"faults:\n  - kind: hung\n    kind: gap":                        `line 3: mapping key "kind" already defined at line 2`,
		"faults: [{kind: slow, by: 2}]":                                 "line 1: faults[0].by: there is no such key: write one of kind, fleet, replicas, pick, node, from, to, factor, share, mode, status, every, series, bounds, code, rate, revision",
		"fleets: [&f {<<: *f}]":                                         "contains itself",
		"faults:\n  - &f {by: 2}\n  - *f\n  - {<<: *f}\n  - {<<: [*f]}": "line 2: faults[3].by: there is no such key",
	} {
		_, err := Parse([]byte(text))
		require.ErrorContains(t, err, want, text)
		assert.NotContains(t, err.Error(), "fleetsim.", "no names of Go types")
	}
	_, err := Parse([]byte("fleets: ["))
	require.ErrorContains(t, err, "line 1")
	_, err = Parse([]byte("fleet: []\nfault: []"))
	require.ErrorContains(t, err, "line 2: fault:", "all mistakes are told at once")
}

func TestAnchorsAndEmptyValues(t *testing.T) {
	s, err := Parse([]byte(`
seed:
fleets:
  - &chat {name: a, engine: vllm, model_name: m, arrivals: {rate: 1}, latency: {itl_base: 5ms}}
  - {<<: *chat, name: b}
faults:
`))
	require.NoError(t, err)
	require.Len(t, s.Fleets, 2)
	assert.Equal(t, "b", s.Fleets[1].Name)
	assert.Equal(t, 5*time.Millisecond, s.Fleets[1].Latency.Base)
}
