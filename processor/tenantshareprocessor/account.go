// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantshareprocessor

import (
	"cmp"
	"slices"
	"strings"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/tenant"
)

// account is what one dialect told of the tenants of one fleet: one replica of a
// gateway, or all of them together.
type account struct {
	source string
	keys   []fleet.Label // of the fleet, without those of who tells
	// cached: it tells of prompt tokens that were found in a cache. Unreliable:
	// two processes answered under one name, and what they count is not known.
	cached, unreliable bool
	joined             bool    // there are engines that serve them
	tenants            []usage // in the order of their names
}

// usage is what one tenant used.
type usage struct {
	name         string
	window, pane tokens
	// finished and throttled are requests in the window; negative if they are
	// not told.
	finished, throttled float64
}

// tokens are those of prompts, those of them that were found in a cache, and
// those that were made.
type tokens struct{ input, cached, output float64 }

// uncached are the tokens of prompts that had to be computed.
func (t tokens) uncached() float64 { return max(0, t.input-t.cached) }

// all are prompts and output together.
func (t tokens) all() float64 { return t.input + t.output }

func (t *tokens) add(o tokens) {
	t.input += o.input
	t.cached += o.cached
	t.output += o.output
}

// newAccount reads the frame of a fleet of tenants.
func newAccount(f *fleet.Frame) account {
	a := account{}
	for _, key := range f.Fleet.Keys {
		if key.Name != teller {
			a.keys = append(a.keys, key)
		}
	}
	for _, members := range [][]fleet.MemberFrame{f.Members, f.Departed} {
		for i := range members {
			a.source = members[i].Identity.Engine
			a.read(&members[i])
		}
	}
	slices.SortFunc(a.tenants, func(x, y usage) int { return strings.Compare(x.name, y.name) })
	return a
}

// read adds one tenant.
func (a *account) read(m *fleet.MemberFrame) {
	a.tenants = append(a.tenants, usage{
		name:      m.Identity.Replica,
		window:    tokensOf(m.Told),
		pane:      tokensOf(m.Recent),
		finished:  requestsOf(&m.Told[atTenantFinished]),
		throttled: requestsOf(&m.Told[atTenantThrottled]),
	})
	a.cached = a.cached || m.Told[atTenantHits].Layout != nil
	a.unreliable = a.unreliable || slices.ContainsFunc(m.Told[:recentSignals], func(d fleet.Distribution) bool { return d.Unreliable })
}

func tokensOf(told []fleet.Distribution) tokens {
	if len(told) == 0 {
		return tokens{}
	}
	return tokens{
		input:  float64(told[atTenantPrompt].Observations()),
		cached: float64(told[atTenantHits].Observations()),
		output: float64(told[atTenantOutput].Observations()),
	}
}

func requestsOf(d *fleet.Distribution) float64 {
	if d.Layout == nil {
		return -1
	}
	return float64(d.Observations())
}

// total is what all tenants used, in the window and in its newest pane.
func (a *account) total() (window, pane tokens) {
	for i := range a.tenants {
		window.add(a.tenants[i].window)
		pane.add(a.tenants[i].pane)
	}
	return window, pane
}

// names tells whether the account tells any tenant from others.
func (a *account) names() bool {
	return slices.ContainsFunc(a.tenants, func(u usage) bool { return !tenant.Reserved(u.name) && u.window.all() > 0 })
}

// of tells whether the account is of the fleet's tenants: all keys that both
// know have the same value.
func (a *account) of(keys []fleet.Label) bool {
	for _, key := range a.keys {
		for _, other := range keys {
			if key.Name == other.Name && key.Value != other.Value {
				return false
			}
		}
	}
	return true
}

// join adds an account of the same dialect, by another replica of the gateway or
// of another part of the fleet.
func (a *account) join(o *account) {
	a.cached = a.cached || o.cached
	a.unreliable = a.unreliable || o.unreliable
	a.tenants = slices.Concat(a.tenants, o.tenants)
	slices.SortStableFunc(a.tenants, func(x, y usage) int { return strings.Compare(x.name, y.name) })
	merged := a.tenants[:0]
	for _, u := range a.tenants {
		if last := len(merged) - 1; last >= 0 && merged[last].name == u.name {
			merged[last].join(&u)
			continue
		}
		merged = append(merged, u)
	}
	a.tenants = merged
}

func (u *usage) join(o *usage) {
	u.window.add(o.window)
	u.pane.add(o.pane)
	u.finished = added(u.finished, o.finished)
	u.throttled = added(u.throttled, o.throttled)
}

// added adds what is told.
func added(a, b float64) float64 {
	if a < 0 || b < 0 {
		return max(a, b)
	}
	return a + b
}

// tellable are the accounts of one fleet, one for each dialect, in the order in
// which dialects count.
func tellable(all []account, keys []fleet.Label, order []string) []account {
	var told []account
	for i := range all {
		if !all[i].of(keys) {
			continue
		}
		all[i].joined = true
		at := slices.IndexFunc(told, func(a account) bool { return a.source == all[i].source })
		if at < 0 {
			told = append(told, all[i])
			continue
		}
		told[at].join(&all[i])
	}
	rank := func(a account) int {
		if at := slices.Index(order, a.source); at >= 0 {
			return at
		}
		return len(order)
	}
	slices.SortStableFunc(told, func(a, b account) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.source, b.source))
	})
	return told
}
