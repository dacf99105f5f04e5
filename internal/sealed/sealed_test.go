// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package sealed

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnyDamageShows(t *testing.T) {
	written := Encode("alarms", map[string]int{"a": 1})
	for i := range written {
		for bit := range 8 {
			damaged := append([]byte(nil), written...)
			damaged[i] ^= 1 << bit
			var text string
			require.ErrorIs(t, Decode(damaged).Next(&text), ErrDamaged)
		}
		var text string
		require.ErrorIs(t, Decode(written[:i]).Next(&text), ErrDamaged)
	}
}

func TestValuesComeBackInOrder(t *testing.T) {
	d := Decode(Encode("alarms", map[string]int{"a": 1}))
	var (
		text   string
		counts map[string]int
		more   int
	)
	require.NoError(t, d.Next(&text))
	require.NoError(t, d.Next(&counts))
	assert.Equal(t, "alarms", text)
	assert.Equal(t, map[string]int{"a": 1}, counts)
	require.ErrorIs(t, d.Next(&more), ErrDamaged)
	require.ErrorIs(t, d.Next(&text), ErrDamaged, "and no more after that")
}
