// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// assemble makes one report of the pods of a replica, at a time of the collector's
// clock. The first is the leader, if that was heard of.
func assemble(accounts []*account, outcome Outcome, now window.Instant) *Report {
	leader := accounts[0]
	r := &Report{ID: cmp.Or(leader.About.Leader, leader.UID), Pod: leader.About, Outcome: outcome}
	root := Span{Stage: Whole, Parent: -1, Start: leader.from, End: leader.to}
	for _, a := range accounts {
		r.Pod.Model = cmp.Or(r.Pod.Model, a.About.Model)
		r.Pod.Engine = cmp.Or(r.Pod.Engine, a.About.Engine)
		r.Links = append(r.Links, a.Links...)
		root.Start, root.End = min(root.Start, a.from), max(root.End, a.to)
		if !a.created.known {
			root.Missing = append(root.Missing, lifecycle.Created)
		}
		if a.served && a.ready.from.Name != lifecycle.Ready {
			root.Missing = append(root.Missing, lifecycle.Ready)
		}
	}
	if outcome == Expired {
		root.End = max(root.End, now)
	}
	for i := range leader.stages {
		if s := &leader.stages[i]; s.Stage == Decision {
			root.Start = min(root.Start, s.Start)
		}
	}
	r.Spans = append(r.Spans, root)
	if len(accounts) > 1 {
		meet(accounts)
	}
	for _, a := range accounts {
		r.branch(a, a == leader, len(accounts) > 1)
	}
	r.settle(leader)
	r.classify(accounts)
	if outcome != Served {
		r.stop(accounts)
	}
	return r
}

// stop says at which stage a start ended that did not serve, and why: that of the
// first of its pods that did not, or none, if it lacks pods.
func (r *Report) stop(accounts []*account) {
	size := 0
	for _, a := range accounts {
		size = max(size, a.About.GroupSize)
		if !a.served {
			r.Stopped, _ = a.standing()
			r.Spans[0].Failure = a.failure
			return
		}
	}
	r.Stopped = Unattributed
	r.Spans[0].Failure = fmt.Sprintf("not ready in time: of %d pods of the group %d were heard of", size, len(accounts))
}

// meet has the engines of a group wait for the last of them: while a pod's
// container does not run, the others boot no further.
func meet(accounts []*account) {
	var last window.Instant
	for _, a := range accounts {
		if start := &a.runs[len(a.runs)-1].marks[started]; start.known {
			last = max(last, start.at)
		}
	}
	for _, a := range accounts {
		for i := range a.stages {
			if s := &a.stages[i]; s.Stage == EngineBoot {
				s.idle = min(last, s.End)
			}
		}
	}
}

// branch adds the stages of one pod: under a span of its own in a group, and those
// of a failed attempt under the attempt's.
func (r *Report) branch(a *account, leader, group bool) {
	parent := 0
	if group {
		parent = len(r.Spans)
		r.Spans = append(r.Spans, Span{Stage: PodBranch, Parent: 0, Start: a.from, End: a.to, Pod: a.UID, Failure: a.failure})
	}
	attempts := make(map[int]int)
	for i := range a.runs {
		run := &a.runs[i]
		r.Attempts = max(r.Attempts, run.number+1)
		if !run.failed() || !run.marks[started].known {
			continue
		}
		end := run.marks[exited].at
		attempts[run.number] = len(r.Spans)
		r.Spans = append(r.Spans, Span{
			Stage: AttemptOf, Parent: parent, Start: run.marks[started].at, End: end,
			Pod: a.UID, Container: run.container, Attempt: run.number, Failure: exitOf(run.marks[exited].from),
		})
		r.Wasted += end.Sub(run.marks[started].at)
	}
	slices.SortStableFunc(a.stages, func(x, y Span) int {
		return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.End, y.End), cmp.Compare(x.Stage, y.Stage), cmp.Compare(x.Container, y.Container), cmp.Compare(x.Attempt, y.Attempt))
	})
	for _, s := range a.stages {
		if s.Stage == Decision && !leader {
			continue
		}
		s.Parent = parent
		if s.Stage == Decision {
			s.Parent = 0
		}
		if at, ok := attempts[s.Attempt]; ok && s.Container == a.primary {
			if holder := &r.Spans[at]; s.Start >= holder.Start && s.End <= holder.End && s.Stage != ContainerCreate {
				s.Parent = at
			}
		}
		if s.Stage == CrashLoop {
			r.Wasted += s.End.Sub(s.Start)
		}
		r.Adjusted = max(r.Adjusted, s.Adjusted)
		r.Spans = append(r.Spans, s)
	}
	if group {
		for _, g := range uncovered(a.stages, a.from, a.to) {
			r.Spans = append(r.Spans, Span{Stage: Unattributed, Parent: parent, Start: g.from, End: g.to, Pod: a.UID, Missing: a.missing(g)})
		}
	}
}

// settle finds the critical path and what is left unexplained.
func (r *Report) settle(leader *account) {
	root := &r.Spans[0]
	r.Total = root.End.Sub(root.Start)
	gaps := walk(r.Spans, root.Start, root.End)
	r.Unattributed = lengthOf(gaps)
	var sum time.Duration
	var by [stages]time.Duration
	for i := range r.Spans {
		s := &r.Spans[i]
		if !s.Stage.Holds() && s.Stage != Unattributed {
			sum += s.End.Sub(s.Start)
		}
		by[s.Stage] += s.Critical
	}
	by[Unattributed] = r.Unattributed
	r.Overlap = sum - (r.Total - r.Unattributed)
	for s := Decision; s < stages; s++ {
		if by[s] > by[r.Dominant] {
			r.Dominant = s
		}
	}
	slices.Reverse(gaps)
	for _, g := range gaps {
		r.Spans = append(r.Spans, Span{Stage: Unattributed, Parent: 0, Start: g.from, End: g.to, Critical: g.to.Sub(g.from), Missing: leader.missing(g)})
	}
}

// missing are the facts that would tell what a gap was: those between the last
// boundary before and the first after it that nobody told.
func (a *account) missing(g gap) (names []lifecycle.Name) {
	marks := a.marks()
	first, last := 0, len(marks)
	for i, m := range marks {
		if m.known && m.at <= g.from {
			first = i + 1
		}
		if m.known && m.at >= g.to && last == len(marks) {
			last = i
		}
	}
	add := func(name lifecycle.Name) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for i := first; i < last; i++ {
		if m := marks[i]; !m.known && telling(marks, i) {
			if m.name == lifecycle.ContainerStarted && m.container != "" && a.view.first(of(lifecycle.PullFinished, m.container)) == nil {
				add(lifecycle.PullFinished)
			}
			add(m.name)
		}
	}
	for _, f := range a.halves {
		if f.at >= g.from && f.at <= g.to || len(names) == 0 {
			add(f.name)
		}
	}
	return names
}

// half is the known end, or beginning, of a stage whose other one is not.
type half struct {
	at   window.Instant
	name lifecycle.Name // of the other
}

// half notes the stages beside the chain of which one end was not told.
func (a *account) half() {
	for _, runs := range append(append(slices.Clone(a.inits), a.others...), a.runs) {
		for i := range runs {
			if m := &runs[i].marks[started]; m.known && a.view.first(of(lifecycle.PullFinished, runs[i].container)) == nil {
				a.halves = append(a.halves, half{m.at, lifecycle.PullFinished})
			}
		}
	}
	for i := range a.view {
		s := &a.view[i]
		switch {
		case s.Name == lifecycle.DownloadFinished && s.Took == 0 && a.view.first(of(lifecycle.DownloadStarted, s.Container)) == nil:
			a.halves = append(a.halves, half{s.at, lifecycle.DownloadStarted})
		case s.Name == lifecycle.DownloadStarted && a.view.first(of(lifecycle.DownloadFinished, s.Container)) == nil:
			a.halves = append(a.halves, half{s.at, lifecycle.DownloadFinished})
		case s.Name == lifecycle.PullFinished && !s.Cached && s.Took == 0 && a.view.first(of(lifecycle.PullStarted, s.Container)) == nil:
			a.halves = append(a.halves, half{s.at, lifecycle.PullStarted})
		}
	}
}

// telling leaves out what not every pod has, and the beginnings of what was not
// told to have ended either.
func telling(marks []*mark, i int) bool {
	switch marks[i].name {
	case lifecycle.VolumeAttached, lifecycle.ContainerExited, lifecycle.KVCacheStarted, lifecycle.WarmupFinished, lifecycle.Unknown:
		return false
	case lifecycle.WeightsStarted, lifecycle.CompileStarted, lifecycle.GraphsStarted:
		return marks[i+1].known
	}
	return true
}

// classify says how much there was to do.
func (r *Report) classify(accounts []*account) {
	worst := func(a, b Answer) Answer { // one No is a No, and NotKnown no Yes
		if a == No || b == No {
			return No
		}
		return min(a, b)
	}
	r.NodeWarm, r.ImageCached = Yes, Yes
	compiled, fetched := false, false
	for _, a := range accounts {
		r.NodeWarm = worst(r.NodeWarm, a.nodeWarm())
		r.ImageCached = worst(r.ImageCached, a.imageCached())
		if s := a.view.last(named(lifecycle.CompileFinished)); s != nil {
			compiled = compiled || s.Cached
		}
		fetched = fetched || a.has(lifecycle.DownloadFinished)
	}
	switch {
	case r.NodeWarm == No || r.ImageCached == No:
		r.Class = Cold
	case r.NodeWarm == NotKnown && r.ImageCached == NotKnown:
		r.Class = ClassNotKnown
	case compiled && !fetched:
		r.Class = Hot
	default:
		r.Class = Warm
	}
}

func (a *account) nodeWarm() Answer {
	s := a.view.finest(named(lifecycle.NodeCreated))
	switch {
	case s != nil && s.at > a.from:
		return No
	case s != nil:
		return Yes
	}
	return NotKnown
}

// imageCached answers for the containers that the pod waited for.
func (a *account) imageCached() Answer {
	answer := NotKnown
	for i := range a.view {
		if s := &a.view[i]; s.Name == lifecycle.PullFinished {
			if !s.Cached {
				return No
			}
			answer = Yes
		}
	}
	return answer
}
