// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// The race detector makes pools forget, so that they allocate.
//go:build !race

package window

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestObservingKnownBucketsDoesNotAllocate(t *testing.T) {
	var (
		ls Layouts
		h  Histogram
		at = noon
	)
	e := buckets(3, -20, 30, 0)
	sample := Sample{Counts: make([]uint64, e.Width())}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		at += Instant(time.Second)
		sample.At = at
		sample.Counts[5]++
		h.ObserveExponential(grid, &ls, e, &sample)
	}))
}
