// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestDistinctIsNearTheTruth(t *testing.T) {
	d := newDistinct(time.Hour, epoch)
	inserted := 0
	for _, n := range []int{1, 10, 100, 1000, 10_000, 100_000, 1_000_000} {
		for ; inserted < n; inserted++ {
			d.insert(fmt.Sprint("tenant ", inserted))
			d.insert(fmt.Sprint("tenant ", inserted/2))
		}
		// Four standard errors of 1.04/√4096; to the unit where these are less.
		assert.InDelta(t, n, d.estimate(newSketch()), max(0.5, 4*0.0163*float64(n)), "%d", n)
	}
}

func TestDistinctForgets(t *testing.T) {
	d := newDistinct(time.Hour, epoch)
	for i := range 100 {
		d.insert(fmt.Sprint("early ", i))
	}
	d.advance(epoch.Add(30 * time.Minute))
	d.insert("late")
	d.insert(Unknown)
	for _, at := range []time.Duration{40, 50, 59} {
		d.advance(epoch.Add(at * time.Minute))
		assert.InDelta(t, 101, d.estimate(newSketch()), 4, "%v", at)
	}
	d.advance(epoch.Add(time.Hour))
	assert.InDelta(t, 1, d.estimate(newSketch()), 0)
	d.advance(epoch.Add(30 * time.Minute)) // back
	assert.InDelta(t, 1, d.estimate(newSketch()), 0)
	d.advance(epoch.Add(1000 * time.Hour))
	assert.Zero(t, d.estimate(newSketch()))
}
