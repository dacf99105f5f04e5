// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmfleet/llmfleet/internal/window"
)

// Options are what a registry needs to know.
type Options struct {
	// Grids are the window geometries in use; they share one interval.
	Grids []window.Grid
	// Grid says which of them a fleet with these keys has; nil: the first.
	Grid func(keys []Label) int
	// Lateness is how long after a pane's end it is judged.
	Lateness time.Duration
	// DepartedAfter is how long a replica may be silent before it counts as
	// departed; zero: three times its own observed interval.
	DepartedAfter time.Duration
	// MaxReplicas bounds the replicas, and with them everything else.
	MaxReplicas int
	// CopiesByProcess: two targets tell of one process only if both say when it
	// began, and say the same. Otherwise counts are compared where they do not
	// say: but two gateways that requests are dealt to in turn count alike.
	CopiesByProcess bool
}

// Bounds in proportion to MaxReplicas: a replica has a target or two and, over
// all ranks, some dozens of series that are read. One alone may have more, but
// not all of them.
const (
	targetsPerReplica = 4
	seriesPerReplica  = 64
	seriesPerSource   = 1024
	fleetsPerReplica  = 32 // of one target: models that a sender may invent
)

// ErrLimit says that something new was refused because the registry is full.
var ErrLimit = errors.New("limit of replicas, targets or series reached")

// Registry is who is in which fleet and what they told in the last window. It
// is safe for concurrent use: points are folded in under the lock of their
// target alone, and never wait for an evaluation.
type Registry struct {
	options     Options
	layouts     window.Layouts
	reasons     reasons
	seriesCount atomic.Int64
	countsTaken int // by the last evaluation: how much the next will need

	mu      sync.RWMutex // guards what follows; held for look-ups and changes only
	targets map[ID]*Target
	fleets  map[string]*Fleet
	members int
	// departed is how many of the members were not there at the last
	// evaluation; they make room, but not for more than as many again.
	departed int
	end      window.Instant // of the newest pane that was, or is being, judged
}

// Fleet is the replicas that may be compared.
type Fleet struct {
	Keys    []Label
	Plan    int // which of Options.Grids it has
	key     string
	grid    window.Grid
	members map[string]*Member
	// interval is how often its members report, half of them at least so often.
	interval time.Duration
}

// Key tells the fleet from all others, now and after a restart.
func (f *Fleet) Key() string {
	if f.key == "" {
		return keyOf(f.Keys)
	}
	return f.key
}

// Member is one replica in one fleet.
type Member struct {
	fleet    *Fleet
	replica  string
	sources  []*Source
	identity atomic.Pointer[Identity]
	since    window.Instant // since when it is there; zero when it is not
	last     window.Instant // when it was last heard
	gone     time.Duration  // how long it might be silent then
}

// Identity says who the member is, and which variant it is now.
func (m *Member) Identity() *Identity { return m.identity.Load() }

// describe keeps what is known of the member. What all of its fleet have in common
// is kept once.
func (m *Member) describe(identity *Identity) {
	identity.Keys, identity.Replica = m.fleet.Keys, m.replica
	m.identity.Store(identity)
}

// NewRegistry makes an empty registry.
func NewRegistry(options Options) *Registry {
	return &Registry{
		options: options,
		targets: make(map[ID]*Target),
		fleets:  make(map[string]*Fleet),
	}
}

// Open makes the registry take points around now, before there was an
// evaluation.
func (r *Registry) Open(now window.Instant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.options.Grids[0]
	r.end = g.End(g.Pane(now) - 1)
}

// Members is how many replicas there are, and how many there may be.
func (r *Registry) Members() (count, limit int) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.members - r.departed, r.options.MaxReplicas
}

// full tells whether there is no room for another replica.
func (r *Registry) full() bool {
	return r.members-r.departed >= r.options.MaxReplicas || r.members >= 2*r.options.MaxReplicas
}

// Acquire returns the target with that id, locked. A new one is made only if
// create is set; otherwise, or without room, the answer is nil.
func (r *Registry) Acquire(id ID, create bool) (*Target, error) {
	for {
		t, err := r.target(id, create)
		if t == nil {
			return nil, err
		}
		t.Lock()
		if !t.removed {
			return t, nil
		}
		t.Unlock()
	}
}

func (r *Registry) target(id ID, create bool) (*Target, error) {
	r.mu.RLock()
	t := r.targets[id]
	r.mu.RUnlock()
	if t != nil || !create {
		return t, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.targets[id]; t != nil {
		return t, nil
	}
	if len(r.targets) >= targetsPerReplica*r.options.MaxReplicas {
		return nil, ErrLimit
	}
	t = &Target{registry: r, id: id}
	r.targets[id] = t
	return t, nil
}

// Join adds a series to a target that its caller has locked.
func (t *Target) Join(id ID, identity *Identity, signal Signal, spelling Spelling) (*Series, error) {
	if t.registry.seriesCount.Load() >= int64(seriesPerReplica*t.registry.options.MaxReplicas) {
		return nil, ErrLimit
	}
	source, err := t.source(identity)
	if err != nil {
		return nil, err
	}
	if len(source.series) >= t.registry.mostSeries(identity) {
		return nil, ErrLimit
	}
	s := &Series{source: source, signal: signal, alias: spelling.Alias, rank: uint16(spelling.Rank)} //nolint:gosec // a part of a hash is a hash
	if signal == Finished {
		s.reason = t.registry.reasons.number(spelling.Reason)
	}
	if spelling.Group != 0 {
		s.beside = &beside{choice: spelling.Choice, group: source.voiceOf(spelling.Group)}
	}
	source.realtime = source.realtime || spelling.Realtime
	source.name(s)
	if signal.Kind() == Gauge {
		g := window.NewGauge(source.grid())
		s.aside().gauge = &g
	}
	t.series.put(id, s)
	source.series = append(source.series, s)
	t.registry.seriesCount.Add(1)
	return s, nil
}

// mostSeries is how many series one target may tell of a replica. Who stands for
// many has as many as a quarter of all.
func (r *Registry) mostSeries(of *Identity) int {
	share := seriesPerReplica * r.options.MaxReplicas / 4
	if of.Many {
		return max(seriesPerReplica, share)
	}
	return max(seriesPerReplica, min(seriesPerSource, share))
}

// source finds or makes what this target tells of the identity's replica.
func (t *Target) source(identity *Identity) (*Source, error) {
	key := identity.fleetKey()
	if s := t.find(sourceKey{fleet: key, replica: identity.Replica}); s != nil {
		s.member.describe(identity)
		return s, nil
	}
	r := t.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.fleets[key]
	if f == nil {
		f = r.newFleet(key, identity.Keys)
	}
	m := f.members[identity.Replica]
	if m == nil {
		if r.full() && !identity.Many || t.scattered(identity.Replica) {
			return nil, ErrLimit
		}
		m = &Member{fleet: f, replica: identity.Replica}
		f.members[identity.Replica] = m
		r.members++
	}
	r.fleets[f.key] = f
	m.describe(identity)
	s := &Source{target: t, member: m, reachable: true}
	s.open(r.end)
	m.sources = append(m.sources, s)
	t.add(s)
	return s, nil
}

func (r *Registry) newFleet(key string, keys []Label) *Fleet {
	f := &Fleet{Keys: slices.Clone(keys), key: key, members: make(map[string]*Member)}
	if r.options.Grid != nil {
		f.Plan = r.options.Grid(keys)
	}
	f.grid = r.options.Grids[f.Plan]
	return f
}
