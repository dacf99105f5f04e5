// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"cmp"
	"slices"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// Close tells the starts that are over at a time of the collector's clock, oldest
// first, and forgets what has been remembered for long enough.
func (b *Book) Close(now window.Instant) Closed {
	b.clocks.forget(now, b.options.TTL)
	var closed Closed
	for _, unit := range b.units() {
		outcome, over := b.judge(unit, now)
		if !over {
			continue
		}
		if report := b.report(unit, outcome, now); report != nil {
			closed.Starts = append(closed.Starts, report)
		}
	}
	closed.Afters, b.afters = b.afters, nil
	slices.SortFunc(closed.Starts, func(x, y *Report) int {
		return cmp.Or(cmp.Compare(x.Spans[0].Start, y.Spans[0].Start), cmp.Compare(x.ID, y.ID))
	})
	slices.SortFunc(closed.Afters, func(x, y After) int { return cmp.Compare(x.ID, y.ID) })
	n := 0
	for n < len(b.over) && now.Sub(b.over[n].Over) > b.options.TTL {
		n++
	}
	b.forget(n)
	return closed
}

// units are the replicas that start: single pods, and the pods of groups with
// the leader first.
func (b *Book) units() [][]*record {
	groups := make(map[string][]*record)
	units := make([][]*record, 0, len(b.open))
	for _, r := range b.open {
		if r.About.Group == "" {
			units = append(units, []*record{r})
		} else {
			groups[r.About.Group] = append(groups[r.About.Group], r)
		}
	}
	for _, members := range groups {
		lead(members)
		units = append(units, members)
	}
	return units
}

// lead puts the leader first, the others by name.
func lead(members []*record) {
	leader := ""
	for _, r := range members {
		leader = cmp.Or(r.About.Leader, leader)
	}
	slices.SortFunc(members, func(x, y *record) int {
		switch {
		case x.UID == leader:
			return -1
		case y.UID == leader:
			return 1
		}
		return cmp.Or(cmp.Compare(x.About.Name, y.About.Name), cmp.Compare(x.UID, y.UID))
	})
}

// judge tells whether a start is over. A group serves when all of its pods do, and
// is gone with its leader; another pod that goes leaves it to a successor.
func (b *Book) judge(members []*record, now window.Instant) (Outcome, bool) {
	leader, size := members[0], 0
	serving, heard := 0, window.Instant(0)
	for _, r := range members {
		size = max(size, r.About.GroupSize)
		switch {
		case r.serves():
			serving++
			heard = max(heard, cmp.Or(r.Served, r.Heard))
		case r.Ended != 0 && r != leader:
			serving++
			size++
		}
	}
	if serving == len(members) && len(members) >= size { // late facts are waited for
		return Served, now.Sub(heard) >= b.options.Grace
	}
	if leader.Ended != 0 && !leader.serves() && now.Sub(leader.Ended) >= b.options.Grace {
		return Gone, true
	}
	if now.Sub(min(leader.began(), leader.Heard)) > b.options.TTL {
		if leader.has(lifecycle.FirstToken) { // that it is Ready was not told
			return Served, true
		}
		return Expired, true
	}
	return 0, false
}

// serves tells whether the pod has been Ready, by the engine's word if Kubernetes
// says nothing of the pod.
func (r *record) serves() bool {
	return r.Served != 0 || r.has(lifecycle.EngineReady) && r.alone()
}

// report makes the report of a start that is over, nil if there is none to make:
// of a pod that had served for long when it was first heard of, of one that was
// seen too little of.
func (b *Book) report(members []*record, outcome Outcome, now window.Instant) *Report {
	defer func() {
		for _, r := range members {
			b.end(r, now)
		}
	}()
	leader := members[0]
	if !leader.started() {
		return nil
	}
	accounts := make([]*account, 0, len(members))
	for _, r := range members {
		a := reckon(r, &b.clocks, now)
		if a.served && r.Heard.Sub(a.to) > b.options.MaxAge {
			return nil
		}
		accounts = append(accounts, a)
	}
	report := assemble(accounts, outcome, now)
	for _, a := range accounts {
		b.remember(a, report)
	}
	return report
}

// started tells whether enough was told for a start to be one.
func (r *record) started() bool {
	return r.has(lifecycle.Created, lifecycle.Scheduled) || r.alone() && r.has(lifecycle.EngineReady)
}

// remember keeps with a pod where its start is told, and tells of a first token
// that came already.
func (b *Book) remember(a *account, report *Report) {
	if report.Outcome != Served {
		return
	}
	a.Of, a.Root = report.ID, report.Spans[0].End
	if s := a.view.first(named(lifecycle.FirstToken)); s != nil && !a.Token {
		a.Token = true
		b.afters = append(b.afters, a.after(s.at, s.Took))
	}
}

// Progress counts the replicas that are starting by the stage at which they are.
func (b *Book) Progress() []Progress {
	counts := make(map[Progress]int)
	for _, members := range b.units() {
		leader := members[0]
		if !leader.started() || leader.serves() || leader.Ended != 0 {
			continue
		}
		a := &account{record: leader, view: see(leader, &b.clocks)}
		a.bound(a.view[len(a.view)-1].at)
		a.cast()
		a.chain()
		stage, _ := a.standing()
		counts[Progress{Model: leader.About.Model, Namespace: leader.About.Namespace, GPUModel: leader.About.GPUModel, Stage: stage}]++
	}
	all := make([]Progress, 0, len(counts))
	for p, n := range counts {
		p.Replicas = n
		all = append(all, p)
	}
	slices.SortFunc(all, func(x, y Progress) int {
		return cmp.Or(cmp.Compare(x.Model, y.Model), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.GPUModel, y.GPUModel), cmp.Compare(x.Stage, y.Stage))
	})
	return all
}
