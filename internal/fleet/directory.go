// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmfleet/llmfleet/internal/window"
)

// DirectoryOptions are what a directory needs to know.
type DirectoryOptions struct {
	// Order is which origin of a fact counts before which. One that is left out
	// never counts.
	Order []Origin
	// MaxReplicas bounds the residents, and with them everything else.
	MaxReplicas int
	// ForgetAfter is how long a resident is kept that is not heard any more.
	ForgetAfter time.Duration
}

// keysPerReplica bounds the ways to find a resident: each of its pods has a uid,
// a name, an IP address, and a port or two.
const keysPerReplica = 64

// Directory is who serves where, and what is known of each: what one signal of
// a replica tells is there for all others. It is safe for concurrent use.
type Directory struct {
	options DirectoryOptions
	now     atomic.Int64  // window.Instant of the newest sweep
	tick    atomic.Int64  // time.Duration since the one before
	growth  atomic.Uint64 // rises with every change of who is found where

	mu        sync.RWMutex // guards what follows, and what is known of residents
	residents map[string]*Resident
	found     map[string]*Resident   // by a pod's uid, its name, and network address: the newest
	crowded   map[string][]*Resident // network addresses that several have
	nodes     map[string]*Equipment
	models    map[string]int // how many residents serve each
}

// NewDirectory makes an empty directory.
func NewDirectory(o DirectoryOptions) *Directory {
	d := &Directory{
		options:   o,
		residents: make(map[string]*Resident),
		found:     make(map[string]*Resident),
		crowded:   make(map[string][]*Resident),
		nodes:     make(map[string]*Equipment),
		models:    make(map[string]int),
	}
	d.growth.Store(1)
	return d
}

// ForgetAfter is how long a resident is kept that is not heard any more.
func (d *Directory) ForgetAfter() time.Duration { return d.options.ForgetAfter }

// Trusts tells whether what an origin tells counts.
func (d *Directory) Trusts(o Origin) bool { return slices.Contains(d.options.Order, o) }

// Growth is another number, and never 0, whenever somebody else might be found
// than before.
func (d *Directory) Growth() uint64 { return d.growth.Load() }

// Count is how many residents there are.
func (d *Directory) Count() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.residents)
}

// Resident returns the resident with this id; nil if there is none.
func (d *Directory) Resident(id string) *Resident {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.residents[id]
}

// Find returns the resident at a place; nil if there is none, or more than one.
// Whoever has another uid, or another name, is another pod.
func (d *Directory) Find(at *Place) *Resident {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if r := d.found[at.UID]; r != nil {
		return r
	}
	if r := d.found[at.name()]; r != nil {
		if at.UID != "" && r.hasUID {
			return nil
		}
		return r
	}
	for _, a := range at.Addresses {
		r := d.at(a)
		if r == nil || at.UID != "" && r.hasUID || at.Pod != "" && r.hasName {
			continue
		}
		return r
	}
	return nil
}

// At returns the resident at an address in the network; nil if there is none,
// or more than one.
func (d *Directory) At(address string) *Resident {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.at(address)
}

// at finds the only resident that has the address, or of several the only one
// that is not silent: addresses are given anew.
func (d *Directory) at(address string) (found *Resident) {
	holders := d.crowded[address]
	if len(holders) == 0 {
		return d.found[address]
	}
	now := window.Instant(d.now.Load())
	for _, r := range holders {
		if now.Sub(window.Instant(r.last.Load())) > window.MaxGap {
			continue
		}
		if found != nil {
			return nil
		}
		found = r
	}
	return found
}

// Enter returns the resident with this id, which is made if it is new, and is
// found at the place from now on. The only error is ErrLimit. The strings are
// kept.
func (d *Directory) Enter(id string, at *Place) (*Resident, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.residents[id]
	if r == nil {
		if len(d.residents) >= d.options.MaxReplicas {
			return nil, ErrLimit
		}
		r = newResident(id, d)
		d.residents[r.ID] = r
		d.growth.Add(1)
	}
	r.Hear()
	r.moveIn(at)
	return r, nil
}

// Sweep forgets who was not heard for too long before now, and lets what was
// learned of nodes and of former holders of a name count. It returns the
// residents in the order of their ids.
func (d *Directory) Sweep(now window.Instant) []*Resident {
	if before := d.now.Swap(int64(now)); before != 0 {
		d.tick.Store(int64(now) - before)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, n := range d.nodes {
		if silent(&n.last, now) > d.options.ForgetAfter {
			delete(d.nodes, name)
		}
	}
	all := make([]*Resident, 0, len(d.residents))
	for _, r := range d.residents {
		if silent(&r.last, now) > d.options.ForgetAfter {
			r.leave()
			continue
		}
		r.equip()
		r.retire(now)
		r.compare()
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *Resident) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// silent is how long before now something was last heard. What was heard before
// there was a clock is heard now.
func silent(last *atomic.Int64, now window.Instant) time.Duration {
	last.CompareAndSwap(0, int64(now))
	return now.Sub(window.Instant(last.Load()))
}

// Equipment is the accelerators of one node, as something that tells of them
// knows them.
type Equipment struct {
	directory *Directory
	last      atomic.Int64 // window.Instant when it was last heard of
	gpuModel  string       // "" if there are several
}

// Equip notes the model of a node's accelerators; nil if there is no room for
// another node. The strings are kept.
func (d *Directory) Equip(node, gpuModel string) *Equipment {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.nodes[node]
	switch {
	case e == nil && len(d.nodes) >= d.options.MaxReplicas:
		return nil
	case e == nil:
		e = &Equipment{directory: d, gpuModel: gpuModel}
		d.nodes[node] = e
	case e.gpuModel != gpuModel:
		e.gpuModel = "" // two models on one node: it says nothing of a replica
	}
	e.Hear()
	return e
}

// Hear notes that the equipment is there.
func (e *Equipment) Hear() { e.last.Store(e.directory.now.Load()) }
