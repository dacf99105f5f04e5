// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantshareprocessor

import (
	"cmp"
	"slices"

	"github.com/llmfleet/llmfleet/internal/judge/share"
	"github.com/llmfleet/llmfleet/internal/tenant"
	"github.com/llmfleet/llmfleet/internal/window"
)

// docket is what is remembered of one fleet from pane to pane.
type docket struct {
	judge *share.Judge
	// source is the dialect whose tenants count; empty until one told something.
	source string
	named  map[string]bool // tenants, in the evaluation before
	// verdicts are those of the newest pane that was whole, by tenant.
	verdicts map[string]share.Verdict
	// lapsed: the pane before held no tokens. The next may hold those of both.
	lapsed bool
	seen   window.Instant // when the fleet last told something
}

// choose picks the account that counts. The one that did goes on until it was
// silent for a window; then the first that is not takes its place. Who names
// nobody comes last: a gateway that was not told how does not know tenants. Two
// are never added up: they tell of the same requests. With another dialect
// tenants have other names, and who is new to all is no suspect: the judge begins
// anew.
func (d *docket) choose(told []account, options *share.Options) *account {
	var best *account
	rank := func(a *account) int { // the highest counts
		switch {
		case !a.names():
			return 0
		case a.source != d.source:
			return 1
		default:
			return 2
		}
	}
	for i := range told {
		a := &told[i]
		if total, _ := a.total(); total.all() == 0 {
			continue
		}
		if best == nil || rank(a) > rank(best) {
			best = a
		}
	}
	if best != nil && best.source != d.source {
		*d = docket{judge: share.NewJudge(*options), source: best.source, seen: d.seen, lapsed: true}
	}
	return best
}

// whole tells whether the pane holds just its own tokens: some, and none of a
// pane before in which nothing came. Without an account nothing holds any more.
func (d *docket) whole(a *account) bool {
	lapsed := d.lapsed
	if a == nil {
		d.lapsed, d.verdicts = true, nil
		return false
	}
	_, pane := a.total()
	d.lapsed = pane.all() == 0 || a.unreliable
	return !lapsed && !d.lapsed
}

// incumbency is by how much a tenant that is not named has to exceed one that is
// to take its place: names that come and go make series that do.
const incumbency = 1.25

// hear judges one pane, and tells whether a tenant became noisy or ceased to be.
// While nothing whole is told of tenants they are what they
// were, for as long as their account lasts; what a verdict measures is withheld.
func (d *docket) hear(p *share.Pane, whole bool) (report *share.Report, turned bool) {
	if !whole {
		p.Tenants = nil
	}
	report = d.judge.Judge(p)
	if !whole {
		for name, v := range d.verdicts {
			none := share.Figure{Withheld: share.NoTokens}
			v.Excess, v.Score = none, none
			d.verdicts[name] = v
		}
		return report, false
	}
	before := d.verdicts
	d.verdicts = make(map[string]share.Verdict, len(report.Tenants))
	for _, v := range report.Tenants {
		d.verdicts[v.Name] = v
		turned = turned || v.Noisy != before[v.Name].Noisy
	}
	return report, turned
}

// name picks the tenants that are named: those that are noisy, then those that
// used most in the window. The answer are indexes into the tenants, in their
// order.
func (d *docket) name(tenants []usage, top int) []int {
	var named []int
	for i := range tenants {
		if u := &tenants[i]; u.name != tenant.Other && (u.window.all() > 0 || d.verdicts[u.name].Noisy) {
			named = append(named, i)
		}
	}
	weight := func(u *usage) float64 {
		if d.named[u.name] {
			return incumbency * u.window.all()
		}
		return u.window.all()
	}
	slices.SortStableFunc(named, func(i, j int) int {
		a, b := &tenants[i], &tenants[j]
		if noisy := d.verdicts[a.name].Noisy; noisy != d.verdicts[b.name].Noisy {
			return cmp.Compare(flag(!noisy), flag(noisy))
		}
		return cmp.Compare(weight(b), weight(a))
	})
	named = named[:min(top, len(named))]
	slices.Sort(named)
	d.named = make(map[string]bool, top)
	for _, i := range named {
		d.named[tenants[i].name] = true
	}
	return named
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
