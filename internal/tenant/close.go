// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/llmfleet/llmfleet/internal/stats"
	"github.com/llmfleet/llmfleet/internal/window"
)

// persistence is how many evaluations in a row one has to be ahead of a named
// tenant to take his place: names that change hands with every burst make series
// that nobody can read.
const persistence = 3

// Close ends an evaluation: it lets go of who was silent for longer than the
// TTL, decides who is named, and hands out the books of each model, in the order
// of their names. They are borrowed until visit returns.
//
// Who comes to be named has an account of zeros that begins at end; who is not
// any more has none. There are never more than Top accounts and Other.
func (l *Ledger) Close(end window.Instant, visit func(*Books)) {
	for _, name := range slices.Sorted(maps.Keys(l.models)) {
		m := l.models[name]
		l.forget(m, end)
		if m.tenants.Len() == 0 && l.idle(m.other.last, end) {
			delete(l.models, name)
			continue
		}
		l.rank(m, end)
		l.settle(name, m, end)
		visit(&l.books)
	}
	l.closed = end
}

// counted is the time of a request as idleness is measured from it. Whatever
// time it says, it was told in this evaluation.
func (l *Ledger) counted(at window.Instant) window.Instant { return max(at, l.closed+1) }

// idle tells whether what was counted last at the time last is to be let go.
// What was counted in this evaluation never is: it has yet to be visited.
func (l *Ledger) idle(last, end window.Instant) bool {
	return last <= l.closed && end.Sub(last) > l.TTL
}

// forget lets go of the tenants and tiers of a model that are idle.
func (l *Ledger) forget(m *model, end window.Instant) {
	l.ranking.reset()
	for x := range m.tenants.All() {
		if l.idle(x.Value.last, end) {
			l.ranking.idle = append(l.ranking.idle, x)
		}
	}
	for _, x := range l.ranking.idle {
		if x.Value.account != nil {
			m.leave(x.Value.account)
		}
		m.tenants.Forget(x)
	}
	maps.DeleteFunc(m.tiers, func(_ string, a *account) bool { return l.idle(a.last, end) })
}

// leave ends an account. What nobody has seen of it yet is counted for Other.
func (m *model) leave(a *account) {
	m.other.fresh.add(&a.fresh)
	m.named = slices.DeleteFunc(m.named, func(b *account) bool { return a == b })
}

// ranking is the memory in which the tenants of one model are ranked.
type ranking struct {
	named, unnamed []contender
	idle           []*stats.Hitter[standing]
}

// contender is a tenant and the bounds of its weight of late.
type contender struct {
	*stats.Hitter[standing]
	lower, upper float64
}

func (r *ranking) reset() {
	clear(r.named)
	clear(r.unnamed)
	clear(r.idle)
	r.named, r.unnamed, r.idle = r.named[:0], r.unnamed[:0], r.idle[:0]
}

// rank decides who is named. Ranked is by the weight that a tenant has for
// certain; who is named stays until somebody has more for certain than he can
// have at most.
func (l *Ledger) rank(m *model, end window.Instant) {
	r := &l.ranking
	r.reset()
	now := seconds(end)
	for x := range m.tenants.All() {
		count, err := m.tenants.Weight(x, now)
		c := contender{x, count - err, count}
		if x.Value.account != nil {
			r.named = append(r.named, c)
		} else {
			r.unnamed = append(r.unnamed, c)
		}
	}
	slices.SortFunc(r.unnamed, func(a, b contender) int {
		return cmp.Or(cmp.Compare(b.lower, a.lower), cmp.Compare(a.Key, b.Key))
	})
	for len(r.named) < l.Top && len(r.unnamed) > 0 {
		l.name(m, r.unnamed[0], end)
		r.named, r.unnamed = append(r.named, r.unnamed[0]), r.unnamed[1:]
	}
	slices.SortFunc(r.named, func(a, b contender) int {
		return cmp.Or(cmp.Compare(a.upper, b.upper), cmp.Compare(a.Key, b.Key))
	})
	l.replace(m, end)
}

// replace names whoever was ahead of the lowest named tenant long enough, the
// highest first, each in place of the lowest that is left.
func (l *Ledger) replace(m *model, end window.Instant) {
	named := l.ranking.named
	for _, c := range l.ranking.unnamed {
		if c.lower <= l.ranking.named[0].upper {
			c.Value.streak = 0
			continue
		}
		c.Value.streak++
		if c.Value.streak < persistence || len(named) == 0 || c.lower <= named[0].upper {
			continue
		}
		m.leave(named[0].Value.account)
		named[0].Value = standing{last: named[0].Value.last}
		named = named[1:]
		l.name(m, c, end)
	}
}

func (l *Ledger) name(m *model, c contender, end window.Instant) {
	c.Value.account = l.open(c.Key, end)
	c.Value.streak = 0
	m.named = append(m.named, c.Value.account)
}

// settle writes the books of a model.
func (l *Ledger) settle(name string, m *model, end window.Instant) {
	m.distinct.advance(end)
	b := &l.books
	b.Model, b.Distinct = name, m.distinct.estimate(l.union)
	if end.Sub(m.crowded) > l.TTL { // every one of them is watched
		b.Distinct = float64(m.watched())
	}
	b.Tenants, b.Tiers = b.Tenants[:0], b.Tiers[:0]
	b.Tenants = append(b.Tenants, *m.other.settle())
	for _, a := range m.named {
		b.Tenants = append(b.Tenants, *a.settle())
	}
	slices.SortFunc(b.Tenants, byName)
	if unreserved(m.tiers) == 0 {
		// Tiers are told of from when one is: until then, nothing adds up.
		clear(m.tiers)
		return
	}
	for _, a := range m.tiers {
		b.Tiers = append(b.Tiers, *a.settle())
	}
	slices.SortFunc(b.Tiers, byName)
}

// watched is how many tenants are watched; the reserved names are none.
func (m *model) watched() (n int) {
	for x := range m.tenants.All() {
		if !Reserved(x.Key) {
			n++
		}
	}
	return n
}

func byName(a, b Account) int { return cmp.Compare(a.Name, b.Name) }

func seconds(t window.Instant) float64 { return float64(t) / float64(time.Second) }
