// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOverrideKeepsWhatItDoesNotSay: an operator who adds one name need not
// repeat what the engine's labels mean.
func TestOverrideKeepsWhatItDoesNotSay(t *testing.T) {
	inline := func(more map[string]any) Sources {
		d := map[string]any{
			"engine": "sglang", "prefix": "sglang",
			"signals": map[string]any{"ttft": map[string]any{"type": "histogram", "names": []any{"first_token"}}},
		}
		maps.Copy(d, more)
		return Sources{d}
	}
	read := func(s Sources) *Dialect {
		set, err := s.Load()
		require.NoError(t, err)
		matches := set.Match("sglang:first_token")
		require.Len(t, matches, 1)
		return matches[0].Entry.Dialect
	}
	known := Builtin().Match("sglang:num_queue_reqs")[0].Entry.Dialect
	assert.Equal(t, known.Labels, read(inline(nil)).Labels)
	own := read(inline(map[string]any{"labels": map[string]any{"ranks": []any{"rank"}}}))
	assert.Equal(t, Labels{Model: []string{"model_name"}, Ranks: []string{"rank"}}, own.Labels)

	assert.Equal(t, Engine, read(inline(nil)).Component)
	assert.Equal(t, Gateway, read(inline(map[string]any{"component": "gateway"})).Component)
	dcgm, err := Sources{map[string]any{
		"engine": "dcgm", "signals": map[string]any{"gpu_power": map[string]any{"type": "gauge", "names": []any{"POWER"}}},
	}}.Load()
	require.NoError(t, err)
	assert.Equal(t, GPU, dcgm.Match("POWER")[0].Entry.Dialect.Component)
}

func TestOverrideSaysItsPrefix(t *testing.T) {
	_, err := Sources{map[string]any{
		"engine": "vllm", "signals": map[string]any{"ttft": map[string]any{"type": "histogram", "names": []any{"time_to_first_token_seconds"}}},
	}}.Load()
	assert.EqualError(t, err, "dialects[0]: signals.ttft.names: there is no prefix: the names of vllm stand behind one; "+
		"write prefix: vllm, or for my_queue prefix: my and the name queue")
}
