// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// ColdStarts are replicas that start one after the other, each with a true
// timeline of which Kubernetes and the engine tell facts: by clocks that differ,
// in whole seconds, late, twice, out of order, or not at all.
//
// Scheduling delays are those of DLRM jobs (median 0, 90 % below 59 s, 99 % below
// 1650 s); weights load as the base models of GenTD26 do (median 22.7 s, 90 %
// below 42 s); what comes after follows start-up logs of vLLM.
type ColdStarts struct {
	// Name of the world: two of different names draw different numbers.
	Name string
	// Pods is how many pods start, those of groups included; the last group is
	// whole.
	Pods int
	// Begin is when the first may, and Every the mean time between two starts.
	Begin window.Instant
	Every time.Duration
	// Nodes is how many nodes there are. The clock of each is off by at most Skew
	// against the control plane's, which is the collector's.
	Nodes int
	Skew  time.Duration
	// Missing is the share of facts that nobody hears of, and Repeated of those that
	// are told twice.
	Missing, Repeated float64
	// DelayMin and DelayMax bound how late a fact is learned, and Shuffle by how
	// much more it is delivered late, so that facts change their order.
	DelayMin, DelayMax, Shuffle time.Duration
	// Overlaps is the share of pods with work beside the engine's image pull,
	// Restarts of those whose engine fails first, Groups of starts with more than one
	// pod.
	Overlaps, Restarts, Groups float64
}

// HardColdStarts is a world of so many pods in which little can be relied on.
func HardColdStarts(name string, pods int) ColdStarts {
	return ColdStarts{
		Name: name, Pods: pods, Begin: window.Instant(500_000 * time.Hour), Every: time.Second,
		Nodes: 50, Skew: 5 * time.Second, Missing: 0.2, Repeated: 0.1,
		DelayMin: 50 * time.Millisecond, DelayMax: 2 * time.Second, Shuffle: time.Minute,
		Overlaps: 0.3, Restarts: 0.1, Groups: 0.05,
	}
}

// ColdStart is the truth about one start.
type ColdStart struct {
	// ID is the uid of the pod, or of its group's leader; Pods are all uids.
	ID   string
	Pods []string
	// Began is the decision, or the pod's creation where nobody decided; Ready is
	// when the replica served, and ReadyTold whether anyone said so.
	Began, Ready window.Instant
	ReadyTold    bool
	// Stages are what it was made of. Between them nothing happened that has a
	// name.
	Stages []TrueStage
}

// TrueStage is one stretch of a stage, by the control plane's clock. A stage that
// was interrupted has several.
type TrueStage struct {
	// Stage is its name, as the stage attribute of metrics spells it.
	Stage string
	// Pod is the uid; Container is empty for stages of the whole pod.
	Pod, Container string
	Attempt        int
	Start, End     window.Instant
	// Told says whether both boundaries were, at least once each.
	Told bool
	// Of is a stage that this one is a part of, and for all that was told may be
	// nothing but, if Told is false; "" if there is none.
	Of string
	// AsTold is the time between the boundaries as they were told first, each by its
	// own clock; only if Told.
	AsTold time.Duration
}

// Play plays the world: started gets every start before anything is told of it,
// told every fact with the time at which it is delivered, in that order. The fact
// is the receiver's to keep.
func (c ColdStarts) Play(seed uint64, started func(*ColdStart), told func(at window.Instant, f *lifecycle.Fact)) error {
	if err := c.validate(); err != nil {
		return err
	}
	w := &startingWorld{plan: c, clocks: map[string]time.Duration{}}
	nodes := stream(seed, c.Name, "clocks")
	for n := range c.Nodes {
		w.nodes = append(w.nodes, fmt.Sprintf("node-%02d", n))
		w.clocks[w.nodes[n]] = time.Duration((2*nodes.Float64() - 1) * float64(c.Skew))
	}
	arrivals := stream(seed, c.Name, "arrivals")
	now := c.Begin
	for n := 0; w.pods < c.Pods; n++ {
		now = now.Add(time.Duration(arrivals.ExpFloat64() * float64(c.Every)))
		w.deliver(now, told)
		name := fmt.Sprintf("%s/%d", c.Name, n)
		started(w.start(now, stream(seed, name, "start"), stream(seed, name, "told")))
	}
	w.deliver(1<<63-1, told)
	return nil
}

func (c ColdStarts) validate() error {
	for _, share := range []float64{c.Missing, c.Repeated, c.Overlaps, c.Restarts, c.Groups} {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("cold starts %s: %v is no share", c.Name, share)
		}
	}
	if c.Pods < 1 || c.Nodes < 1 || c.Begin <= 0 || c.Every <= 0 {
		return errors.New("cold starts need pods, nodes, a beginning and time between them")
	}
	if c.Skew < 0 || c.DelayMin < 0 || c.DelayMax < c.DelayMin || c.Shuffle < 0 {
		return errors.New("cold starts: spans of time are not negative, and delays at least the least")
	}
	return nil
}

// startingWorld is such a world in motion.
type startingWorld struct {
	plan   ColdStarts
	nodes  []string
	clocks map[string]time.Duration // by node: what it shows less the true time
	pods   int                      // that have started
	mail   mail
}

// deliver tells what is to be delivered before now.
func (w *startingWorld) deliver(now window.Instant, told func(window.Instant, *lifecycle.Fact)) {
	for len(w.mail) > 0 && w.mail[0].at < now {
		letter := heap.Pop(&w.mail).(letter)
		told(letter.at, letter.fact)
	}
}

// start draws one start, and posts what is told of it. How it is told changes
// nothing of what happens.
func (w *startingWorld) start(now window.Instant, draw, telling *rand.Rand) *ColdStart {
	size := 1
	if draw.Float64() < w.plan.Groups {
		size = 2 + draw.IntN(3)
	}
	w.pods += size
	pods := make([]*startingPod, size)
	uids := make([]string, size)
	for i := range pods {
		pods[i] = newStartingPod(w, draw, telling)
		uids[i] = pods[i].uid
	}
	leader := pods[0]
	if size > 1 {
		for _, p := range pods {
			p.about.Group, p.about.Leader, p.about.GroupSize = "serving/group-"+leader.uid[:8], leader.uid, size
		}
	}
	truth := &ColdStart{ID: leader.uid, Pods: uids, Began: now}
	var workers window.Instant // when the last of them is ready
	truth.ReadyTold = true
	for _, p := range pods[1:] {
		ready := p.then(p.all(p.prepare(p.place(nil, p.then(p.moment(now), seconds(0.1, 1))))), seconds(0.5, 5))
		p.ready(ready)
		workers = max(workers, ready.at)
		truth.ReadyTold = truth.ReadyTold && ready.told
	}
	var wish *moment
	created := leader.moment(now)
	if leader.odds(decided) {
		wish, created = created, leader.then(created, lognormal(1.5, 0.5))
	}
	ready := leader.serve(leader.prepare(leader.place(wish, created)), workers)
	truth.Ready, truth.ReadyTold = ready.at, truth.ReadyTold && ready.told
	for _, p := range pods {
		truth.Stages = append(truth.Stages, p.truth()...)
	}
	return truth
}

// letter is a fact on its way.
type letter struct {
	at   window.Instant
	fact *lifecycle.Fact
}

// mail is a heap of letters, the next to be delivered first.
type mail []letter

func (m mail) Len() int           { return len(m) }
func (m mail) Less(i, j int) bool { return m[i].at < m[j].at }
func (m mail) Swap(i, j int)      { m[i], m[j] = m[j], m[i] }

// Push implements [heap.Interface].
func (m *mail) Push(l any) { *m = append(*m, l.(letter)) }

// Pop implements [heap.Interface].
func (m *mail) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}
