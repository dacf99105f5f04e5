// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"time"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/judge/share"
	"github.com/llmfleet/llmfleet/internal/tenant"
	"github.com/llmfleet/llmfleet/internal/window"
)

// nobody is the rank of a tenant that there is not.
const nobody = -1

// storiesBegin is when the first pane of a story begins: some day, as judgements
// may take the first instant of all for one that was not told.
var storiesBegin = window.Instant(time.Date(2026, time.August, 1, 0, 0, 0, 0, time.UTC).UnixNano())

// paneStart is when a pane begins, counted from 0.
func paneStart(t int) window.Instant { return storiesBegin + window.Instant(t)*window.Instant(pane) }

// teller tells what happens in a drawing as gateways and engines do.
type teller struct {
	story   *story
	drawing *fleetsim.TenantDrawing
	ranks   int // that are told apart, from 0
	panes   int
	// now and before are the newest panes as if nothing were told late.
	now, before share.Pane
	told        share.Pane
}

func newTeller(s *story, drawing *fleetsim.TenantDrawing, tenants int) *teller {
	t := &teller{story: s, drawing: drawing, ranks: tenants}
	if s.apart > 0 {
		t.ranks = min(tenants, s.apart)
	}
	t.now.Tenants = make([]share.Usage, tenants)
	t.before.Tenants = make([]share.Usage, tenants)
	for rank := range tenants {
		t.now.Tenants[rank].Name = tenantName(rank)
		t.before.Tenants[rank].Name = tenantName(rank)
	}
	return t
}

// next plays the next pane, and tells it. It is valid until the next call.
func (t *teller) next() *share.Pane {
	t.now, t.before = t.before, t.now
	t.drawing.Next()
	p := &t.now
	p.ITLSum, p.ITLCount = t.drawing.ITL()
	p.Running = t.drawing.Running()
	p.Prompt, p.Generation = 0, 0
	for rank := range p.Tenants {
		u := &p.Tenants[rank]
		u.Uncached, u.Output = t.drawing.Usage(rank)
		p.Prompt += u.Uncached
		p.Generation += u.Output
	}
	if t.panes == 0 { // nothing was before, so that is told twice
		before := t.before.Tenants
		copy(before, p.Tenants)
		t.before = *p
		t.before.Tenants = before
	}
	t.panes++
	engines, tokens := p, p
	if t.story.enginesLate {
		engines = &t.before
	}
	if t.story.tokensLate {
		tokens = &t.before
	}
	usages := t.told.Tenants[:0]
	t.told = *engines
	t.told.End = paneStart(t.panes)
	t.told.Replicas = tenantReplicas
	t.told.Tenants = t.together(usages, tokens.Tenants)
	return &t.told
}

// together appends the usages, those that are not told apart as one. The order
// is that of names.
func (t *teller) together(usages, all []share.Usage) []share.Usage {
	if t.ranks < len(all) {
		others := share.Usage{Name: tenant.Other}
		for _, u := range all[t.ranks:] {
			others.Uncached += u.Uncached
			others.Output += u.Output
		}
		usages = append(usages, others)
	}
	return append(usages, all[:t.ranks]...)
}

// rank is that of the tenant at a place of what is told; nobody if that stands
// for many.
func (t *teller) rank(place int) int {
	return max(nobody, place-(len(t.told.Tenants)-t.ranks))
}
