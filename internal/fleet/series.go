// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"time"

	"github.com/llmfleet/llmfleet/internal/window"
)

// Spelling says how a series came to speak for a signal: one signal may arrive
// under several names, or from several ranks that all tell the same.
type Spelling struct {
	// Alias is the name's place in the dialect's order of preference; the
	// lowest that is heard speaks, the others are not counted again.
	Alias uint8
	// Group and Choice: of the series with one Group only the first heard
	// Choice speaks, as with tensor-parallel ranks. Zero Group: all speak.
	Group, Choice ID
	// Rank tells the summed series of one source apart, whatever target they
	// are scraped from.
	Rank ID
	// Realtime: the series tells of tokens as they are made.
	Realtime bool
}

// Series is one engine series of one target, read as one signal.
type Series struct {
	source    *Source
	signal    Signal
	alias     uint8
	rank      uint16        // hash of the labels that tell ranks apart
	notes     uint32        // hash of what was last said about the replica
	among     *among        // nil: nobody else tells the same
	gauge     *window.Gauge // nil for a histogram
	retired   *Series       // the same series with former bucket bounds
	histogram window.Histogram
}

// among is the others of which one speaks: the names of a signal, and the ranks
// that repeat each other.
type among struct {
	names  *voice // by alias; nil: there is one name
	group  *voice // by choice; nil: all ranks count
	choice ID
}

// voice is which of several ways to tell the same is listened to.
type voice struct {
	speaker ID
	at      window.Instant
}

// hear decides whether speaker is listened to at time at: the one who speaks
// stays until it has been silent for too long.
func (v *voice) hear(speaker ID, at window.Instant, silence time.Duration) bool {
	if v.speaker != speaker && v.at != 0 && at.Sub(v.at) < silence {
		return false
	}
	v.speaker, v.at = speaker, max(v.at, at)
	return true
}

// Signal is what the series tells.
func (s *Series) Signal() Signal { return s.signal }

// Noted tells whether the notes are those that came with the series before.
func (s *Series) Noted(notes ID) bool { return s.notes == half(notes) }

// Note keeps the notes that came with the series.
func (s *Series) Note(notes ID) { s.notes = half(notes) }

// half of a hash is a hash.
func half(id ID) uint32 { return uint32(id) } //nolint:gosec // the other half is dropped

// Describe renews what is known of the series' replica.
func (s *Series) Describe(identity *Identity) { s.source.member.identity.Store(identity) }

// Replica names the replica that the series is of.
func (s *Series) Replica() string { return s.source.member.replica }

// at is the time of the newest sample.
func (s *Series) at() window.Instant {
	if s.gauge != nil {
		return s.gauge.At()
	}
	return s.histogram.At()
}

// keep is for how long a sample can still count.
func (s *Series) keep() time.Duration { return max(s.source.grid().Length(), window.MaxGap) }

// due tells whether the series may have something to drop.
func (s *Series) due(end window.Instant) bool {
	at := s.at()
	return at == 0 || s.retired != nil || end.Sub(at) > s.keep()
}

// speaks decides whether the series is the one to listen to. A newer name
// silences the older ones at once, and what they told is forgotten.
func (s *Series) speaks(at window.Instant) bool {
	if s.among == nil {
		return true
	}
	silence := s.source.gone()
	if v := s.among.names; v != nil {
		if v.at != 0 && ID(s.alias) < v.speaker {
			s.source.forget(s.signal, s.alias)
			v.speaker = ID(s.alias)
		}
		if !v.hear(ID(s.alias), at, silence) {
			return false
		}
	}
	return s.among.group == nil || s.among.group.hear(s.among.choice, at, silence)
}

// ObserveGauge folds one sample in; unheard means that another name or rank
// speaks for the signal.
func (s *Series) ObserveGauge(at window.Instant, value float64) (outcome window.Outcome, heard bool) {
	if o := s.source.admit(at); o != window.Accepted {
		return o, true
	}
	if !s.speaks(at) {
		return window.Accepted, false
	}
	return s.gauge.Observe(s.source.grid(), at, value), true
}

// ObserveHistogram folds one sample with the given bounds in. Bounds that
// changed begin a new series; what the former one counted stays.
func (s *Series) ObserveHistogram(bounds []float64, sample *window.Sample) (outcome window.Outcome, heard bool) {
	if o := s.source.admit(sample.At); o != window.Accepted {
		return o, true
	}
	if !s.speaks(sample.At) {
		return window.Accepted, false
	}
	if l := s.histogram.Layout(); l == nil || !l.Equal(bounds) {
		s.relay(bounds)
	}
	return s.histogram.Observe(s.source.grid(), sample), true
}

// maxRetired bounds the former layouts of a series.
const maxRetired = 4

// relay continues the series with other bounds: with a former layout where it
// stopped, as when two versions answer by turns, with a new one from the start.
func (s *Series) relay(bounds []float64) {
	if s.histogram.Layout() != nil {
		s.retired = &Series{histogram: s.histogram, retired: s.retired}
	}
	p := s
	for n := 0; p.retired != nil; n++ {
		old := p.retired
		if old.histogram.Layout().Equal(bounds) {
			p.retired = old.retired
			s.histogram = old.histogram
			return
		}
		if n == maxRetired {
			p.retired = nil // the oldest
			break
		}
		p = old
	}
	layout := s.source.target.registry.layouts.Intern(bounds)
	s.histogram = window.NewHistogram(s.source.grid(), layout)
}

// Suspend notes that the series has no value at time at: its target was not
// reached, or stopped telling it. Counters keep what they counted.
func (s *Series) Suspend(at window.Instant) {
	if s.gauge != nil && s.source.admit(at) == window.Accepted {
		s.gauge.Suspend(s.source.grid(), at)
	}
}
