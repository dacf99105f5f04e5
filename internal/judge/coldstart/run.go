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

// mark is a boundary between stages. One that was not told is not known.
type mark struct {
	put
	name      lifecycle.Name
	container string
	known     bool
	from      *sighting // that told it
}

func (m *mark) set(s *sighting, at window.Instant) {
	m.known, m.from = true, s
	m.put = put{told: at, at: at, sigma: s.sigma}
}

// adjusted is how far the mark lies from where its source had it.
func (m *mark) adjusted() time.Duration {
	if !m.known {
		return 0
	}
	return (m.at.Sub(m.told) + m.from.shifted).Abs()
}

// The marks of a run, in order.
const (
	started = iota
	initializing
	weightsStarted
	weightsFinished
	compileStarted
	compileFinished
	kvStarted
	kvFinished
	graphsStarted
	graphsFinished
	warm
	engineReady
	exited
	runMarks
)

var runNames = [runMarks]lifecycle.Name{
	lifecycle.ContainerStarted, lifecycle.EngineInitializing,
	lifecycle.WeightsStarted, lifecycle.WeightsFinished, lifecycle.CompileStarted, lifecycle.CompileFinished,
	lifecycle.KVCacheStarted, lifecycle.KVCacheFinished, lifecycle.GraphsStarted, lifecycle.GraphsFinished,
	lifecycle.WarmupFinished, lifecycle.EngineReady, lifecycle.ContainerExited,
}

// begins tells the marks of which the earliest of several tellings counts, and of
// the others the latest: the ranks of an engine are through when the last is.
var begins = [runMarks]bool{started: true, initializing: true, weightsStarted: true, compileStarted: true, kvStarted: true, graphsStarted: true}

// run is one attempt of a container: from its start to its end, or to where it
// serves.
type run struct {
	container string
	number    int
	marks     [runMarks]mark
}

func (r *run) failed() bool { return r.marks[exited].known }

// turn is the start or the end of an attempt, as one source told it.
type turn struct {
	*sighting
	at     window.Instant
	number int // -1 if the source does not count
}

// runsOf finds the attempts of a container by when it started and ended. Some
// sources count restarts, and of others the times say which attempt is meant.
func runsOf(v view, container string, until window.Instant) []run {
	var turns []turn
	for i := range v {
		s := &v[i]
		if s.Container != container || s.at > until || s.Name != lifecycle.ContainerStarted && s.Name != lifecycle.ContainerExited {
			continue
		}
		first := turn{sighting: s, at: s.at, number: s.Attempt}
		if s.Attempt < 0 && s.Count > 1 && s.Name == lifecycle.ContainerStarted {
			first.number = 0 // an event counts from the first start on
			if s.until > s.at && s.until <= until {
				turns = append(turns, turn{sighting: s, at: s.until, number: s.Count - 1})
			}
		}
		turns = append(turns, first)
	}
	slices.SortStableFunc(turns, func(a, b turn) int {
		return cmp.Or(cmp.Compare(a.at, b.at), -cmp.Compare(a.Name, b.Name), cmp.Compare(a.number, b.number))
	})
	var runs []run
	for _, t := range turns {
		r := runOf(runs, t)
		if r == nil {
			runs = append(runs, run{container: container, number: -1})
			r = &runs[len(runs)-1]
		}
		r.number = max(r.number, t.number)
		m := &r.marks[started]
		if t.Name == lifecycle.ContainerExited {
			m = &r.marks[exited]
		}
		if !m.known || t.sigma < m.sigma {
			m.set(t.sighting, t.at)
		}
	}
	for i := range runs {
		if i+1 < len(runs) {
			runs[i].giveUp(v, &runs[i+1])
		}
		if i == 0 {
			runs[i].number = max(runs[i].number, 0)
		} else if runs[i].number <= runs[i-1].number {
			runs[i].number = runs[i-1].number + 1
		}
	}
	return runs
}

// giveUp has an attempt of whose end nothing was told end where the kubelet began
// to wait before the next.
func (r *run) giveUp(v view, next *run) {
	start, end := &r.marks[started], &r.marks[exited]
	if end.known || !start.known || !next.marks[started].known {
		return
	}
	if s := v.first(of(lifecycle.RestartBackOff, r.container)); s != nil && s.at > start.told && s.at < next.marks[started].told {
		end.set(s, s.at)
	}
}

// runOf is the attempt, of those so far, that a turn is of; nil if it is of none.
// Turns come in the order of their times.
func runOf(runs []run, t turn) *run {
	for i := range runs {
		if t.number >= 0 && runs[i].number == t.number {
			return &runs[i]
		}
	}
	if len(runs) == 0 {
		return nil
	}
	r := &runs[len(runs)-1]
	if t.number >= 0 && r.number >= 0 {
		return nil
	}
	same, other := &r.marks[started], &r.marks[exited]
	if t.Name == lifecycle.ContainerExited {
		same, other = other, same
	}
	switch {
	case same.known && t.at.Sub(same.told) <= slack && (t.Name == lifecycle.ContainerExited || !other.known || other.told > t.at):
		return r // told by another source
	case !same.known && t.Name == lifecycle.ContainerExited:
		return r
	case !same.known && other.told >= t.at:
		return r
	}
	return nil
}

// spoken adds the attempts that only an engine's words tell of.
func spoken(runs []run, container string, v view) []run {
	for i := range v {
		s := &v[i]
		if s.Name.OfEngine() && s.Attempt >= 0 && s.Container == container && !slices.ContainsFunc(runs, func(r run) bool { return r.number == s.Attempt }) {
			runs = append(runs, run{container: container, number: s.Attempt})
		}
	}
	if len(runs) == 0 {
		runs = []run{{container: container}}
	}
	slices.SortStableFunc(runs, func(a, b run) int { return cmp.Compare(a.number, b.number) })
	return runs
}

// hear gives an engine's words to the run in which they were said.
func hear(runs []run, v view) {
	for i := range v {
		s := &v[i]
		if !s.Name.OfEngine() || s.Name == lifecycle.DownloadStarted || s.Name == lifecycle.DownloadFinished {
			continue
		}
		r := at(runs, s)
		for m := initializing; m < exited; m++ {
			if runNames[m] == s.Name {
				r.say(m, s, s.at)
			}
		}
		if s.Took > 0 {
			switch s.Name {
			case lifecycle.WeightsFinished:
				r.derive(weightsStarted, s)
			case lifecycle.CompileFinished:
				r.derive(compileStarted, s)
			case lifecycle.ProfileFinished: // it is run to see what memory is left for the cache
				r.derive(kvStarted, s)
			case lifecycle.GraphsFinished:
				r.derive(graphsStarted, s)
			}
		}
	}
}

// at is the run in which something was said: the last that had begun.
func at(runs []run, s *sighting) *run {
	of := &runs[0]
	for i := range runs {
		r := &runs[i]
		if s.Attempt >= 0 && r.number == s.Attempt {
			return r
		}
		if r.marks[started].known && r.marks[started].told <= s.at.Add(slack/2) {
			of = r
		} else if !r.marks[started].known && i > 0 && runs[i-1].failed() && runs[i-1].marks[exited].told < s.at {
			of = r
		}
	}
	return of
}

func (r *run) say(m int, s *sighting, when window.Instant) {
	k := &r.marks[m]
	if !k.known || begins[m] && when < k.told || !begins[m] && when > k.told {
		k.set(s, when)
	}
}

// derive has a stage begin as long before its end as it took, unless the engine
// said that it began.
func (r *run) derive(m int, s *sighting) {
	start, begin := &r.marks[started], s.at.Add(-s.Took)
	if start.known && begin < start.told.Add(-slack) {
		return // longer than the container has run
	}
	if k := &r.marks[m]; !k.known || k.from.Name != runNames[m] {
		r.say(m, s, begin)
	}
}

// gather has stages begin as long before their end as the engine's metrics say that
// they took: those tell no times.
func (r *run) gather(of *record) {
	for name, stage := range map[lifecycle.Name][2]int{
		lifecycle.WeightsFinished: {weightsStarted, weightsFinished},
		lifecycle.KVCacheFinished: {kvStarted, kvFinished},
		lifecycle.GraphsFinished:  {graphsStarted, graphsFinished},
		lifecycle.EngineReady:     {initializing, engineReady},
	} {
		begin, end := &r.marks[stage[0]], &r.marks[stage[1]]
		if took := of.Took[name]; took > 0 && end.known && !begin.known {
			begin.set(end.from, end.told.Add(-took))
		}
	}
}
