// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"sync"
	"time"

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
	gap    time.Duration // the longest between two times that it told
}

// silent tells whether the sender was not heard for much longer than usual.
func (p *process) silent(now window.Instant, tick time.Duration) bool {
	return now.Sub(p.last) > min(silentGaps*max(p.gap, tick), window.MaxGap)
}

// silentGaps is after how many of the longest gaps a sender counts as silent.
const silentGaps = 2

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
		switch {
		case p.sender == sender:
			p.gap = max(p.gap, now.Sub(p.last))
		case p.silent(now, time.Duration(r.directory.tick.Load())):
			p.sender, p.gap = sender, 0
		default:
			return false
		}
		p.last = now
		return true
	}
	if len(ps.all) == maxProcesses {
		ps.all = append(ps.all[:0], ps.all[1:]...)
	}
	ps.all = append(ps.all, process{start: start, sender: sender, last: now})
	return true
}
