// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"math"
	"time"

	"github.com/llmfleet/llmfleet/internal/window"
)

// Books are the accounts of one model, at the end of an evaluation.
type Books struct {
	Model string
	// Distinct is how many tenants sent requests within the TTL: exact while all of
	// them are watched, otherwise estimated to 1.6 %.
	Distinct float64
	// Tenants are those named and Other, in the order of their names. Over all of
	// them, what was added since the evaluation before is all that was counted.
	Tenants []Account
	// Tiers add up in the same way; empty if no request told one.
	Tiers []Account
}

// Account is what was counted under one name. It never falls while its Since
// stays.
type Account struct {
	Name string
	// Since is when all counts were zero.
	Since window.Instant
	Tally
	// KnownRatio is the share of the requests of outcome OK, of late, that told
	// how many tokens of a type they took; NaN if there were none.
	KnownRatio [TokenTypeCount]float64
}

// account is an Account, and what was counted since it was visited last: as
// nobody saw that yet, it may still go to another.
type account struct {
	Account
	fresh Tally
	known knownRatio
	last  window.Instant // when a request of it was counted last
}

func (l *Ledger) open(name string, since window.Instant) *account {
	return &account{
		Account: Account{Name: name, Since: since, Tally: l.buckets.newTally()},
		fresh:   l.buckets.newTally(),
	}
}

func (l *Ledger) count(a *account, r *Request, at window.Instant) {
	a.last = max(a.last, l.counted(at))
	l.buckets.count(&a.fresh, r)
	a.known.count(r, at, l.HalfLife)
}

// settle makes what is fresh part of the account.
func (a *account) settle() *Account {
	a.add(&a.fresh)
	a.fresh.reset()
	a.KnownRatio = a.known.ratios()
	return &a.Account
}

// knownRatio is how many requests told the tokens of each type, and how many
// there were, both decayed to the time of the latest.
type knownRatio struct {
	told     [TokenTypeCount]float64
	requests float64
	latest   window.Instant
}

func (k *knownRatio) count(r *Request, at window.Instant, halfLife time.Duration) {
	if r.Outcome != OK {
		return
	}
	weight := 1.0
	if decay := math.Exp2(-math.Abs(float64(at-k.latest)) / float64(halfLife)); at > k.latest {
		k.decay(decay)
		k.latest = at
	} else {
		weight = decay
	}
	k.requests += weight
	for i, known := range r.Known {
		if known {
			k.told[i] += weight
		}
	}
}

func (k *knownRatio) decay(factor float64) {
	k.requests *= factor
	for i := range k.told {
		k.told[i] *= factor
	}
}

func (k *knownRatio) ratios() (ratios [TokenTypeCount]float64) {
	for i, told := range k.told {
		ratios[i] = told / k.requests // NaN of none
	}
	return ratios
}
