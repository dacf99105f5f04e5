// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package window

import "time"

// Presence is when something that reports again and again was heard from.
type Presence struct {
	First    Instant       // since when it is there without a longer absence
	Last     Instant       // when it was last heard
	interval time.Duration // longest of the latest gaps; zero before the second report
}

// forgetting is how much of a longer gap is forgotten in the time of a shorter.
const forgetting = 2

// Hear notes a report at time at. An absence of more than gone ends one stay and
// begins another; after exactly gone, there was no instant of absence. Every
// gap that an increase is believed over tells of the pace, that absence too,
// which may have been none; of gaps of different length the longer tells more,
// for a report may come in several pieces.
func (p *Presence) Hear(at Instant, gone time.Duration) {
	gap := at.Sub(p.Last)
	switch {
	case p.Last == 0:
		p.First, p.Last = at, at
		return
	case gap <= 0:
		return
	case gap > gone:
		p.First = at
	}
	if gap <= MaxGap {
		p.interval = max(gap, p.interval-gap/forgetting)
	}
	p.Last = at
}

// Interval is the observed time between reports; zero before it is known.
func (p *Presence) Interval() time.Duration { return p.interval }
