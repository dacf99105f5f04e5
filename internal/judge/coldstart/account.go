// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"slices"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// account is what the facts of one pod come to.
type account struct {
	*record
	view     view
	from, to window.Instant // its creation, and its being Ready or its end
	served   bool
	failure  string

	created, scheduled, volume, sandbox, ready mark
	inits                                      [][]run // by init container, in the pod's order
	primary                                    string  // the container of the engine
	runs                                       []run   // its attempts, the last of which is the one that counts
	others                                     [][]run // of the other main containers

	stages []Span // Parent unset
	halves []half
}

// reckon makes the account of a pod whose start is over at the end, by the
// collector's clock.
func reckon(r *record, c *clocks, end window.Instant) *account {
	a := &account{record: r, view: see(r, c)}
	a.bound(end)
	a.cast()
	a.chain()
	a.tell()
	a.half()
	return a
}

// bound finds the beginning and the end, which are never moved.
func (a *account) bound(end window.Instant) {
	tell := func(m *mark, name lifecycle.Name) {
		m.name = name
		if s := a.view.finest(named(name)); s != nil {
			m.set(s, s.at)
		}
	}
	for name, m := range map[lifecycle.Name]*mark{
		lifecycle.Created: &a.created, lifecycle.Scheduled: &a.scheduled, lifecycle.SandboxReady: &a.sandbox, lifecycle.Ready: &a.ready,
	} {
		tell(m, name)
	}
	a.volume.name = lifecycle.VolumeAttached
	if s := a.view.last(named(lifecycle.VolumeAttached)); s != nil {
		a.volume.set(s, s.at)
	}
	if a.ready.known { // flips back and forth on restarts: the first counts
		if s := a.view.first(named(lifecycle.Ready)); s.at < a.ready.told.Add(-slack) {
			a.ready.set(s, s.at)
		}
	}
	token := a.view.first(named(lifecycle.FirstToken))
	if !a.ready.known && (a.alone() || token != nil) {
		if s := a.view.last(named(lifecycle.EngineReady)); s != nil {
			a.ready.set(s, s.at)
		} else if token != nil {
			a.ready.set(token, token.at)
		}
	}
	if first := a.view.first(func(s *sighting) bool { return !precedes(s.Name) }); first != nil {
		a.from = first.at
	}
	if a.created.known {
		a.from = a.created.told
	}
	a.served, a.to = a.ready.known, end
	if a.served {
		a.to = a.ready.told
	} else if s := a.view.first(func(s *sighting) bool { return s.Name == lifecycle.Failed || s.Name == lifecycle.Deleted }); s != nil {
		a.to, a.failure = s.at, failureOf(s)
	}
	a.to = max(a.to, a.from)
}

// alone tells that only the engine told of the pod: then its own word for being
// ready counts.
func (r *record) alone() bool {
	return !r.has(lifecycle.Created, lifecycle.Scheduled, lifecycle.ContainerStarted, lifecycle.Ready)
}

// cast finds who of the containers is the engine, and what attempts each made.
func (a *account) cast() {
	if s := a.view.first(func(s *sighting) bool {
		return s.Name.OfEngine() && s.Container != "" && a.role(s.Container) == lifecycle.Main
	}); s != nil {
		a.primary = s.Container
	} else if mains := a.mains(); len(mains) > 0 {
		a.primary = mains[0]
	}
	for _, c := range a.About.Containers {
		switch {
		case c.Role != lifecycle.Main:
			a.inits = append(a.inits, runsOf(a.view, c.Name, a.to))
		case c.Name != a.primary:
			a.others = append(a.others, runsOf(a.view, c.Name, a.to))
		}
	}
	a.runs = spoken(runsOf(a.view, a.primary, a.to), a.primary, a.view)
	hear(a.runs, a.view)
	a.runs[len(a.runs)-1].gather(a.record)
}

func (a *account) role(container string) lifecycle.ContainerRole {
	for _, c := range a.About.Containers {
		if c.Name == container {
			return c.Role
		}
	}
	return lifecycle.Main
}

// mains are the main containers, those first that the pod was said to have.
func (a *account) mains() (names []string) {
	for _, c := range a.About.Containers {
		if c.Role == lifecycle.Main {
			names = append(names, c.Name)
		}
	}
	if len(a.About.Containers) == 0 {
		for i := range a.view {
			if s := &a.view[i]; s.Name == lifecycle.ContainerStarted && !slices.Contains(names, s.Container) {
				names = append(names, s.Container)
			}
		}
	}
	return names
}

// chain puts the marks in the order in which they must have come.
func (a *account) chain() {
	var order []*put
	for _, m := range a.marks() {
		if m.known && m != &a.created && m != &a.ready {
			order = append(order, &m.put)
		}
	}
	inOrder(order, a.from, a.to)
	for _, runs := range a.others {
		for i := range runs {
			for m := range runs[i].marks {
				k := &runs[i].marks[m]
				k.at = within(k.told, a.from, a.to)
			}
		}
	}
	a.created.at, a.ready.at = a.from, a.to
}

// marks are the boundaries of the pod's way that follow each other, known or not.
func (a *account) marks() []*mark {
	all := []*mark{&a.created, &a.scheduled, &a.volume, &a.sandbox}
	for _, runs := range a.inits {
		for i := range runs {
			all = append(all, &runs[i].marks[started])
			if a.role(runs[i].container) == lifecycle.Init {
				all = append(all, &runs[i].marks[exited])
			}
		}
	}
	for i := range a.runs {
		for m := range a.runs[i].marks {
			k := &a.runs[i].marks[m]
			k.name, k.container = runNames[m], a.runs[i].container
			all = append(all, k)
		}
	}
	return append(all, &a.ready)
}

func failureOf(s *sighting) string {
	text := s.Reason
	switch {
	case s.Message != "" && text != "":
		text += ": " + s.Message
	case s.Message != "":
		text = s.Message
	case s.Name == lifecycle.Deleted && text == "":
		text = "deleted"
	}
	if text == "" {
		text = s.Name.String()
	}
	return text
}
