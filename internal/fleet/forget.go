// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"

	"github.com/llmfleet/llmfleet/internal/window"
)

// forget drops whatever can no longer count after end.
func (r *Registry) forget(end window.Instant) {
	r.mu.RLock()
	targets := make([]*Target, 0, len(r.targets))
	for _, t := range r.targets {
		targets = append(targets, t)
	}
	r.mu.RUnlock()
	for _, t := range targets {
		t.Lock()
		t.sweep(end)
		r.removeSilent(t, end)
		t.Unlock()
	}
}

// removeSilent takes the sources that hold nothing any more out of their
// replicas, those out of their fleets, and so on.
func (r *Registry) removeSilent(t *Target, end window.Instant) {
	silent := func(s *Source) bool { return len(s.series) == 0 && s.departed(end) }
	if len(t.sources) > 0 && !slices.ContainsFunc(t.sources, silent) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t.sources = slices.DeleteFunc(t.sources, func(s *Source) bool {
		if !silent(s) {
			return false
		}
		r.removeSource(s)
		t.index.remove(s)
		return true
	})
	if len(t.sources) == 0 {
		t.removed = true
		delete(r.targets, t.id)
	}
}

func (r *Registry) removeSource(s *Source) {
	m := s.member
	m.sources = slices.DeleteFunc(m.sources, func(o *Source) bool { return o == s })
	if len(m.sources) > 0 {
		return
	}
	delete(m.fleet.members, m.replica)
	r.members--
	r.departed = max(0, r.departed-1)
	if len(m.fleet.members) == 0 {
		delete(r.fleets, m.fleet.key)
	}
}
