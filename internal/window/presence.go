// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package window

import "time"

// Presence is when something that reports at a steady pace was heard from.
type Presence struct {
	First    Instant       // since when it is there without a longer absence
	Last     Instant       // when it was last heard
	interval time.Duration // smoothed time between reports; zero before the second
}

// smoothing is the weight of one gap in the observed interval.
const smoothing = 8

// burst is the longest gap within one report that comes in several pieces.
const burst = 500 * time.Millisecond

// Hear notes a report at time at. An absence of more than gone ends one stay and
// begins another, at a pace that has to be learned anew; after exactly gone,
// there was no instant of absence.
func (p *Presence) Hear(at Instant, gone time.Duration) {
	gap := at.Sub(p.Last)
	unknown := p.interval == 0
	switch {
	case p.Last == 0:
		p.First = at
	case gap <= 0:
		return
	case gap > gone:
		p.First, p.interval = at, 0
		if unknown && gap <= MaxGap {
			p.interval = gap // not an absence, but a slow pace
		}
	case gap < burst:
	case unknown:
		p.interval = gap
	default:
		p.interval += (gap - p.interval) / smoothing
	}
	p.Last = at
}

// Interval is the observed time between reports; zero before it is known.
func (p *Presence) Interval() time.Duration { return p.interval }
