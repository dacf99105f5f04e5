// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"sync"
	"time"

	"github.com/llmfleet/llmfleet/internal/window"
)

// Target is one place that reports: a scrape target, or the sender of an OTLP
// resource. Whoever folds its points in holds its lock; targets never wait for
// each other or for an evaluation.
type Target struct {
	sync.Mutex
	registry *Registry
	id       ID
	series   catalog
	due      bool         // a series may have to be dropped: sweep looks which
	refused  map[ID]uint8 // points that are no series, and why
	sources  []*Source
	index    *index  // of the sources; nil: they are few
	process  float64 // process_start_time_seconds; zero when untold
	removed  bool    // no longer in the registry
}

// Source is one replica as one target tells of it.
type Source struct {
	target    *Target
	member    *Member
	horizon   window.Horizon
	presence  window.Presence
	groups    map[ID]*voice
	series    []*Series
	twin      twin
	heard     window.Instant // newest point of the page being read
	told      window.Instant // newest point of a signal
	reachable bool
	realtime  bool // tokens are told as they are made
}

// Series returns the series with that id, nil if it is new.
func (t *Target) Series(id ID) *Series { return t.series.find(id) }

// maxRefused bounds the refused points that a target remembers.
const maxRefused = 1 << 12

// Refuse remembers that points with that id are no series of a replica, and
// its caller's code for why. It holds until the next evaluation: what is known
// of a target may change.
func (t *Target) Refuse(id ID, why uint8) {
	if t.refused == nil || len(t.refused) >= maxRefused {
		t.refused = make(map[ID]uint8)
	}
	t.refused[id] = why
}

// Refused tells whether points with that id were refused, and why.
func (t *Target) Refused(id ID) (why uint8, ok bool) {
	why, ok = t.refused[id]
	return why, ok
}

// Process notes the start time of the target's process, in seconds since the
// Unix epoch.
func (t *Target) Process(start float64) { t.process = start }

// Heard notes that a page was read: each source that told something is there.
// up is what the scraper says of the target at time at; at is zero if it says
// nothing. That goes for all sources, unless some told something: then the
// others are not behind this target any more.
func (t *Target) Heard(up bool, at window.Instant) {
	told := slices.ContainsFunc(t.sources, func(s *Source) bool { return s.heard != 0 })
	for _, s := range t.sources {
		if s.heard != 0 || !told {
			s.touch(at)
		}
		if s.heard != 0 {
			s.presence.Hear(s.heard, s.gone())
			s.reachable = up || at == 0
		}
		s.heard = 0
	}
}

// Unreached notes that the target's series were ended by a marker.
func (s *Series) Unreached() { s.source.reachable = false }

// Touch notes that the series' source was heard at time at.
func (s *Series) Touch(at window.Instant) {
	s.source.touch(at)
	s.source.told = max(s.source.told, s.source.heard)
}

// touch takes no word from the future: it would make the present look old.
func (s *Source) touch(at window.Instant) {
	if at > s.heard && s.admit(at) != window.Future {
		s.heard = at
	}
}

// gone is how long the source may be silent before it counts as departed.
func (s *Source) gone() time.Duration {
	o := &s.target.registry.options
	if o.DepartedAfter > 0 {
		return o.DepartedAfter
	}
	if observed := s.presence.Interval(); observed > 0 {
		return departedIntervals * observed
	}
	return departedIntervals * s.grid().Interval()
}

// departedIntervals is after how many of its own intervals of silence a
// replica counts as departed, if nothing else is configured.
const departedIntervals = 3

func (s *Source) grid() window.Grid { return s.member.fleet.grid }

// open makes the source take points for the panes after the one that ends at
// end.
func (s *Source) open(end window.Instant) {
	s.horizon = window.NewHorizon(s.grid(), end, s.target.registry.options.Lateness)
}

// admit holds a sample's time against the clock that the last evaluation
// handed in.
func (s *Source) admit(at window.Instant) window.Outcome { return s.horizon.Admit(at) }

// departed tells whether nothing was heard for too long at time end.
func (s *Source) departed(end window.Instant) bool {
	return end.Sub(s.presence.Last) >= s.gone()
}

// name decides which name is listened to once a signal has several: with the
// first series of another alias, all of the signal's get a voice together.
func (s *Source) name(joining *Series) {
	var names *voice
	for _, other := range s.series {
		switch {
		case other.signal != joining.signal:
		case other.beside != nil && other.beside.names != nil:
			joining.aside().names = other.beside.names
			return
		case other.alias != joining.alias:
			if names == nil {
				names = &voice{speaker: ID(other.alias)}
			}
			names.at = max(names.at, other.at())
		}
	}
	if names == nil {
		return
	}
	joining.aside().names = names
	for _, other := range s.series {
		if other.signal == joining.signal {
			other.aside().names = names
		}
	}
}

// voiceOf is the voice of a group of series of which one speaks.
func (s *Source) voiceOf(group ID) *voice {
	v := s.groups[group]
	if v == nil {
		v = &voice{}
		if s.groups == nil {
			s.groups = make(map[ID]*voice)
		}
		s.groups[group] = v
	}
	return v
}

// forget drops the series that told the signal by an older name.
func (s *Source) forget(signal Signal, newest uint8) {
	for id, other := range s.target.series.all() {
		if other.source == s && other.signal == signal && other.alias > newest {
			s.target.drop(id)
		}
	}
}

func (t *Target) drop(id ID) {
	dropped := t.series.find(id)
	t.series.remove(id)
	of := dropped.source
	of.series = slices.DeleteFunc(of.series, func(s *Series) bool { return s == dropped })
	t.registry.seriesCount.Add(-1)
}

// since drops what was last told before a time.
func (f *former) since(earliest window.Instant) *former {
	if f == nil {
		return nil
	}
	f.next = f.next.since(earliest)
	if f.histogram.At() < earliest {
		return f.next
	}
	return f
}

// sweep drops what can no longer count in any window ending after end: series
// whose last sample is older than every window and every believable gap.
func (t *Target) sweep(end window.Instant) {
	clear(t.refused)
	if !t.due {
		return
	}
	t.due = false
	for id, s := range t.series.all() {
		if s.at() == 0 { // never listened to
			if s.source.departed(end) {
				t.drop(id)
			}
			continue
		}
		keep := s.keep()
		if end.Sub(s.at()) > keep {
			t.drop(id)
			continue
		}
		if s.former() != nil {
			s.beside.former = s.beside.former.since(end.Add(-keep))
		}
	}
}
