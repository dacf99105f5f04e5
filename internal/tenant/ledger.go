// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"time"

	"github.com/axiomhq/hyperloglog"

	"github.com/llmfleet/llmfleet/internal/stats"
	"github.com/llmfleet/llmfleet/internal/window"
)

// LedgerOptions are what a Ledger keeps, and for how long. All are positive.
type LedgerOptions struct {
	// Top tenants of a model are named, out of Track whose weight is watched.
	Top, Track int
	// HalfLife is after how long a request counts half in who is named, and in
	// the ratio of known usage.
	HalfLife time.Duration
	// TTL is how long a name is kept without a request.
	TTL time.Duration
	// MaxModels and MaxTiers (of one model) are told apart, those that came first
	// of which a request was OK: what clients invent is refused, and is Other, as
	// what comes later is. Unknown and Invalid are told apart beside them.
	MaxModels, MaxTiers int
	// Bounds are the ascending upper bounds of the times to first token, in
	// seconds; by default DefaultBounds.
	Bounds []float64
	// Exponential keeps these times in exponential buckets instead.
	Exponential bool
}

// Ledger keeps accounts for the tenants of each model that took the most of
// late, and one for all others together. Accounts only grow, and no count ever
// moves from one to another: who comes to be named begins at zero, and while he
// is not, his requests count for Other. It is not safe for concurrent use.
//
// Times are those of events. They need not ascend, but must not be far ahead of
// the evaluation: what claims to come from the future is to be refused before.
type Ledger struct {
	LedgerOptions
	buckets buckets
	models  map[string]*model
	closed  window.Instant // when the last evaluation ended
	union   *hyperloglog.Sketch
	ranking ranking
	books   Books
}

// model is the accounts of one model.
type model struct {
	tenants  *stats.HeavyHitters[standing]
	named    []*account
	other    *account
	tiers    map[string]*account
	distinct *distinct
	crowded  window.Instant // when one was last pushed out of tenants by another
}

// standing is how a tenant that is watched stands.
type standing struct {
	account *account       // nil if it is not named
	last    window.Instant // when a request of it was counted last
	streak  int            // how many evaluations in a row it was ahead of one that is named
}

// NewLedger opens a Ledger at now.
func NewLedger(o LedgerOptions, now window.Instant) *Ledger {
	l := &Ledger{
		LedgerOptions: o,
		models:        map[string]*model{},
		closed:        now,
		union:         newSketch(),
	}
	switch {
	case o.Exponential:
	case len(o.Bounds) == 0:
		l.buckets = DefaultBounds
	default:
		l.buckets = o.Bounds
	}
	return l
}

// Count counts a request that ended at the time at.
func (l *Ledger) Count(r *Request, at window.Instant) {
	m := l.model(r)
	l.count(l.tenant(m, r, at), r, at)
	l.count(l.tier(m, r), r, at)
	m.distinct.insert(r.Tenant)
}

// model finds or opens the accounts of the model of a request.
func (l *Ledger) model(r *Request) *model {
	m, name := find(l.models, r.Model, r.Outcome, l.MaxModels)
	if m == nil {
		m = &model{
			tenants:  stats.NewHeavyHitters[standing](max(l.Track, l.Top), l.HalfLife.Seconds()),
			other:    l.open(Other, l.closed),
			tiers:    map[string]*account{},
			distinct: newDistinct(l.TTL, l.closed),
		}
		l.models[name] = m
	}
	return m
}

// tier finds or opens the account of the tier of a request.
func (l *Ledger) tier(m *model, r *Request) *account {
	a, name := find(m.tiers, r.Tier, r.Outcome, l.MaxTiers)
	if a == nil {
		a = l.open(name, l.closed)
		m.tiers[name] = a
	}
	return a
}

// find looks up what a client calls raw: under that name, or under Other if it
// has none yet and the request was not OK or limit names are taken. If there is
// nothing yet, v is nil and is to be put under name.
func find[V any](names map[string]*V, raw string, outcome Outcome, limit int) (v *V, name string) {
	if v := names[raw]; v != nil {
		return v, raw
	}
	name = label(raw)
	if names[name] == nil && !Reserved(name) && (outcome != OK || unreserved(names) >= limit) {
		name = Other
	}
	return names[name], name
}

// unreserved is how many of the names are not reserved.
func unreserved[V any](names map[string]*V) (n int) {
	n = len(names)
	for _, name := range [...]string{Other, Unknown, Invalid} {
		if names[name] != nil {
			n--
		}
	}
	return n
}

// tenant weighs the request, and finds the account that it counts for. Its
// weight is its tokens and one: who has not told of tokens is still ranked, by
// requests.
func (l *Ledger) tenant(m *model, r *Request, at window.Instant) *account {
	if r.Tenant == Other {
		return m.other
	}
	now, weight := seconds(at), 1+float64(r.Total())
	x := m.tenants.Find(r.Tenant)
	if x != nil {
		m.tenants.Add(x, now, weight)
	} else {
		var out stats.Hitter[standing]
		var evicted bool
		if x, out, evicted = m.tenants.Insert(r.Tenant, now, weight); evicted {
			m.crowded = l.counted(at)
		}
		if out.Value.account != nil {
			m.leave(out.Value.account)
		}
	}
	x.Value.last = max(x.Value.last, l.counted(at))
	if x.Value.account != nil {
		return x.Value.account
	}
	return m.other
}
