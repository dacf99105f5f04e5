// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package k8sfleetreceiver

import (
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
)

// patience is how long lists and watches of a resource may fail before that is
// reported.
const patience = time.Minute

// health is how the watches are. Safe for concurrent use.
type health struct {
	tell func(*componentstatus.Event)

	mu  sync.Mutex
	of  map[string]*pulse // by resource
	ill bool              // as it was told last
}

// pulse is how the watch of one resource is.
type pulse struct {
	errors  int64
	failing time.Time // since when; zero: it does not
	last    error
	heard   time.Time // when the server last told something of it
}

func newHealth(tell func(*componentstatus.Event)) *health {
	return &health{tell: tell, of: make(map[string]*pulse)}
}

// pulse is that of a resource. Called with mu held.
func (h *health) pulse(resource string) *pulse {
	p := h.of[resource]
	if p == nil {
		p = new(pulse)
		h.of[resource] = p
	}
	return p
}

// failed notes that a list or a watch failed.
func (h *health) failed(resource string, err error, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.pulse(resource)
	p.errors++
	p.last = err
	if p.failing.IsZero() {
		p.failing = now
	}
}

// works notes that a watch stands.
func (h *health) works(resource string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pulse(resource).failing = time.Time{}
}

// hears notes that the server told something.
func (h *health) hears(resource string, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pulse(resource).heard = now
}

// check reports when a watch has failed for longer than patience, and when all
// stand again.
func (h *health) check(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var worst *pulse
	var of string
	for resource, p := range h.of {
		if !p.failing.IsZero() && now.Sub(p.failing) > patience && (worst == nil || p.failing.Before(worst.failing)) {
			worst, of = p, resource
		}
	}
	if (worst != nil) == h.ill {
		return
	}
	h.ill = worst != nil
	if !h.ill {
		h.tell(componentstatus.NewEvent(componentstatus.StatusOK))
		return
	}
	h.tell(componentstatus.NewRecoverableErrorEvent(fmt.Errorf(
		"%s cannot be watched since %s: grant list and watch on them, or name them in ignore_resources: %w",
		of, worst.failing.UTC().Format(time.RFC3339), worst.last)))
}

// rest forgets how watches were that have ended.
func (h *health) rest() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.of {
		p.failing, p.heard = time.Time{}, time.Time{}
	}
}

// each calls back with each resource that was watched: errors so far, and when
// the server last told something of it, zero if it did not.
func (h *health) each(f func(resource string, errors int64, heard time.Time)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for resource, p := range h.of {
		f(resource, p.errors, p.heard)
	}
}

// report tells the collector how the watches are.
func (c *core) report(e *componentstatus.Event) {
	c.hosts.Range(func(_, host any) bool {
		componentstatus.ReportStatus(host.(component.Host), e)
		return true
	})
}
