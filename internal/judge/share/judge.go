// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/llmfleet/llmfleet/internal/tenant"
)

// DefaultOptions are the options for panes of the given length.
func DefaultOptions(pane time.Duration) Options {
	return Options{
		Pane: pane, HalfLife: 30 * time.Minute,
		MinScore: 5, MinExcess: 0.1, Panes: 3,
		MaxTenants: 4096,
	}
}

const (
	// warmup is how many panes are seen before anything is said.
	warmup = 10
	// becomesUsual is after how many half-lives what goes on is the usual, and
	// what was long ago is forgotten.
	becomesUsual = 2
	// negligible is a usual share that need not be remembered.
	negligible = 1e-3
	// incredible is how many times the usual tokens, or the usual latency, make a
	// pane that nothing is learned from: one request that was miscounted, or a
	// moment in which engines hang, would blind the fit for hours.
	incredible = 10
)

// Judge tells, pane after pane, which tenants of one fleet raise the inter-token
// latency of all. Not safe for concurrent use.
type Judge struct {
	options  Options
	memory   memory
	accounts map[string]*account
	slope    float64
	report   Report
}

// NewJudge makes a judge that has seen nothing.
func NewJudge(o Options) *Judge {
	return &Judge{options: o, accounts: make(map[string]*account)}
}

// Judge takes the next pane of the fleet. Where time has gone back, or nothing
// was told for long, it begins anew. The report is valid until the next call.
func (j *Judge) Judge(p *Pane) *Report {
	if gap := p.End.Sub(j.memory.Last); gap <= 0 || gap > becomesUsual*j.options.HalfLife {
		j.memory = memory{}
		clear(j.accounts)
	}
	var total float64
	for i := range p.Tenants {
		total += p.Tenants[i].Uncached
	}
	var reason Withheld
	switch {
	case !(p.ITLCount > 0) || !(p.ITLSum > 0) || p.Replicas <= 0:
		reason = NoITL
	case !(total > 0):
		reason = NoTokens
	case j.memory.doubts(p.volume(&j.options), p.ITLSum/p.ITLCount, total):
		reason = Incredible
	default:
		reason = j.take(p, total)
	}
	return j.tell(p, reason)
}

// volume is the time of all replicas in the pane, in seconds.
func (p *Pane) volume(o *Options) float64 { return float64(p.Replicas) * o.Pane.Seconds() }

// take learns from a pane, and judges it by what was learned before.
func (j *Judge) take(p *Pane, total float64) Withheld {
	m := &j.memory
	decay := 0.0
	if m.Panes > 0 {
		decay = math.Exp2(-p.End.Sub(m.Last).Seconds() / j.options.HalfLife.Seconds())
	}
	j.admit(p)
	m.Last = p.End
	m.Panes++
	volume := p.volume(&j.options)
	copy(m.Past[1:], m.Past[:])
	now := &m.Past[0]
	*now = observation{End: p.End, Running: p.Running / float64(p.Replicas), Prompt: total / volume, ITL: p.ITLSum / p.ITLCount}
	j.forget(decay)
	m.reckon(p, total)
	deviations := m.fit(j.options.Pane)
	for _, a := range j.accounts {
		a.observe(now, total, &deviations)
	}
	e := j.effect()
	j.slope = e.line.slope
	var held, adopted bool
	for name, a := range j.accounts {
		a.weigh(&j.options, &e, p.End)
		if name == tenant.Other {
			a.Suspect, a.Convincing = false, 0
		}
		if a.unusual() {
			held = true
			a.Share.hold(a.uncached, total)
		} else {
			a.Share.learn(a.uncached, total, decay)
		}
		adopted = a.decide(&j.options, p.End) || adopted
	}
	m.settle(held, adopted, decay, &j.options)
	return e.reason
}

// forget lets what was seen count less, and drops tenants that no longer matter.
func (j *Judge) forget(decay float64) {
	m := &j.memory
	for i := range m.Fits {
		m.Fits[i].forget(decay)
	}
	for _, sum := range [...]*float64{&m.Uncached, &m.Prompt, &m.Output, &m.Generation, &m.Total} {
		*sum *= decay
	}
	for name, a := range j.accounts {
		for i := range a.With {
			a.With[i].forget(decay)
		}
		if !a.present && !a.Noisy && a.Share.mean(0) < negligible && m.Last.Sub(a.Seen) > j.options.HalfLife {
			delete(j.accounts, name)
		}
	}
}

// admit finds the accounts of the pane's tenants, and opens new ones. Who comes
// to a fleet that is known had a share of nothing so far; of a fleet that is
// not, nobody can tell. Where most tokens are of new ones, they are old ones under
// new names, and no usual share is known of anyone.
func (j *Judge) admit(p *Pane) {
	for _, a := range j.accounts {
		a.uncached, a.present = 0, false
	}
	missing, total, unknown := 0, 0.0, 0.0
	for i := range p.Tenants {
		u := &p.Tenants[i]
		total += u.Uncached
		if a := j.accounts[u.Name]; a != nil {
			a.uncached, a.present = u.Uncached, true
		} else {
			missing++
			unknown += u.Uncached
		}
	}
	if missing == 0 {
		return
	}
	known := j.memory.Panes >= warmup
	if known && unknown > total/2 {
		clear(j.accounts)
		known = false
	}
	j.makeRoom(missing)
	for i := range p.Tenants {
		u := &p.Tenants[i]
		if j.accounts[u.Name] != nil || len(j.accounts) >= j.options.MaxTenants {
			continue
		}
		a := &account{uncached: u.Uncached, present: true}
		if known {
			a.Share.Weight = j.memory.Total
		}
		j.accounts[u.Name] = a
	}
}

// makeRoom forgets those of the tenants that are away whose share was least.
func (j *Judge) makeRoom(places int) {
	excess := len(j.accounts) + places - j.options.MaxTenants
	if excess <= 0 {
		return
	}
	var away []string
	for name, a := range j.accounts {
		if !a.present && !a.Noisy {
			away = append(away, name)
		}
	}
	slices.SortFunc(away, func(x, y string) int {
		return cmp.Or(cmp.Compare(j.accounts[x].Share.mean(0), j.accounts[y].Share.mean(0)), cmp.Compare(x, y))
	})
	for _, name := range away[:min(excess, len(away))] {
		delete(j.accounts, name)
	}
}
