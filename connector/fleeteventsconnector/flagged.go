// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleeteventsconnector

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// flagged are the replicas and nodes that have a flag on, and those that had one
// lately: what was told of these is not told again when their points come twice.
// Not safe for concurrent use.
type flagged struct {
	limit    int
	of       map[uint64]*subject // by identity
	lit      int                 // how many have a flag on
	overflow int64               // onsets that were not told
}

// subject is a replica or a node.
type subject struct {
	resource map[string]string
	labels   []fleet.Label
	heard    time.Time         // by the clock, when something came
	spoke    pcommon.Timestamp // of its newest value of any series
	flags    []flagState       // as in flags
}

// flagState is what is known of one flag.
type flagState struct {
	on    bool
	since pcommon.Timestamp // the onset
	at    pcommon.Timestamp // of the newest point
}

// turn is a flag turning on or off.
type turn struct {
	flag   int
	on     bool
	why    reason        // of a clear
	lasted time.Duration // of a clear
}

func newFlagged(limit int) *flagged {
	return &flagged{limit: limit, of: make(map[uint64]*subject)}
}

// observe compares a reading with what is known, and returns what turned.
func (f *flagged) observe(rd *reading, now time.Time) (turns []turn) {
	s := f.of[rd.identity]
	if s == nil {
		if s = f.follow(rd); s == nil {
			return nil
		}
	}
	s.heard = now
	if rd.valued {
		s.spoke, s.labels, s.resource = max(s.spoke, rd.at), rd.labels, rd.resource
	}
	before := s.lit()
	for _, m := range rd.marks {
		if t, turned := s.see(m, rd.at); turned {
			turns = append(turns, t)
		}
	}
	f.count(before, s.lit())
	return turns
}

// follow begins with the first flag that is on. Those that have none on any more
// make room.
func (f *flagged) follow(rd *reading) *subject {
	rises := false
	for _, m := range rd.marks {
		rises = rises || m.shows == on
	}
	switch {
	case !rises:
		return nil
	case len(f.of) < f.limit:
	case f.lit < len(f.of):
		f.dismiss(func(s *subject) bool { return !s.lit() })
	default:
		f.overflow++
		return nil
	}
	s := &subject{flags: make([]flagState, len(flags))}
	f.of[rd.identity] = s
	return s
}

// see takes what a flag shows, and tells whether that is news.
func (s *subject) see(m mark, at pcommon.Timestamp) (turn, bool) {
	known := &s.flags[m.flag]
	if at <= known.at {
		return turn{}, false // it came twice, or late
	}
	known.at = at
	if known.on == (m.shows == on) {
		return turn{}, false
	}
	known.on = m.shows == on
	if known.on {
		known.since = at
		return turn{flag: m.flag, on: true}, true
	}
	return turn{flag: m.flag, why: s.why(m.shows, at), lasted: known.lasted()}, true
}

// why a flag turned off: a series ends when its replica departs, and when its
// verdict is withheld; then the replica's other series go on.
func (s *subject) why(shows state, at pcommon.Timestamp) reason {
	switch {
	case shows == off:
		return recovered
	case s.spoke >= at:
		return withheld
	default:
		return departed
	}
}

func (f *flagState) lasted() time.Duration { return f.at.AsTime().Sub(f.since.AsTime()) }

// lit tells whether any flag is on.
func (s *subject) lit() bool {
	for _, f := range s.flags {
		if f.on {
			return true
		}
	}
	return false
}

func (f *flagged) count(before, after bool) {
	switch {
	case after && !before:
		f.lit++
	case before && !after:
		f.lit--
	}
}

// dismiss stops following.
func (f *flagged) dismiss(which func(*subject) bool) {
	for identity, s := range f.of {
		if which(s) {
			f.count(s.lit(), false)
			delete(f.of, identity)
		}
	}
}

// forget stops following what was last heard of before, and tells of each flag
// that was still on.
func (f *flagged) forget(before time.Time, tell func(*reading, turn)) {
	f.dismiss(func(s *subject) bool {
		if !s.heard.Before(before) {
			return false
		}
		for i := range s.flags {
			if known := &s.flags[i]; known.on {
				rd := &reading{resource: s.resource, labels: s.labels, at: known.at}
				tell(rd, turn{flag: i, why: silent, lasted: known.lasted()})
			}
		}
		return true
	})
}
