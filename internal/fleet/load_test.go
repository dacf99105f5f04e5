// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/window"
)

// TestLevels: a gauge that is asked for is told beside the load, summed over the
// targets that tell of one replica; without one in the question there are none.
func TestLevels(t *testing.T) {
	tl := newTimeline()
	identity := Identity{Replica: "a", Engine: "e", Keys: []Label{{"model_name", "m"}}}
	for id, value := range map[ID]float64{1: 12.5, 2: -2.5} {
		target, err := tl.registry.Acquire(id, true)
		require.NoError(t, err)
		series, err := target.Join(id, &identity, BudgetRemaining, Spelling{Rank: id})
		require.NoError(t, err)
		series.Touch(after(3))
		outcome, heard := series.ObserveGauge(after(3), value)
		assert.Equal(t, window.Accepted, outcome)
		assert.True(t, heard)
		target.Heard(true, after(3))
		target.Unlock()
	}
	ask := Ask{Signals: []Signal{BudgetLimit, BudgetRemaining}}
	tl.registry.Close(after(30), ask, func(f *Frame) {
		require.Len(t, f.Members, 1)
		levels := f.Members[0].Levels
		require.Len(t, levels, 2)
		assert.False(t, levels[0].NowKnown, "nobody tells it")
		assert.Equal(t, [2]any{10.0, true}, [2]any{levels[1].Now, levels[1].NowKnown})
	})
	tl.registry.Close(after(60), Ask{Signals: []Signal{TTFT, Waiting}}, func(f *Frame) {
		assert.Nil(t, f.Members[0].Levels)
	})
}

func TestRangeOfBudgets(t *testing.T) {
	assert.True(t, BudgetRemaining.InRange(-5), "more was spent than there was")
	assert.False(t, BudgetLimit.InRange(-5))
	assert.False(t, BudgetRemaining.InRange(-1e19))
}
