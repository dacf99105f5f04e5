// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package k8sfleetreceiver

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/llmfleet/llmfleet/internal/window"
	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/capacity"
	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/facts"
)

// tracker follows the fleet's pods through what the watches tell, and has each of
// their facts told once. The core's mu guards it.
type tracker struct {
	*core
	capacity *capacity.Store // safe by itself
	cluster  *facts.Cluster
	pods     map[string]*corev1.Pod // those that are followed, by uid
	events   []cache.Indexer
}

func newTracker(c *core, store *capacity.Store) *tracker {
	return &tracker{core: c, capacity: store, cluster: facts.New(c.options), pods: make(map[string]*corev1.Pod)}
}

// listen has the events of a pod be found that come before the pod does.
func (t *tracker) listen(events cache.Indexer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, events)
}

// set takes an object into account that is new, or news of the first list.
func (t *tracker) set(o any, initial bool) {
	if object, ok := o.(metav1.Object); ok {
		t.capacity.Set(object)
	}
	if !t.outbox.wanted() {
		return
	}
	learned := instant(time.Now())
	if initial {
		learned = 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch o := o.(type) {
	case *corev1.Pod:
		t.pod(o, learned)
	case *corev1.Event:
		t.event(o, learned)
	default:
		t.cluster.Set(o)
	}
}

// replace takes a newer version of an object into account. One pod can follow
// another of its name without its end being seen.
func (t *tracker) replace(before, o any) {
	if b, ok := before.(*corev1.Pod); ok && b.UID != o.(*corev1.Pod).UID {
		t.remove(before)
	}
	t.set(o, false)
}

// remove forgets an object.
func (t *tracker) remove(o any) {
	if missed, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = missed.Obj
	}
	if object, ok := o.(metav1.Object); ok {
		t.capacity.Delete(object)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if p, ok := o.(*corev1.Pod); ok {
		t.gone(p)
	}
	t.cluster.Delete(o)
}

// pod tells what a pod's object says. Of one that is Ready when it is first seen,
// nothing is news.
func (t *tracker) pod(p *corev1.Pod, learned window.Instant) {
	if !t.selected(p) {
		return
	}
	uid := string(p.UID)
	followed, fresh := t.told.Follow(uid)
	if !followed {
		t.tally.refused.Add(1)
		return
	}
	if fresh && facts.Served(p) {
		learned = 0
	}
	_, seen := t.pods[uid]
	t.pods[uid] = p
	t.cluster.Set(p)
	for _, f := range t.cluster.Pod(p) {
		t.tell(letter{Fact: f, of: f.About}, learned)
	}
	if seen {
		return
	}
	for _, events := range t.events {
		of, _ := events.ByIndex(byPod, uid) // fails only without the index
		for _, e := range of {
			t.event(e.(*corev1.Event), learned)
		}
	}
}

// event tells what an event says of a pod that is followed.
func (t *tracker) event(e *corev1.Event, learned window.Instant) {
	p := t.pods[string(e.InvolvedObject.UID)]
	if p == nil {
		return
	}
	if f, ok := facts.Event(e, p.Spec.NodeName); ok {
		t.tell(letter{Fact: f, of: t.cluster.About(p)}, learned)
	}
}

// gone tells the end of a pod, and forgets it.
func (t *tracker) gone(p *corev1.Pod) {
	uid := string(p.UID)
	if t.pods[uid] == nil {
		return
	}
	f := t.cluster.Gone(p)
	t.tell(letter{Fact: f, of: f.About}, instant(time.Now()))
	delete(t.pods, uid)
	t.told.Forget(uid)
}

// tell has a fact told that was not. What there is no room for is told when it is
// said again.
func (t *tracker) tell(l letter, learned window.Instant) {
	l.Learned = learned
	switch {
	case !t.told.News(&l.Fact):
		t.tally.duplicates[l.Name].Add(1)
	case !t.outbox.add(l):
		t.told.Untell(&l.Fact)
	}
}

// complete forgets what was told of pods that went while nobody watched, if all
// that are there are known.
func (t *tracker) complete(known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known {
		t.told.Keep(func(pod string) bool { return t.pods[pod] != nil })
	}
}

func instant(t time.Time) window.Instant { return window.Instant(t.UnixNano()) }
