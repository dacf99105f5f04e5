// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"slices"
	"time"

	"github.com/llmfleet/llmfleet/internal/window"
)

// JournalOptions are what Journals keep.
type JournalOptions struct {
	// Window is the length of the windows, aligned to the Unix epoch.
	Window time.Duration
	// MaxTenants is for how many a record of a window is kept at a time.
	MaxTenants int
	// MaxEnded is how many windows that ended wait to be told, at least 1.
	MaxEnded int
	// Bounds are the ascending upper bounds of the times to first token, in
	// seconds; by default DefaultBounds.
	Bounds []float64
}

// Journals are one journal a window: of the one that is open, and of those that
// ended and wait to be told. A window ends by the times at which requests are
// counted, however long the others take to be told; where more would wait than
// may, the open one goes on into the next. They are not safe for concurrent use.
type Journals struct {
	JournalOptions
	open   *Journal // nil after End
	ended  []*Journal
	merged uint64
}

// NewJournals opens the window that now is in. Of that one, records are partial
// unless it begins now.
func NewJournals(o JournalOptions, now window.Instant) *Journals {
	s := &Journals{JournalOptions: o}
	s.open = s.journal(s.around(now))
	s.open.partial = s.open.From < now
	return s
}

// Count counts a request at the time at, which does not fall. If the open journal
// is full of others, early is the record that makes room; it is borrowed until
// the next call.
func (s *Journals) Count(r *Request, at window.Instant) (early *Record) {
	s.Turn(at - 1) // what comes at the end of a window is in it
	return s.open.count(r)
}

// Turn ends the open window if it is over at now, and opens the one that now is
// in. Of windows in which nobody sent anything there is nothing to tell.
func (s *Journals) Turn(now window.Instant) {
	if s.open == nil || now < s.open.To {
		return
	}
	from, to := s.around(now)
	if !s.open.empty() {
		if len(s.ended) >= s.MaxEnded {
			s.merged += uint64(to.Sub(s.open.To) / s.Window) //nolint:gosec // to is later
			s.open.To, s.open.partial = to, true
			return
		}
		s.ended = append(s.ended, s.open)
	}
	s.open = s.journal(from, to)
}

// End ends the open window at now, which cuts it short. Nothing is to be counted
// after.
func (s *Journals) End(now window.Instant) {
	s.Turn(now)
	if !s.open.empty() {
		s.open.To, s.open.partial = max(now, s.open.From), true
		s.ended = append(s.ended, s.open)
	}
	s.open = nil
}

// Next is the window that ended first of those that wait to be told, nil if none
// does. It waits until Told.
func (s *Journals) Next() *Journal {
	if len(s.ended) == 0 {
		return nil
	}
	return s.ended[0]
}

// Told lets go of the window that is Next.
func (s *Journals) Told() { s.ended = slices.Delete(s.ended, 0, 1) }

// Merged is how many windows were not told as such so far, but together with the
// one before them.
func (s *Journals) Merged() uint64 { return s.merged }

// around is the window that begins at now, or before it.
func (s *Journals) around(now window.Instant) (from, to window.Instant) {
	from = now - now%window.Instant(s.Window)
	return from, from.Add(s.Window)
}
