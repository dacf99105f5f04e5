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
	// Reason is why the requests ended that a series of Finished counts; "" where
	// that is not told. It is copied if it is kept.
	Reason string
	// Realtime: the series tells of tokens as they are made.
	Realtime bool
}

// Series is one engine series of one target, read as one signal. There are many:
// what few of them have stands beside.
type Series struct {
	source    *Source
	beside    *beside // nil: nothing
	histogram window.Histogram
	notes     uint32 // hash of what was last said about the replica
	rank      uint16 // hash of the labels that tell ranks apart
	signal    Signal
	alias     uint8
	reason    uint8 // of Finished: the number of the reason
}

// beside is what a series has beside a histogram.
type beside struct {
	gauge  *window.Gauge // nil: it is a histogram
	former *former       // the same series with former bucket bounds
	// The others of which one speaks: the names of a signal, and the ranks that
	// repeat each other.
	names  *voice // by alias; nil: there is one name
	group  *voice // by choice; nil: all ranks count
	choice ID
}

// former is what a series counted with bucket bounds that it had before.
type former struct {
	histogram window.Histogram
	next      *former
}

// aside is what the series has beside a histogram, to be set.
func (s *Series) aside() *beside {
	if s.beside == nil {
		s.beside = new(beside)
	}
	return s.beside
}

// gauge is nil of a histogram.
func (s *Series) gauge() *window.Gauge {
	if s.beside == nil {
		return nil
	}
	return s.beside.gauge
}

// former is what the series counted with former bucket bounds, the newest first.
func (s *Series) former() *former {
	if s.beside == nil {
		return nil
	}
	return s.beside.former
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
func (s *Series) Describe(identity *Identity) { s.source.member.describe(identity) }

// Replica names the replica that the series is of.
func (s *Series) Replica() string { return s.source.member.replica }

// at is the time of the newest sample.
func (s *Series) at() window.Instant {
	if g := s.gauge(); g != nil {
		return g.At()
	}
	return s.histogram.At()
}

// keep is for how long a sample can still count.
func (s *Series) keep() time.Duration { return max(s.source.grid().Length(), window.MaxGap) }

// due tells whether the series may have something to drop.
func (s *Series) due(end window.Instant) bool {
	at := s.at()
	return at == 0 || s.former() != nil || end.Sub(at) > s.keep()
}

// speaks decides whether the series is the one to listen to. A newer name
// silences the older ones at once, and what they told is forgotten.
func (s *Series) speaks(at window.Instant) bool {
	if s.beside == nil {
		return true
	}
	silence := s.source.gone()
	if v := s.beside.names; v != nil {
		if v.at != 0 && ID(s.alias) < v.speaker {
			s.source.forget(s.signal, s.alias)
			v.speaker = ID(s.alias)
		}
		if !v.hear(ID(s.alias), at, silence) {
			return false
		}
	}
	return s.beside.group == nil || s.beside.group.hear(s.beside.choice, at, silence)
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
	return s.beside.gauge.Observe(s.source.grid(), at, value), true
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

// maxFormer bounds the former layouts of a series.
const maxFormer = 4

// relay continues the series with other bounds: with a former layout where it
// stopped, as when two versions answer by turns, with a new one from the start.
func (s *Series) relay(bounds []float64) {
	again, ok := s.resume(bounds)
	if s.histogram.Layout() != nil {
		s.retire(&s.histogram)
	}
	if !ok {
		again = window.NewHistogram(s.source.grid(), s.layout(bounds))
	}
	s.histogram = again
}

// resume takes out what the series counted with these bounds before.
func (s *Series) resume(bounds []float64) (h window.Histogram, ok bool) {
	if s.former() == nil {
		return h, false
	}
	for p := &s.beside.former; *p != nil; p = &(*p).next {
		if f := *p; f.histogram.Layout().Equal(bounds) {
			*p = f.next
			return f.histogram, true
		}
	}
	return h, false
}

// retire keeps a histogram of the series for as long as it is in the window.
func (s *Series) retire(h *window.Histogram) {
	s.aside().former = &former{*h, s.former()}
	oldest := s.former()
	for range maxFormer - 1 {
		if oldest = oldest.next; oldest == nil {
			return
		}
	}
	oldest.next = nil
}

// layout is the one of these bounds; of a counter it has none.
func (s *Series) layout(bounds []float64) *window.Layout {
	if s.signal.Kind() == Counter && len(bounds) == 0 {
		return window.Counter()
	}
	return s.source.target.registry.layouts.Intern(bounds)
}

// Suspend notes that the series has no value at time at: its target was not
// reached, or stopped telling it. Counters keep what they counted.
func (s *Series) Suspend(at window.Instant) {
	if g := s.gauge(); g != nil && s.source.admit(at) == window.Accepted {
		g.Suspend(s.source.grid(), at)
	}
}
