// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"time"

	"github.com/llmfleet/llmfleet/internal/window"
)

// attendance is when a replica was heard from, by any of its live sources.
type attendance struct {
	first, last window.Instant
	gone        time.Duration // how long it may be silent
}

// add adds what one source heard, if it is still there at time end.
func (a *attendance) add(s *Source, end window.Instant) bool {
	if s.presence.Last == 0 || s.departed(end) {
		return false
	}
	if a.first == 0 || s.presence.First < a.first {
		a.first = s.presence.First
	}
	a.last = max(a.last, s.presence.Last)
	a.gone = max(a.gone, s.gone())
	return true
}

// attend returns since when the replica is there; zero if it is not. A replica
// that goes on under another address, before it counts as departed, has stayed.
// Only the evaluation calls it.
func (m *Member) attend(a attendance) window.Instant {
	switch {
	case a.first == 0:
		m.since = 0
	case m.since == 0 || a.first > m.last.Add(m.gone):
		m.since = a.first
	default:
		m.since = min(m.since, a.first)
	}
	m.last, m.gone = a.last, a.gone
	return m.since
}
