// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// moment is when something truly happened, and what was told of it first.
type moment struct {
	at, asTold window.Instant
	told       bool
}

// stretch is a stage between two moments. One that is untellable has no facts from
// which it could be known.
type stretch struct {
	stage, container string
	attempt          int
	start, end       *moment
	untellable       bool
	part             *whole
}

// whole is a stage between two moments of which some stretches are parts.
type whole struct {
	stage      string
	start, end *moment
}

// startingPod is one pod of a start and what is told of it.
type startingPod struct {
	world     *startingWorld
	draw      *rand.Rand // what happens
	telling   *rand.Rand // what is told of it
	uid       string
	about     *lifecycle.Pod
	stretches []stretch
	// fetched is when the model is there that a sidecar fetches, nil without one.
	fetched *moment
	// beside is when the container beside the engine runs, nil without one.
	beside *moment
}

func newStartingPod(w *startingWorld, draw, telling *rand.Rand) *startingPod {
	uid := fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", draw.Uint32(), draw.IntN(1<<16), draw.IntN(1<<12), draw.IntN(1<<12), draw.Int64N(1<<48))
	return &startingPod{world: w, draw: draw, telling: telling, uid: uid, about: &lifecycle.Pod{
		Name: "engine-" + uid[:8], Namespace: "serving", Node: w.nodes[draw.IntN(len(w.nodes))],
		WorkloadKind: "Deployment", Workload: "engine", Model: "qwen3-8b", Engine: "vllm", GPUModel: "H100", GPUs: 1,
		Containers: []lifecycle.Container{{Name: engineContainer}},
	}}
}

// length is a distribution of durations in seconds.
type length func(*rand.Rand) float64

// seconds are drawn evenly between two bounds.
func seconds(low, high float64) length {
	return func(r *rand.Rand) float64 { return low + (high-low)*r.Float64() }
}

// lognormal has its median in seconds; sigma is of the logarithm.
func lognormal(median, sigma float64) length {
	return func(r *rand.Rand) float64 { return median * math.Exp(sigma*r.NormFloat64()) }
}

func (p *startingPod) later(t window.Instant, s length) window.Instant {
	return t.Add(time.Duration(s(p.draw) * float64(time.Second)))
}

func (p *startingPod) moment(at window.Instant) *moment { return &moment{at: at} }

// then is a moment after another.
func (p *startingPod) then(m *moment, s length) *moment { return &moment{at: p.later(m.at, s)} }

func (p *startingPod) odds(share float64) bool { return p.draw.Float64() < share }

// stage notes the truth.
func (p *startingPod) stage(name, container string, attempt int, start, end *moment) {
	p.stretches = append(p.stretches, stretch{stage: name, container: container, attempt: attempt, start: start, end: end})
}

// parts notes that the newest stages are parts of one.
func (p *startingPod) parts(n int, of whole) {
	for i := range n {
		p.stretches[len(p.stretches)-1-i].part = &of
	}
}

// untold notes a stage that ended with no word of its own.
func (p *startingPod) untold(name, container string, attempt int, start, end *moment) {
	p.stretches = append(p.stretches, stretch{stage: name, container: container, attempt: attempt, start: start, end: end, untellable: true})
}

func (p *startingPod) truth() []TrueStage {
	stages := make([]TrueStage, 0, len(p.stretches))
	for _, s := range p.stretches {
		t := TrueStage{
			Stage: s.stage, Pod: p.uid, Container: s.container, Attempt: s.attempt, Start: s.start.at, End: s.end.at,
			Told: s.start.told && s.end.told && !s.untellable,
		}
		if s.part != nil && s.part.start.told && s.part.end.told {
			t.Of = s.part.stage
		}
		if t.Told {
			t.AsTold = s.end.asTold.Sub(s.start.asTold)
		}
		stages = append(stages, t)
	}
	return stages
}

func (p *startingPod) nodeClock() lifecycle.Clock {
	return lifecycle.Clock{Kind: lifecycle.Node, Of: p.about.Node}
}

// shown is what the clock of a fact shows at a moment.
func (p *startingPod) shown(f *lifecycle.Fact, at window.Instant) window.Instant {
	if f.Clock.Kind != lifecycle.ControlPlane {
		at = at.Add(p.world.clocks[p.about.Node])
	}
	if f.Grain > 0 {
		at -= at % window.Instant(f.Grain)
	}
	return at
}

// tellObject tells what the pod's own object says, in whole seconds. Whoever
// watches it knows the pod.
func (p *startingPod) tellObject(f lifecycle.Fact, at *moment) {
	f.Grain, f.About = time.Second, p.about
	p.tell(f, at)
}

// tellMetric tells what a metric says of the pod's object, who does not know when it
// became so: that is no news.
func (p *startingPod) tellMetric(f lifecycle.Fact, at *moment) {
	f.Grain = time.Second
	p.send(f, at.at, false, toldAs{at, p.shown(&f, at.at)})
}

// tellEvent tells what an event of Kubernetes in whole seconds says; those do not
// know the attempt.
func (p *startingPod) tellEvent(f lifecycle.Fact, at *moment) {
	f.Grain, f.Attempt = time.Second, -1
	p.tell(f, at)
}

// tellAgain tells that what an event told has happened once more: the event keeps
// its first time, counts, and has a last time beside it.
func (p *startingPod) tellAgain(f lifecycle.Fact, first, again *moment, count int) {
	f.Grain, f.Attempt, f.Count = time.Second, -1, count
	f.Until = p.shown(&f, again.at)
	p.post(f, again.at, toldAs{first, p.shown(&f, first.at)}, toldAs{again, f.Until})
}

// tellLine tells what a line of a container's log says: it has the engine's clock
// in whole seconds, and the restart count of its file.
func (p *startingPod) tellLine(f lifecycle.Fact, at *moment, began *moment) {
	f.Grain, f.Clock = time.Second, lifecycle.Clock{Kind: lifecycle.Engine, Of: p.uid}
	if began == nil {
		p.tell(f, at)
		return
	}
	f.Took = at.at.Sub(began.at).Round(10 * time.Millisecond)
	p.tellTook(f, at, began)
}

// tell tells one moment.
func (p *startingPod) tell(f lifecycle.Fact, at *moment) {
	p.post(f, at.at, toldAs{at, p.shown(&f, at.at)})
}

// tellTook tells an end with how long it took.
func (p *startingPod) tellTook(f lifecycle.Fact, end *moment, began *moment) {
	at := p.shown(&f, end.at)
	p.post(f, end.at, toldAs{end, at}, toldAs{began, at.Add(-f.Took)})
}

// toldAs is a moment as a fact tells it.
type toldAs struct {
	of *moment
	as window.Instant
}

// post sends a fact that became known at a time, as news. The first moment is its
// At.
func (p *startingPod) post(f lifecycle.Fact, known window.Instant, tells ...toldAs) {
	p.send(f, known, true, tells...)
}

// send sends a fact, if it is not lost.
func (p *startingPod) send(f lifecycle.Fact, known window.Instant, news bool, tells ...toldAs) {
	plan := &p.world.plan
	if p.telling.Float64() < plan.Missing {
		return
	}
	f.Pod, f.At = p.uid, tells[0].as
	for _, t := range tells {
		if !t.of.told {
			t.of.told, t.of.asTold = true, t.as
		}
	}
	p.mail(f, known, news)
	if p.telling.Float64() < plan.Repeated {
		p.mail(f, known, news && p.telling.Float64() < 0.5) // by another way, or read again from a list
	}
}

// mail puts a fact on its way.
func (p *startingPod) mail(f lifecycle.Fact, known window.Instant, news bool) {
	plan := &p.world.plan
	share := func(d time.Duration) time.Duration { return time.Duration(p.telling.Float64() * float64(d)) }
	learned := known.Add(plan.DelayMin + share(plan.DelayMax-plan.DelayMin))
	if news {
		f.Learned = learned
	}
	heap.Push(&p.world.mail, letter{learned.Add(share(plan.Shuffle)), &f})
}
