// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"sync"

	"github.com/llmfleet/llmfleet/internal/window"
)

// processes are those of a resident, and who tells of each.
type processes struct {
	mu  sync.Mutex
	all []process
}

type process struct {
	start  float64 // seconds since the Unix epoch
	sender ID
	last   window.Instant
}

// maxProcesses bounds the processes of one resident: restarts leave some behind.
const maxProcesses = 64

// Original tells whether the sender is the one that counts of those that tell
// of the process: the first, until it is silent. A pod may show one process on
// two ports. A process that does not say when it started cannot be told from
// another.
func (r *Resident) Original(start float64, sender ID) bool {
	if start == 0 {
		return true
	}
	now := window.Instant(r.directory.now.Load())
	ps := &r.processes
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for i := range ps.all {
		p := &ps.all[i]
		if p.start != start {
			continue
		}
		if p.sender != sender && now.Sub(p.last) <= window.MaxGap {
			return false
		}
		p.sender, p.last = sender, now
		return true
	}
	if len(ps.all) == maxProcesses {
		ps.all = append(ps.all[:0], ps.all[1:]...)
	}
	ps.all = append(ps.all, process{start, sender, now})
	return true
}
