// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"fmt"
	"slices"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// fetch adds the downloads of the model, wherever they ran, each attempt's.
func (a *account) fetch() {
	type whose struct {
		container string
		number    int
	}
	spans := make(map[whose]*Span)
	var order []whose
	for i := range a.view {
		s := &a.view[i]
		if s.Name != lifecycle.DownloadStarted && s.Name != lifecycle.DownloadFinished {
			continue
		}
		k := whose{container: s.Container}
		if runs := a.runsIn(s.Container); len(runs) > 0 {
			k.number = at(runs, s).number
		}
		d := spans[k]
		if d == nil {
			d = &Span{Stage: ModelDownload, Container: k.container, Attempt: k.number}
			spans[k] = d
			order = append(order, k)
		}
		begin := s.at.Add(-s.Took)
		if s.Name == lifecycle.DownloadFinished {
			d.End, d.Adjusted = max(d.End, s.at), s.shifted.Abs()
		}
		if (s.Name == lifecycle.DownloadStarted || s.Took > 0) && (d.Start == 0 || begin < d.Start) {
			d.Start = begin
		}
	}
	for _, k := range order {
		if d := spans[k]; d.Start != 0 && d.End != 0 {
			a.add(*d)
		}
	}
}

// runsIn are the attempts of a container.
func (a *account) runsIn(container string) []run {
	if container == a.primary || container == "" {
		return a.runs
	}
	for _, group := range [][][]run{a.inits, a.others} {
		for _, runs := range group {
			if len(runs) > 0 && runs[0].container == container {
				return runs
			}
		}
	}
	return nil
}

func (a *account) downloads(container string) (spans []Span) {
	for _, s := range a.stages {
		if s.Stage == ModelDownload && s.Container == container {
			spans = append(spans, s)
		}
	}
	return spans
}

// create adds the making of a container, from its image on, for each attempt.
func (a *account) create(runs []run) {
	for i := range runs {
		start := &runs[i].marks[started]
		if !start.known {
			continue
		}
		after := a.from
		if i > 0 {
			for m := range runs[i-1].marks {
				if k := &runs[i-1].marks[m]; k.known {
					after = max(after, k.at)
				}
			}
		}
		image := a.view.last(func(s *sighting) bool {
			return s.Name == lifecycle.PullFinished && s.Container == runs[i].container && s.at <= start.at.Add(slack/2) && s.at >= after
		})
		if image == nil {
			image = a.view.last(func(s *sighting) bool {
				return s.Name == lifecycle.ContainerCreated && s.Container == runs[i].container && s.at <= start.at.Add(slack/2) && s.at >= after
			})
		}
		if image != nil {
			a.add(Span{
				Stage: ContainerCreate, Start: min(image.at, start.at), End: start.at, Adjusted: start.adjusted(),
				Container: runs[i].container, Attempt: runs[i].number,
			})
		}
	}
}

// initialize adds the attempts of an init container.
func (a *account) initialize(runs []run) {
	a.create(runs)
	for i := range runs {
		r := &runs[i]
		end := &r.marks[exited]
		if a.role(r.container) == lifecycle.Init && end.known && r.marks[started].known {
			s := Span{Stage: ContainerInit, Start: r.marks[started].at, End: end.at, Container: r.container, Attempt: r.number}
			s.Adjusted = max(end.adjusted(), r.marks[started].adjusted())
			if end.from.ExitCode != 0 {
				s.Failure = exitOf(end.from)
			}
			a.carve(s, a.downloads(r.container))
		}
		a.crashLoop(runs, i)
	}
}

// crashLoop adds the wait after an attempt that failed.
func (a *account) crashLoop(runs []run, i int) {
	r := &runs[i]
	end := &r.marks[exited]
	if !end.known || end.from.ExitCode == 0 && a.role(r.container) == lifecycle.Init || i+1 == len(runs) || !runs[i+1].marks[started].known {
		return
	}
	var made []Span
	for _, s := range a.stages {
		if s.Container == r.container && (s.Stage == ContainerCreate || s.Stage == ImagePull || s.Stage == PullWait) && s.Start >= end.at {
			made = append(made, s)
		}
	}
	s := Span{Stage: CrashLoop, Start: end.at, End: runs[i+1].marks[started].at, Container: r.container, Attempt: r.number, Reason: end.from.Reason, Message: exitOf(end.from)}
	if b := a.view.last(of(lifecycle.RestartBackOff, r.container)); b != nil {
		s.Count = b.Count
	}
	a.carve(s, made)
}

func exitOf(s *sighting) string {
	if s.Name == lifecycle.RestartBackOff {
		return failureOf(s)
	}
	if s.Reason == "" {
		return fmt.Sprintf("exit code %d", s.ExitCode)
	}
	return fmt.Sprintf("%s, exit code %d", s.Reason, s.ExitCode)
}

// run adds the stages of the engine, attempt by attempt.
func (a *account) run() {
	for i := range a.runs {
		r := &a.runs[i]
		m := &r.marks
		a.between(EngineBoot, r, &m[started], &m[initializing])
		a.between(WeightsLoad, r, &m[weightsStarted], &m[weightsFinished], a.downloads(r.container)...)
		a.between(Compile, r, &m[compileStarted], &m[compileFinished])
		measured := &m[kvStarted]
		if !measured.known {
			measured = &m[compileFinished] // what is compiled is run once, to see what memory is left
		}
		a.between(KVCacheInit, r, measured, &m[kvFinished])
		a.between(GraphCapture, r, &m[graphsStarted], &m[graphsFinished])
		up := &m[engineReady]
		if !up.known {
			up = &m[warm]
		}
		a.between(Warmup, r, &m[graphsFinished], up)
		if i == len(a.runs)-1 && a.served {
			a.between(Readiness, r, &m[engineReady], &a.ready)
		}
		if r.failed() {
			stage, since := r.standing()
			a.add(Span{Stage: stage, Start: since, End: m[exited].at, Container: r.container, Attempt: r.number, Failure: exitOf(m[exited].from)})
		}
		a.crashLoop(a.runs, i)
	}
}

// after is the stage that a mark begins.
var after = [runMarks]Stage{
	started: EngineBoot, initializing: WeightsLoad, weightsStarted: WeightsLoad, weightsFinished: Compile,
	compileStarted: Compile, compileFinished: KVCacheInit, kvStarted: KVCacheInit, kvFinished: GraphCapture,
	graphsStarted: GraphCapture, graphsFinished: Warmup, warm: Warmup, engineReady: Readiness, exited: CrashLoop,
}

// standing is the stage that follows the last mark before the run's end.
func (r *run) standing() (Stage, window.Instant) {
	for m := engineReady; m >= started; m-- {
		if r.marks[m].known {
			return after[m], r.marks[m].at
		}
	}
	return EngineBoot, r.marks[exited].at
}

// standing is the stage at which a pod is that is not ready, and since when.
func (a *account) standing() (Stage, window.Instant) {
	if r := &a.runs[len(a.runs)-1]; r.failed() {
		return CrashLoop, r.marks[exited].at
	} else if stage, since := r.standing(); since != 0 {
		return stage, since
	}
	for _, runs := range slices.Backward(a.inits) {
		if n := len(runs); n > 0 && a.role(runs[n-1].container) == lifecycle.Init {
			r := &runs[n-1]
			switch {
			case !r.failed():
				return ContainerInit, r.marks[started].at
			case r.marks[exited].from.ExitCode != 0:
				return CrashLoop, r.marks[exited].at
			}
		}
	}
	if stage, since := a.pullStanding(); since != 0 {
		return stage, since
	}
	return a.placeStanding()
}

func (a *account) pullStanding() (Stage, window.Instant) {
	last := a.view.last(func(s *sighting) bool { return s.Name >= lifecycle.PullStarted && s.Name <= lifecycle.ContainerCreated })
	if last == nil {
		return Whole, 0
	}
	switch last.Name {
	case lifecycle.PullStarted:
		return ImagePull, last.at
	case lifecycle.PullFailed, lifecycle.PullBackOff:
		since := last.at
		for i := range a.view { // since the pull failed first after it was asked for
			if s := &a.view[i]; s.Container == last.Container && (s.Name == lifecycle.PullFailed || s.Name == lifecycle.PullBackOff) {
				since = min(since, s.at)
			}
		}
		return PullBackOff, since
	}
	return ContainerCreate, last.at
}

func (a *account) placeStanding() (Stage, window.Instant) {
	switch {
	case a.sandbox.known:
		return ContainerCreate, a.sandbox.at
	case a.scheduled.known && a.has(lifecycle.VolumeFailed) && !a.volume.known:
		return VolumeAttach, a.scheduled.at
	case a.volume.known:
		return Sandbox, a.volume.at
	case a.scheduled.known:
		return Sandbox, a.scheduled.at
	}
	if s := a.view.last(named(lifecycle.NodeRequested)); s != nil && !a.has(lifecycle.NodeReady) {
		return NodeProvision, s.at
	}
	if s := a.view.last(named(lifecycle.ClaimCreated)); s != nil && !a.has(lifecycle.ClaimAllocated) {
		return DRAAllocate, s.at
	}
	return Scheduling, a.from
}

// containerOf is whose stage it is, for those of one container.
func (a *account) containerOf(s Stage) string {
	switch s {
	case EngineBoot, ModelDownload, WeightsLoad, Compile, KVCacheInit, GraphCapture, Warmup, CrashLoop, Readiness:
		return a.primary
	}
	return ""
}
