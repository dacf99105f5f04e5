// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSecondPortTakesOver as soon as the first has been silent for more than
// twice its longest gap, and not before: a scrape may be late.
func TestSecondPortTakesOver(t *testing.T) {
	const first, second, tick = ID(1), ID(2), 30 * time.Second
	for _, scrape := range []time.Duration{tick, 2 * tick} {
		d := NewDirectory(DirectoryOptions{MaxReplicas: 1, ForgetAfter: time.Hour})
		at := after(0)
		d.Sweep(at)
		r, err := d.Enter("a", &Place{})
		require.NoError(t, err)
		sweep := func() { at = at.Add(tick); d.Sweep(at) }
		last := at
		for i := range 6 {
			if time.Duration(i)*tick%scrape == 0 {
				assert.True(t, r.Original(100, first))
				last = at
			}
			assert.False(t, r.Original(100, second))
			sweep()
		}
		for !r.Original(100, second) {
			sweep()
		}
		assert.Equal(t, 2*scrape+tick, at.Sub(last), "scraped every %s", scrape)
		assert.False(t, r.Original(100, first), "who comes back is the second now")
		assert.True(t, r.Original(200, first), "another process")
	}
}
