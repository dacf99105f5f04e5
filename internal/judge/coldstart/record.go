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

// What is kept of one pod is bounded, and what is believed.
const (
	maxFacts    = 512
	maxLinks    = 64
	maxAttempts = 1 << 20
)

// record is what is kept of one pod. Fields are exported to be saved.
type record struct {
	UID   string
	About lifecycle.Pod
	Facts []lifecycle.Fact // Pod and About left out
	Links []lifecycle.Link
	// Took is how long that took of which only the length was told.
	Took map[lifecycle.Name]time.Duration
	// Heard is when the pod was first heard of, Served and Ended when its being
	// Ready, or its end, was.
	Heard, Served, Ended window.Instant
	// Over is when the start was told, or found to be none to tell; 0 before.
	Over window.Instant
	// Of is the start that was told with the pod, "" if none was; Root its end.
	Of    string
	Root  window.Instant
	Token bool // the first token was told
}

// note adds a fact. Of a container's starts that are told by one event that counts,
// each is a fact.
func (r *record) note(f *lifecycle.Fact, now window.Instant) Ignored {
	if f.Name == lifecycle.ContainerStarted && f.Attempt < 0 && f.Count > 1 && f.Until > f.At {
		again := *f
		again.At, again.Attempt, again.Count, again.Until = f.Until, f.Count-1, 0, 0
		if ignored := r.note(&again, now); ignored == Limit {
			return ignored
		}
	}
	if f.About != nil {
		r.know(f.About)
	}
	if f.At <= 0 { // of the ranks of an engine the slowest counts
		if r.Took[f.Name] >= f.Took {
			return Duplicate
		}
		if r.Took == nil {
			r.Took = make(map[lifecycle.Name]time.Duration)
		}
		r.Took[f.Name] = f.Took
		return Taken
	}
	for i := range r.Facts {
		known := &r.Facts[i]
		if known.At == f.At && known.Name == f.Name && known.Container == f.Container && known.Attempt == f.Attempt && known.Copy == f.Copy {
			known.Count, known.Until = max(known.Count, f.Count), max(known.Until, f.Until)
			return Duplicate
		}
	}
	if len(r.Facts) >= maxFacts {
		return Limit
	}
	r.Facts = append(r.Facts, *f)
	kept := &r.Facts[len(r.Facts)-1]
	kept.Pod, kept.About = "", nil
	if kept.Attempt > maxAttempts {
		kept.Attempt = -1
	}
	switch f.Name {
	case lifecycle.Ready:
		if r.Served == 0 {
			r.Served = now
		}
	case lifecycle.Failed, lifecycle.Deleted:
		if r.Ended == 0 {
			r.Ended = now
		}
	}
	return Taken
}

// know takes over what is said of the pod and was not known.
func (r *record) know(p *lifecycle.Pod) {
	a := &r.About
	for _, text := range []struct{ to, from *string }{
		{&a.Name, &p.Name},
		{&a.Namespace, &p.Namespace},
		{&a.Node, &p.Node},
		{&a.WorkloadKind, &p.WorkloadKind},
		{&a.Workload, &p.Workload},
		{&a.Model, &p.Model},
		{&a.Engine, &p.Engine},
		{&a.GPUModel, &p.GPUModel},
		{&a.Group, &p.Group},
		{&a.Leader, &p.Leader},
	} {
		if *text.to == "" {
			*text.to = *text.from
		}
	}
	a.GPUs, a.GroupSize = max(a.GPUs, p.GPUs), max(a.GroupSize, p.GroupSize)
	if len(a.Containers) == 0 {
		a.Containers = slices.Clone(p.Containers)
	}
}

// has tells whether any of the facts is known.
func (r *record) has(names ...lifecycle.Name) bool {
	for i := range r.Facts {
		if slices.Contains(names, r.Facts[i].Name) {
			return true
		}
	}
	return false
}

// began is the earliest time that is known of the pod, its creation if that is,
// and when it was heard of if nothing is.
func (r *record) began() window.Instant {
	var at window.Instant
	for i := range r.Facts {
		f := &r.Facts[i]
		if f.Name == lifecycle.Created {
			return f.At
		}
		if !precedes(f.Name) && (at == 0 || f.At < at) {
			at = f.At
		}
	}
	return cmp.Or(at, r.Heard)
}

// over drops the facts of a start that was told, or is none to tell.
func (r *record) over(now window.Instant) {
	r.Facts, r.Links, r.Took, r.Over = nil, nil, nil, now
}
