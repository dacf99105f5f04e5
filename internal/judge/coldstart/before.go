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

// tell makes the stages of marks and of what lies beside them.
func (a *account) tell() {
	a.decide()
	a.place()
	a.settle()
	for container := range a.pulled() {
		a.pull(container)
	}
	a.fetch()
	for _, runs := range a.inits {
		a.initialize(runs)
	}
	for _, runs := range a.others {
		a.create(runs)
	}
	a.create(a.runs)
	a.run()
	if !a.served {
		a.stop()
	}
}

// stop adds the stage at which a start ended that did not serve, and why it was
// still there.
func (a *account) stop() {
	stage, since := a.standing()
	s := Span{Stage: stage, Start: since, End: a.to, Container: a.containerOf(stage), Attempt: a.runs[len(a.runs)-1].number}
	if name, ok := whys[stage]; ok {
		a.blame(&s, name)
	}
	s.Failure = a.failure
	if s.Failure == "" {
		s.Failure = "not ready in time"
	}
	if s.Message != "" {
		s.Failure += ": " + s.Message
	}
	a.failure = s.Failure
	a.add(s)
}

// whys are the facts that say why a pod is still at a stage.
var whys = map[Stage]lifecycle.Name{
	Scheduling: lifecycle.Unschedulable, NodeProvision: lifecycle.Unschedulable, DRAAllocate: lifecycle.Unschedulable,
	VolumeAttach: lifecycle.VolumeFailed, Sandbox: lifecycle.ClaimFailed, ImagePull: lifecycle.PullFailed, PullBackOff: lifecycle.PullFailed,
	CrashLoop: lifecycle.RestartBackOff, Readiness: lifecycle.ProbeFailed,
}

// add adds a stage within the pod's start. One that took no time stays: it
// happened.
func (a *account) add(s Span) {
	if s.Stage != Decision {
		s.Start, s.End = within(s.Start, a.from, a.to), within(s.End, a.from, a.to)
	}
	if s.End < s.Start {
		return
	}
	s.Pod = a.UID
	a.stages = append(a.stages, s)
}

// between adds the stage between two marks, if both are known.
func (a *account) between(stage Stage, r *run, from, to *mark, holes ...Span) {
	if !from.known || !to.known {
		return
	}
	s := Span{Stage: stage, Start: from.at, End: to.at, Adjusted: max(from.adjusted(), to.adjusted()), Cached: to.from.Cached}
	if r != nil {
		s.Container, s.Attempt = r.container, r.number
	}
	a.carve(s, holes)
}

// carve adds what is left of a stage beside others that explain parts of it.
func (a *account) carve(s Span, holes []Span) {
	start := s.Start
	for start <= s.End {
		next := Span{Start: s.End, End: s.End}
		for _, h := range holes {
			if h.End > start && h.Start < s.End && h.End > h.Start && h.Start < next.Start {
				next = h
			}
		}
		piece := s
		piece.Start, piece.End = start, max(start, next.Start)
		if piece.End > piece.Start || s.Start == s.End {
			a.add(piece)
		}
		if next.Start >= s.End {
			return
		}
		start = max(start, next.End)
	}
}

// decide adds the way from the wish for a replica to its pod.
func (a *account) decide() {
	wish := a.view.last(func(s *sighting) bool { return s.Name == lifecycle.Desired && s.at <= a.from.Add(slack) })
	if wish != nil && a.created.known {
		a.add(Span{Stage: Decision, Start: min(wish.at, a.from), End: a.from, Reason: wish.Reason, Message: wish.Message})
	}
}

// place adds the way to a node.
func (a *account) place() {
	until := a.scheduled.at
	if !a.scheduled.known {
		until = a.to
	}
	holes := a.provision(until)
	if claim := a.claims(until); claim != nil {
		before := len(a.stages)
		a.carve(*claim, holes)
		holes = append(holes, a.stages[before:]...)
	}
	if a.created.known && a.scheduled.known {
		s := Span{Stage: Scheduling, Start: a.from, End: until, Adjusted: a.scheduled.adjusted()}
		a.blame(&s, lifecycle.Unschedulable)
		a.carve(s, holes)
	}
}

// provision adds the making of a node for the pod: from its request, or its
// creation, until it was ready.
func (a *account) provision(until window.Instant) []Span {
	ready := a.view.finest(named(lifecycle.NodeReady))
	begin := a.view.first(func(s *sighting) bool { return s.Name == lifecycle.NodeRequested && s.at >= a.from.Add(-slack) })
	made := a.view.finest(named(lifecycle.NodeCreated))
	if begin == nil && made != nil && made.at > a.from {
		begin = made
	}
	if begin == nil || ready == nil || ready.at <= begin.at {
		return nil
	}
	s := Span{Stage: NodeProvision, Start: max(begin.at, a.from), End: min(ready.at, until), Reason: begin.Reason, Message: begin.Message}
	if s.End < s.Start {
		return nil
	}
	a.add(s)
	return []Span{s}
}

// claims is the wait for the devices of the pod's claims, from the first that
// was made to the last that was allocated.
func (a *account) claims(until window.Instant) *Span {
	made, got := a.view.first(named(lifecycle.ClaimCreated)), a.view.last(named(lifecycle.ClaimAllocated))
	if made == nil || got == nil {
		return nil
	}
	return &Span{Stage: DRAAllocate, Start: max(made.at, a.from), End: min(max(got.at, a.from), until), Container: got.Container}
}

// blame puts on a stage why it took so long, as its source said last.
func (a *account) blame(s *Span, name lifecycle.Name) {
	if last := a.view.last(named(name)); last != nil {
		s.Reason, s.Message, s.Count = last.Reason, last.Message, last.Count
	}
}

// settle adds volumes and the sandbox.
func (a *account) settle() {
	from := &a.scheduled
	if a.volume.known && from.known {
		s := Span{Stage: VolumeAttach, Start: from.at, End: a.volume.at, Adjusted: max(from.adjusted(), a.volume.adjusted())}
		a.blame(&s, lifecycle.VolumeFailed)
		a.add(s)
		from = &a.volume
	}
	a.between(Sandbox, nil, from, &a.sandbox)
}

// pulled are the containers whose images were pulled or found.
func (a *account) pulled() map[string]bool {
	names := make(map[string]bool)
	for i := range a.view {
		if s := &a.view[i]; s.Name >= lifecycle.PullStarted && s.Name <= lifecycle.PullFinished {
			names[s.Container] = true
		}
	}
	return names
}

// pull adds the pulls of a container's image, those that failed included.
func (a *account) pull(container string) {
	var p pulling
	for _, s := range a.pulls(container) {
		for _, span := range p.next(&s) {
			span.Container = container
			span.Start = max(span.Start, a.scheduled.at)
			a.add(span)
		}
	}
}

// pulls are what was told of the pulls of a container's image, with each time that
// a counted event was seen at.
func (a *account) pulls(container string) []sighting {
	var told []sighting
	for i := range a.view {
		s := a.view[i]
		if s.Container != container || s.Name < lifecycle.PullStarted || s.Name > lifecycle.ContainerStarted || s.at > a.to.Add(slack) {
			continue
		}
		told = append(told, s)
		if s.Count > 1 && s.until > s.at && s.until <= a.to && s.Name < lifecycle.PullFinished {
			s.at = s.until
			told = append(told, s)
		}
	}
	slices.SortStableFunc(told, func(x, y sighting) int { return cmp.Compare(x.at, y.at) })
	return told
}

// pulling is where the pull of an image stands.
type pulling struct {
	asked, failed, finished window.Instant // 0: not so now
	backOff                 Span
}

// next takes what happened next, and returns the stages that it ends.
func (p *pulling) next(s *sighting) (ended []Span) {
	switch s.Name {
	case lifecycle.PullStarted:
		if p.failed != 0 {
			ended = append(ended, p.wait(s.at, s))
			p.failed = 0
		}
		if p.asked == 0 {
			p.asked = s.at
		}
	case lifecycle.PullFailed:
		if p.asked != 0 {
			ended = append(ended, Span{Stage: ImagePull, Start: p.asked, End: s.at, Failure: failureOf(s), Adjusted: s.shifted.Abs()})
		}
		if p.failed == 0 {
			p.failed = s.at
		}
		p.asked, p.backOff.Reason, p.backOff.Message = 0, s.Reason, s.Message
	case lifecycle.PullBackOff:
		if p.failed == 0 {
			p.failed = s.at
		}
		p.backOff.Count, p.backOff.Message = max(p.backOff.Count, s.Count), s.Message
	case lifecycle.ContainerCreated, lifecycle.ContainerStarted: // so the image was there
		if p.failed != 0 {
			ended = append(ended, p.wait(s.at, s))
		}
		*p = pulling{finished: p.finished}
	case lifecycle.PullFinished:
		if p.finished != 0 && s.at.Sub(p.finished) <= slack && p.asked == 0 {
			return nil // told by a second source
		}
		ended = p.finish(s)
		*p = pulling{finished: s.at}
	}
	return ended
}

// wait is the time since a pull failed.
func (p *pulling) wait(until window.Instant, s *sighting) Span {
	b := p.backOff
	b.Stage, b.Start, b.End, b.Adjusted = PullBackOff, p.failed, until, s.shifted.Abs()
	return b
}

func (p *pulling) finish(s *sighting) (ended []Span) {
	end := s.at
	begin, waited := end.Add(-s.Took), end.Add(-s.Took-s.Waited)
	switch {
	case s.Cached:
		begin, waited = end, end
	case s.Took == 0 && p.asked != 0:
		begin, waited = p.asked, p.asked
	case s.Waited == 0 && p.asked != 0 && p.asked < begin.Add(-coarse): // less is what whole seconds hide
		waited = p.asked
	}
	if p.failed != 0 && p.failed <= waited {
		ended = append(ended, p.wait(waited, s))
	}
	if s.Cached || s.Took == 0 && p.asked == 0 {
		return ended
	}
	if waited.Sub(begin).Abs() > time.Millisecond {
		ended = append(ended, Span{Stage: PullWait, Start: waited, End: begin, Adjusted: s.shifted.Abs()})
	}
	return append(ended, Span{Stage: ImagePull, Start: begin, End: end, Adjusted: s.shifted.Abs(), Message: s.Message})
}
