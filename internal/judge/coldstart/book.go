// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"slices"
	"time"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// Options bound a book.
type Options struct {
	// MaxPods is how many pods it keeps, those that are done and remembered
	// included.
	MaxPods int
	// TTL is how long after its creation a pod is waited for, and how long one that
	// is done is remembered.
	TTL time.Duration
	// Grace is how long after ready late facts are waited for.
	Grace time.Duration
	// MaxAge is how long ago a pod may have become Ready that is first heard of; an
	// older one gives no sample.
	MaxAge time.Duration
}

// Ignored is why a fact was not taken.
type Ignored uint8

// Why facts are not taken.
const (
	// Taken: the fact was taken.
	Taken Ignored = iota
	// Duplicate: it was told before.
	Duplicate
	// Limit: there was no place for the pod, or for one more fact of it.
	Limit
	// Over: the pod's start is over; after ready there is no sample.
	Over
	// Old: the pod was first heard of long after its start.
	Old
	// Timeless: the fact has no time, or no pod.
	Timeless
	// Future: its time has not come yet, by far.
	Future
)

// Progress is how many replicas of a model are at a stage now.
type Progress struct {
	Model, Namespace, GPUModel string
	Stage                      Stage
	Replicas                   int
}

// After is what came after a start that was told: the first token.
type After struct {
	ID   string
	Pod  lifecycle.Pod
	Span Span // a FirstToken; its parent is the root of the start's trace
}

// Closed is what a Close found to be over.
type Closed struct {
	Starts []*Report
	Afters []After
}

// Book keeps the facts of pods that start. It is not safe for concurrent use.
type Book struct {
	options Options
	pods    map[string]*record
	open    map[string]*record // of the pods those whose start is not over
	over    []*record          // the others, oldest first
	clocks  clocks
	afters  []After // since the last Close
}

// New makes an empty book.
func New(o Options) *Book {
	return &Book{options: o, pods: make(map[string]*record), open: make(map[string]*record), clocks: clocks{of: make(map[lifecycle.Clock]*offset)}}
}

// ahead is how far a clock may be ahead of the collector's.
const ahead = 10 * time.Minute

// Note takes a fact, at a time of the collector's clock. It copies what it keeps;
// neither the order of facts nor their repetition matters.
func (b *Book) Note(f *lifecycle.Fact, now window.Instant) Ignored {
	r := b.pods[f.Pod]
	if f.Pod == "" || f.At <= 0 {
		if r != nil && r.Over == 0 && f.Name.OfEngine() && f.Took > 0 {
			return r.note(f, now)
		}
		return Timeless
	}
	if f.At.Sub(now) > ahead {
		return Future
	}
	b.clocks.hear(f)
	old := !precedes(f.Name) && now.Sub(f.At) > b.options.TTL
	switch {
	case r == nil && !opens(f.Name) || r == nil && old && f.Name != lifecycle.Created:
		return Old
	case r == nil:
		if r = b.admit(f.Pod, now); r == nil {
			return Limit
		}
	}
	if r.Over != 0 {
		return b.late(r, f)
	}
	if old {
		b.end(r, now)
		return Old
	}
	return r.note(f, now)
}

// opens tells whether a pod is followed from a fact on. What also happens to pods
// that have served for long opens none.
func opens(n lifecycle.Name) bool {
	switch n {
	case lifecycle.FirstToken, lifecycle.Deleted, lifecycle.Failed, lifecycle.ProbeFailed, lifecycle.RestartBackOff, lifecycle.ContainerExited:
		return false
	}
	return true
}

// precedes tells of facts that may be much older than the pod that they matter to.
func precedes(n lifecycle.Name) bool {
	switch n {
	case lifecycle.Desired, lifecycle.NodeCreated, lifecycle.NodeReady, lifecycle.ClaimCreated, lifecycle.ClaimAllocated, lifecycle.VolumeAttached:
		return true
	}
	return false
}

// admit makes a record, in the place of one that is done if there is none.
func (b *Book) admit(uid string, now window.Instant) *record {
	if len(b.pods) >= b.options.MaxPods {
		if len(b.over) == 0 {
			return nil
		}
		b.forget(1)
	}
	r := &record{UID: uid, Heard: now}
	b.pods[uid], b.open[uid] = r, r
	return r
}

func (b *Book) end(r *record, now window.Instant) {
	r.over(now)
	delete(b.open, r.UID)
	b.over = append(b.over, r)
}

// forget drops the first of those that are remembered.
func (b *Book) forget(n int) {
	for _, r := range b.over[:n] {
		delete(b.pods, r.UID)
	}
	b.over = slices.Delete(b.over, 0, n)
}

// late takes what is told after a start: its first token, and the pod's end, which
// needs no memory.
func (b *Book) late(r *record, f *lifecycle.Fact) Ignored {
	if f.Name != lifecycle.FirstToken || r.Of == "" || r.Token {
		return Over
	}
	r.Token = true
	b.afters = append(b.afters, r.after(f.At, f.Took))
	return Taken
}

// after is the span of the first token: it begins where the start ended, and has
// no length if the token came before that.
func (r *record) after(at window.Instant, within time.Duration) After {
	s := Span{Stage: FirstToken, Start: min(r.Root, at), End: at, Pod: r.UID, Adjusted: within}
	return After{ID: r.Of, Pod: r.About, Span: s}
}

// Link takes a span of another trace that tells of a pod's start.
func (b *Book) Link(pod string, l lifecycle.Link) {
	if r := b.pods[pod]; r != nil && r.Over == 0 && len(r.Links) < maxLinks {
		if !slices.Contains(r.Links, l) {
			r.Links = append(r.Links, l)
		}
	}
}

// Pods are how many starts are open, and how many are remembered.
func (b *Book) Pods() (open, remembered int) { return len(b.open), len(b.over) }
