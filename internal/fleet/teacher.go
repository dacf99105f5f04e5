// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"sync"
	"time"

	"github.com/llmfleet/llmfleet/internal/window"
)

// Taught tells whether what a sender says of the resident is known, or is not to
// be listened to because another one, who says something else, still speaks. If
// not, the sender is the one to learn from: who told of it before, and comes
// again when the other has fallen silent.
func (r *Resident) Taught(by ID) bool {
	now := window.Instant(r.directory.now.Load())
	t := &r.taught
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sender != by && now.Sub(t.last) <= time.Duration(taughtTicks*r.directory.tick.Load()) {
		return true
	}
	t.last = now
	return t.sender == by
}

// Teach notes that the resident was learned from the sender.
func (r *Resident) Teach(by ID) {
	now := window.Instant(r.directory.now.Load())
	r.taught.mu.Lock()
	defer r.taught.mu.Unlock()
	r.taught.sender, r.taught.last = by, now
}

// taughtTicks is for how many sweeps of silence a sender is still believed.
const taughtTicks = 4

// teacher is who the resident was last learned from.
type teacher struct {
	mu     sync.Mutex
	sender ID
	last   window.Instant
}
