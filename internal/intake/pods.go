// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"
	"sync"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// pods are those whose uid was told, by their names. Who federates knows the name
// alone: a pod that is scraped, too, is the same replica by either way.
type pods struct {
	mu       sync.RWMutex
	uids     map[where]string
	formerly map[where]string // until there were maxPods
}

// maxPods bounds the pods that are remembered, twice: the newest so many are.
const maxPods = 1 << 15

// note remembers the uid of a pod.
func (ps *pods) note(at where, uid string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.uids == nil || len(ps.uids) >= maxPods {
		ps.formerly, ps.uids = ps.uids, make(map[where]string)
	}
	ps.uids[at] = uid
}

// uid is that of a pod; "" if nobody told it.
func (ps *pods) uid(at where) string {
	ps.mu.RLock()
	defer ps.mu.RUnlock()
	if uid, ok := ps.uids[at]; ok {
		return uid
	}
	return ps.formerly[at]
}

// any tells whether any uid was told.
func (ps *pods) any() bool {
	ps.mu.RLock()
	defer ps.mu.RUnlock()
	return ps.uids != nil
}

// recognize gives a replica that is named by its pod alone the name that others
// know it by.
func (ps *pods) recognize(replica string, p *point) string {
	at, uid := p.where(), p.ofResource(resourcePodUID)
	switch {
	case replica == uid && at.Pod != "":
		ps.note(at, uid)
	case at.named(replica):
		return cmp.Or(ps.uid(at), replica)
	}
	return replica
}

// salt tells a series of a replica that is named by its pod alone from the same
// since the uid is known: it is another replica's.
func (ps *pods) salt(n *names, p *point) fleet.ID {
	if !ps.any() {
		return 0
	}
	if at := p.where(); at.named(p.replica()) {
		if uid := ps.uid(at); uid != "" {
			return n.texts(uid)
		}
	}
	return 0
}
