// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleeteventsconnector

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// flagged is whatever has a flag on, or a verdict, and what had one lately: what
// was told of it is not told again when its points come twice. Not safe for
// concurrent use.
type flagged struct {
	limit    int
	of       map[uint64]*subject // by identity
	lit      int                 // how many have a flag that is not off
	overflow int64               // onsets that were not told
}

// subject is a replica, a node, a tenant or a canary.
type subject struct {
	resource map[string]string
	labels   []fleet.Label
	heard    time.Time         // by the clock, when something came
	spoke    pcommon.Timestamp // of its newest value of any series
	flags    []flagState       // those that it showed
}

// flagState is what is known of one flag.
type flagState struct {
	mark
	since pcommon.Timestamp // it shows that
	at    pcommon.Timestamp // of the newest point
}

// turn is a flag coming from one state into another.
type turn struct {
	metric  string
	of      string // as in mark
	was, is state
	at      pcommon.Timestamp
	lasted  time.Duration // what it was; 0 if it was off
	why     reason        // it is off
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
	return s.told(turns)
}

// told are the turns as their flags' rules have them.
func (s *subject) told(turns []turn) (told []turn) {
	for _, t := range turns {
		if t, tells := flags[t.metric].rule(s, t); tells {
			told = append(told, t)
		}
	}
	return told
}

// follow begins with the first flag that is not off. Those of which all are off
// again make room.
func (f *flagged) follow(rd *reading) *subject {
	rises := false
	for _, m := range rd.marks {
		rises = rises || m.shows != off && m.shows != ended
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
	s := new(subject)
	f.of[rd.identity] = s
	return s
}

// flag is what is known of one flag, to be read or written at once.
func (s *subject) flag(metric, of string) *flagState {
	for i := range s.flags {
		if f := &s.flags[i]; f.metric == metric && f.of == of {
			return f
		}
	}
	s.flags = append(s.flags, flagState{mark: mark{metric, of, off}})
	return &s.flags[len(s.flags)-1]
}

// see takes what a flag shows, and tells whether that is news.
func (s *subject) see(m mark, at pcommon.Timestamp) (turn, bool) {
	known := s.flag(m.metric, m.of)
	if at <= known.at {
		return turn{}, false // it came twice, or late
	}
	known.at = at
	t := turn{metric: m.metric, of: m.of, was: known.shows, is: m.shows, at: at, lasted: known.lasted()}
	if m.shows == ended {
		t.is = off
	}
	if t.is == t.was {
		return turn{}, false
	}
	if t.is == off {
		t.why = s.why(m.shows, at)
	}
	known.shows, known.since = t.is, at
	return t, true
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

// lasted is for how long a flag has shown what it shows, 0 if it is off.
func (f *flagState) lasted() time.Duration {
	if f.shows == off {
		return 0
	}
	return f.at.AsTime().Sub(f.since.AsTime())
}

// lit tells whether any flag is not off.
func (s *subject) lit() bool {
	for _, f := range s.flags {
		if f.shows != off {
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
// that was not off.
func (f *flagged) forget(before time.Time, tell func(*reading, turn)) {
	f.dismiss(func(s *subject) bool {
		if !s.heard.Before(before) {
			return false
		}
		var turns []turn
		for i := range s.flags {
			if known := &s.flags[i]; known.shows != off {
				turns = append(turns, turn{known.metric, known.of, known.shows, off, known.at, known.lasted(), silent})
			}
		}
		for _, t := range s.told(turns) {
			tell(&reading{resource: s.resource, labels: s.labels, at: t.at}, t)
		}
		return true
	})
}
