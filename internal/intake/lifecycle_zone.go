// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"slices"
	"time"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/window"
)

const (
	// live is how long at most after it was written a line is read that is
	// followed, and how far the clocks may be off.
	live = 2 * time.Minute
	// farOff is farther than any zone is off UTC: near a time so far off, a stamp
	// is taken for UTC.
	farOff = 48 * time.Hour
)

// at is when a line was written by what it tells itself. A zone that it does not
// tell is that of the container's lines before, unless that puts it into the
// future: a file that is read late holds more than the hour in which it is read,
// and its lines are of one zone.
func (p *logPage) at(s dialect.Stamp, observed window.Instant) window.Instant {
	utc := s.At(observed.Add(-farOff))
	if utc == s.At(observed) {
		return utc // there is a zone, or it is UTC
	}
	where := p.narrator().spot
	p.mu.Lock()
	defer p.mu.Unlock()
	zone, known := p.zones.get(where)
	if !known || utc.Add(-zone) > observed.Add(live) {
		zone = zoneOf(utc.Sub(observed))
		p.zones.put(where, zone)
	}
	return utc.Add(-zone)
}

// zoneOf guesses the zone of a clock that is so far ahead of UTC when it is read:
// what is ahead is of the first zone that puts it into the past. What is behind
// by as much as a zone is of that zone, and is UTC, which containers have unless
// told otherwise, and read late, if no place on earth has that time.
func zoneOf(ahead time.Duration) time.Duration {
	at, _ := slices.BinarySearch(zones, ahead-live)
	if at < len(zones) && (ahead > live || zones[at] <= ahead+live) {
		return zones[at]
	}
	return 0
}

// zones are those in use, in summer or winter, as the time zone database of 2026
// has them.
var zones = func() (all []time.Duration) {
	for hour := -12; hour <= 14; hour++ {
		all = append(all, time.Duration(hour)*time.Hour)
	}
	for _, minutes := range []int{-570, -210, -150, 210, 270, 330, 345, 390, 525, 570, 630, 765, 825} {
		all = append(all, time.Duration(minutes)*time.Minute)
	}
	slices.Sort(all)
	return all
}()
