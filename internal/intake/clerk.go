// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"slices"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// ClerkOptions are where a clerk reads who speaks.
type ClerkOptions struct {
	Dialects *dialect.Set
	// Labels are the labels and annotations of pods and nodes that tell a fact;
	// of each fact the first that is there counts.
	Labels map[fleet.Fact][]string
	// Groups are labels of pods that together name the replica group that a pod
	// belongs to.
	Groups [][]string
	// Aliases are other names of models: of each the name that counts.
	Aliases map[string]string
	// MaxReplicas bounds the desks.
	MaxReplicas int
}

// Clerk finds out who speaks, in metrics, spans and logs, and keeps what it
// learns in a directory. It is safe for concurrent use.
type Clerk struct {
	directory *fleet.Directory
	options   ClerkOptions
	names     names
	models    models
	// relevant are the labels of points that tell who speaks, each with the
	// stamps that it is.
	relevant map[string]Stamps
	teaches  map[string]bool                                         // those of them that may change
	now      atomic.Int64                                            // window.Instant
	heard    [dialect.ComponentCount][fleet.SignalCount]atomic.Int64 // window.Instant
	spoken   map[*dialect.Dialect]*atomic.Bool                       // which dialects were heard
	faces    atomic.Int64                                            // of all desks

	mu    sync.RWMutex
	desks map[fleet.ID]*Desk
}

// NewClerk makes a clerk that enters whom it meets in the directory.
func NewClerk(o ClerkOptions, d *fleet.Directory) *Clerk {
	c := &Clerk{directory: d, options: o, models: newModels(o.Aliases), desks: make(map[fleet.ID]*Desk)}
	c.names.init(o.Dialects, func(*dialect.Entry) bool { return true }, nil)
	c.relevant, c.teaches = o.relevant(), o.teaches()
	c.spoken = make(map[*dialect.Dialect]*atomic.Bool)
	for _, d := range o.Dialects.Dialects() {
		c.spoken[d] = new(atomic.Bool)
	}
	return c
}

// Tally is what could not be identified so far, by reason.
func (c *Clerk) Tally() *Tally { return c.names.tally }

// Missed counts what a span named and nobody is known by.
func (c *Clerk) Missed(r Reason, what string) { c.names.tally.ignore(r, what, "") }

// Sweep forgets who was not heard for too long. It returns the residents in the
// order of their ids.
func (c *Clerk) Sweep(now window.Instant) []*fleet.Resident {
	c.now.Store(int64(now))
	residents := c.directory.Sweep(now)
	c.mu.Lock()
	defer c.mu.Unlock()
	faces := 0
	for id, d := range c.desks {
		switch last := d.last.Load(); {
		case last == 0:
			d.last.Store(int64(now))
		case now.Sub(window.Instant(last)) > c.directory.ForgetAfter():
			delete(c.desks, id)
			continue
		}
		d.mu.Lock()
		faces += len(d.faces)
		d.mu.Unlock()
	}
	c.faces.Store(int64(faces)) // those of desks that found no room are gone
	return residents
}

// desksPerReplica bounds the desks: a replica has a target or two, and sends
// spans and logs beside.
const desksPerReplica = 4

// Desk returns where the telemetry of the resource is received.
func (c *Clerk) Desk(resource pcommon.Map) *Desk {
	series, notes := c.names.labels(resource)
	id := series + notes
	c.mu.RLock()
	d := c.desks[id]
	c.mu.RUnlock()
	if d != nil {
		d.last.Store(c.now.Load())
		return d
	}
	d = c.newDesk(id, resource)
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.desks[id]; known != nil {
		return known
	}
	if len(c.desks) >= desksPerReplica*c.options.MaxReplicas {
		c.names.tally.ignore(Limit, "", instanceOf(resource))
		return d
	}
	c.desks[id] = d
	return d
}

// Expected are the signals that a component should tell: those of its dialects
// that were heard, or of all where none was.
func (c *Clerk) Expected(component dialect.Component) []fleet.Signal {
	var heard, all []fleet.Signal
	for d, spoken := range c.spoken {
		if d.Component != component {
			continue
		}
		for _, f := range d.Forms {
			all = append(all, f.Entry.Signal)
			if spoken.Load() {
				heard = append(heard, f.Entry.Signal)
			}
		}
	}
	if len(heard) == 0 {
		heard = all
	}
	slices.Sort(heard)
	return slices.Compact(heard)
}

// Heard is when a component last told a signal, zero if it never did.
func (c *Clerk) Heard(component dialect.Component, s fleet.Signal) window.Instant {
	return window.Instant(c.heard[component][s].Load())
}

// Endpoint returns who serves at an address that a gateway sent a request to, or
// the first of several; nil, and counted, if nobody is known there.
func (c *Clerk) Endpoint(address string) *fleet.Resident {
	host, ip := endpoint(address)
	for _, at := range []string{host, ip} {
		if r := c.directory.At(at); r != nil {
			return r
		}
	}
	c.names.tally.ignore(UnknownEndpoint, host, "")
	return nil
}

// Model is the name that counts of a model that a gateway was asked for, and
// whether any engine serves it under that name.
func (c *Clerk) Model(name string) (canonical string, served bool) {
	canonical = c.models.canonical(name)
	return canonical, c.directory.Serves(canonical)
}
