// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/llmfleet/llmfleet/internal/window"
)

// AcceleratorOptions are what a store of accelerators needs to know.
type AcceleratorOptions struct {
	// Grid is the geometry of the window over which they are read.
	Grid window.Grid
	// Lateness is how long after a pane's end it is judged.
	Lateness time.Duration
	// MaxReplicas bounds the replicas, and with them the accelerators.
	MaxReplicas int
}

// Bounds. Most nodes have eight accelerators or fewer, which all its pods share,
// and not every pod that holds some is a replica. A pod may hold a node's
// accelerators in pieces: up to seven of each.
const (
	acceleratorsPerReplica = 8 // of all pods, in proportion to MaxReplicas
	acceleratorsPerPod     = 128
)

// Accelerators is what the accelerators of pods told in the last window. An
// accelerator that several pods share counts for each of them. It is safe for
// concurrent use.
type Accelerators struct {
	options AcceleratorOptions

	mu      sync.Mutex     // guards what follows, and all that accelerators hold
	end     window.Instant // of the newest pane that was judged
	horizon window.Horizon
	known   map[ID]*Accelerator
	byName  map[Where]*holder // of several pods under one name, the newest
	byUID   map[string]*holder
}

// holder is a pod that holds accelerators.
type holder struct {
	where Where
	uid   string // "" if nobody says it
	holds []*Accelerator
}

// NewAccelerators makes an empty store. It takes no points before it is opened.
func NewAccelerators(o AcceleratorOptions) *Accelerators {
	return &Accelerators{
		options: o,
		known:   make(map[ID]*Accelerator),
		byName:  make(map[Where]*holder),
		byUID:   make(map[string]*holder),
	}
}

// Open makes the store take points around now, before there was an evaluation.
func (a *Accelerators) Open(now window.Instant) {
	g := a.options.Grid
	a.mu.Lock()
	defer a.mu.Unlock()
	a.advance(g.End(g.Pane(now) - 1))
}

func (a *Accelerators) advance(end window.Instant) {
	a.end, a.horizon = end, window.NewHorizon(a.options.Grid, end, a.options.Lateness)
}

// Sweep makes the store take points for the panes after the one that ends at
// end, and forgets the accelerators of which nothing can count any more.
func (a *Accelerators) Sweep(end window.Instant) {
	keep := max(a.options.Grid.Length(), window.MaxGap)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.advance(end)
	for id, x := range a.known {
		if end.Sub(max(x.held, x.presence.Last)) > keep {
			delete(a.known, id)
			a.release(x)
		}
	}
}

// release takes an accelerator from its pod.
func (a *Accelerators) release(x *Accelerator) {
	h := x.holder
	h.holds = slices.DeleteFunc(h.holds, func(o *Accelerator) bool { return o == x })
	if len(h.holds) > 0 {
		return
	}
	if a.byName[h.where] == h {
		delete(a.byName, h.where)
	}
	if a.byUID[h.uid] == h {
		delete(a.byUID, h.uid)
	}
}

// Accelerator returns the accelerator with that id, as one pod holds it; nil if
// it is new.
func (a *Accelerators) Accelerator(id ID) *Accelerator {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known[id]
}

// Hold gives an accelerator to the pod at a place. The id tells the accelerator
// from others, and from itself in the hands of another pod.
func (a *Accelerators) Hold(id ID, at *Place) (*Accelerator, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if x := a.known[id]; x != nil {
		return x, nil
	}
	h := a.holder(at)
	if len(a.known) >= acceleratorsPerReplica*a.options.MaxReplicas || h != nil && len(h.holds) >= acceleratorsPerPod {
		return nil, ErrLimit
	}
	if h == nil {
		h = &holder{where: at.Where, uid: at.UID}
		a.byName[h.where] = h
		if h.uid != "" {
			a.byUID[h.uid] = h
		}
	}
	x := &Accelerator{store: a, holder: h, held: a.end}
	a.known[id] = x
	h.holds = append(h.holds, x)
	return x, nil
}

// holder finds the pod at a place. One of another uid was there before it: a
// pod of a StatefulSet has its predecessor's name.
func (a *Accelerators) holder(at *Place) *holder {
	if at.UID != "" {
		return a.byUID[at.UID]
	}
	return a.byName[at.Where]
}

// holderOf finds a replica's pod: by its uid, by its name among all pods, or,
// where those who tell of accelerators do not know their cluster, by its name in
// the namespace.
func (a *Accelerators) holderOf(identity *Identity) *holder {
	if h := a.byUID[identity.Replica]; h != nil {
		return h
	}
	where := identity.where()
	if h := a.byName[where]; h != nil {
		return h
	}
	where.Cluster = ""
	return a.byName[where]
}

// where is where the identity's replica runs. Of one that has no pod on its
// series, the replica's own name may tell it: namespace/name.
func (id *Identity) where() Where {
	var w Where
	for _, labels := range [...][]Label{id.Keys, id.Where} {
		for _, l := range labels {
			switch l.Name {
			case "cluster":
				w.Cluster = l.Value
			case "namespace":
				w.Namespace = l.Value
			case "pod":
				w.Pod = l.Value
			}
		}
	}
	if w.Pod == "" {
		if namespace, pod, ok := strings.Cut(id.Replica, "/"); ok {
			w.Namespace, w.Pod = namespace, pod
		}
	}
	return w
}
