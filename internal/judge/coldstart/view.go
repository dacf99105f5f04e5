// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"cmp"
	"slices"
	"time"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// How far a time may be off, by what told it: methods of the field keep a second
// for Kubernetes' own times and a tenth for events.
const (
	coarse = time.Second
	fine   = 100 * time.Millisecond
)

// slack is how far two times may be apart that mean the same instant, or come in
// the wrong order, for whole seconds.
const slack = 2 * time.Second

// sighting is a fact by the control plane's clock.
type sighting struct {
	*lifecycle.Fact
	at, until window.Instant
	shifted   time.Duration
	sigma     time.Duration
}

// view is what was told of one pod, oldest first.
type view []sighting

// see corrects the times of a pod's facts for what its clocks are off, and for
// what whole seconds cut off. What runs
// in a container has its node's clock; where the kubelet tells nothing as it
// happens, the engine's own lines show it.
func see(r *record, c *clocks) view {
	v := make(view, len(r.Facts))
	node := lifecycle.Clock{Kind: lifecycle.Node, Of: r.nodeClock()}
	shift, known := c.shift(node), c.of[node] != nil
	if !known {
		shift = c.shiftBy(r.engineLag())
	}
	for i := range r.Facts {
		f := &r.Facts[i]
		s := sighting{Fact: f, at: f.At, until: f.Until, sigma: fine}
		if f.Clock.Kind == lifecycle.Engine || known && f.Clock.Kind == lifecycle.Node {
			s.shifted = shift
		}
		if f.Grain >= time.Second {
			s.sigma = coarse
		}
		cut := f.Grain / 2 // by whole seconds, on average
		s.at = s.at.Add(s.shifted + cut)
		if s.until != 0 {
			s.until = s.until.Add(s.shifted + cut)
		}
		v[i] = s
	}
	slices.SortFunc(v, func(a, b sighting) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Container, b.Container), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Copy, b.Copy))
	})
	return v
}

// nodeClock is whose kubelet tells of the pod.
func (r *record) nodeClock() string {
	for i := range r.Facts {
		if r.Facts[i].Clock.Kind == lifecycle.Node && r.Facts[i].Clock.Of != "" {
			return r.Facts[i].Clock.Of
		}
	}
	return r.About.Node
}

// engineLag is the least lag of the engine's own lines.
func (r *record) engineLag() (lag time.Duration, ok bool) {
	for i := range r.Facts {
		f := &r.Facts[i]
		if f.Clock.Kind != lifecycle.Engine || f.Learned == 0 {
			continue
		}
		if l := f.Learned.Sub(f.At); !ok || l < lag {
			lag, ok = l, true
		}
	}
	return lag, ok
}

// first is the earliest sighting that passes, nil if there is none.
func (v view) first(pass func(*sighting) bool) *sighting {
	for i := range v {
		if pass(&v[i]) {
			return &v[i]
		}
	}
	return nil
}

// last is the latest.
func (v view) last(pass func(*sighting) bool) *sighting {
	for i := len(v) - 1; i >= 0; i-- {
		if pass(&v[i]) {
			return &v[i]
		}
	}
	return nil
}

// finest is the sighting that tells its time most finely, of equals the earliest.
func (v view) finest(pass func(*sighting) bool) (best *sighting) {
	for i := range v {
		if s := &v[i]; pass(s) && (best == nil || s.sigma < best.sigma) {
			best = s
		}
	}
	return best
}

func named(name lifecycle.Name) func(*sighting) bool {
	return func(s *sighting) bool { return s.Name == name }
}

func of(name lifecycle.Name, container string) func(*sighting) bool {
	return func(s *sighting) bool { return s.Name == name && s.Container == container }
}
