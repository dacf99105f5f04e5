// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A judge that was saved and loaded goes on as the one that was not, flags and all.
func TestGoesOn(t *testing.T) {
	for _, at := range []int{1, warmup, quietPanes, quietPanes + 1, quietPanes + 4, quietPanes + 30} {
		kept := NewJudge(DefaultOptions(minute))
		for i := range at {
			kept.Judge(story(i))
		}
		loaded := NewJudge(DefaultOptions(minute))
		require.NoError(t, loaded.Load(kept.Save()))
		assert.Equal(t, kept.Save(), loaded.Save())
		for i := at; i < at+40; i++ {
			want, got := kept.Judge(story(i)), loaded.Judge(story(i))
			require.Equal(t, want, got)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	j, next := flagged(t)
	data := j.Save()
	before := *verdictOf(t, &j.report, "zorro")
	for at := range data {
		damaged := slices.Clone(data)
		damaged[at] ^= 0x10
		require.Error(t, j.Load(damaged), "byte %d", at)
		if at%97 == 0 {
			require.Error(t, j.Load(data[:at]), "cut at %d", at)
		}
	}
	require.Error(t, j.Load(nil))
	other := NewJudge(DefaultOptions(2 * minute))
	require.ErrorIs(t, other.Load(data), ErrForeign)
	assert.Empty(t, other.accounts)
	assert.True(t, before.Noisy)
	assert.Equal(t, []string{"zorro"}, noisy(j.Judge(story(next))), "what is refused changes nothing")
}

func TestLoadIsBounded(t *testing.T) {
	j, next := flagged(t)
	o := DefaultOptions(minute)
	o.MaxTenants = 3
	small := NewJudge(o)
	require.NoError(t, small.Load(j.Save()))
	assert.Len(t, small.accounts, 3)
	small.Judge(story(next))
	assert.Len(t, small.accounts, 3)
}
