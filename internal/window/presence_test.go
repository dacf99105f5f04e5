// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// heard is a presence that was heard at seconds after noon, by a rule of three
// of its own intervals once one is known, and of 90 s before.
func heard(seconds ...float64) *Presence {
	var p Presence
	for _, s := range seconds {
		gone := 90 * time.Second
		if p.Interval() > 0 {
			gone = 3 * p.Interval()
		}
		p.Hear(after(s), gone)
	}
	return &p
}

func TestPresence(t *testing.T) {
	for name, tc := range map[string]struct {
		heard       []float64
		first, last float64
		interval    time.Duration
	}{
		"once":                      {[]float64{5}, 5, 5, 0},
		"the second report tells":   {[]float64{5, 20}, 5, 20, 15 * time.Second},
		"a report twice":            {[]float64{5, 20, 20}, 5, 20, 15 * time.Second},
		"an older report":           {[]float64{5, 20, 10}, 5, 20, 15 * time.Second},
		"a missed report":           {[]float64{0, 16, 48}, 0, 48, 32 * time.Second},
		"a missed report is past":   {[]float64{0, 16, 48, 64, 80}, 0, 80, 16 * time.Second},
		"exactly three missed ones": {[]float64{0, 16, 64}, 0, 64, 48 * time.Second},
		"an absence begins a stay":  {[]float64{0, 16, 65, 81}, 65, 81, 41 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			p := heard(tc.heard...)
			assert.Equal(t, after(tc.first), p.First)
			assert.Equal(t, after(tc.last), p.Last)
			assert.Equal(t, tc.interval, p.Interval())
		})
	}
}

// A scraper that was set to a slower pace is steady again after the first gap.
func TestPresenceLearnsASlowerPace(t *testing.T) {
	p := heard(0, 10, 20, 30, 90, 150, 210, 270, 330)
	assert.Equal(t, after(90), p.First, "one absence, not one after the other")
	assert.Greater(t, 3*p.Interval(), time.Minute)
}

// Two batches of one page may arrive with times that differ a little.
func TestPresenceOutgrowsAShortFirstGap(t *testing.T) {
	p := heard(0, 0.001, 15, 30, 45, 60, 75)
	assert.LessOrEqual(t, p.First, after(15))
	assert.Greater(t, 3*p.Interval(), 15*time.Second)
}

// With a time of departure that is set, the first gap is like any other.
func TestPresenceEndsInALongFirstGap(t *testing.T) {
	var p Presence
	p.Hear(noon, time.Minute)
	p.Hear(after(120), time.Minute)
	assert.Equal(t, after(120), p.First)
}

// A report may come in pieces each time: they are no pace.
func TestPresenceTakesABurstForOneReport(t *testing.T) {
	for _, piece := range []float64{0.02, 0.7, 2} {
		var pieces []float64
		for at := 0.0; at < 300; at += 10 {
			pieces = append(pieces, at, at+piece, at+2*piece)
		}
		p := heard(pieces...)
		assert.LessOrEqual(t, p.First, after(10), "it was never absent, but for the first pace that was learned")
		assert.InDelta(t, 10-2*piece, p.Interval().Seconds(), 2*piece)
	}
}
