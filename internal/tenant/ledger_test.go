// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/window"
)

const epoch = window.Instant(1_800_000_000 * time.Second)

// desk is a Ledger and the clock of those who use it.
type desk struct {
	*Ledger
	t   *testing.T
	now window.Instant
}

func openDesk(t *testing.T, o LedgerOptions) *desk {
	t.Helper()
	defaults := LedgerOptions{
		Top: 20, Track: 512, HalfLife: 10 * time.Minute, TTL: time.Hour, MaxModels: 32, MaxTiers: 16,
	}
	o.Top, o.Track = cmp.Or(o.Top, defaults.Top), cmp.Or(o.Track, defaults.Track)
	o.HalfLife, o.TTL = cmp.Or(o.HalfLife, defaults.HalfLife), cmp.Or(o.TTL, defaults.TTL)
	o.MaxModels, o.MaxTiers = cmp.Or(o.MaxModels, defaults.MaxModels), cmp.Or(o.MaxTiers, defaults.MaxTiers)
	return &desk{Ledger: NewLedger(o, epoch), t: t, now: epoch}
}

// send counts a request of so many output tokens.
func (d *desk) send(tenant string, tokens uint64) {
	d.Count(&Request{Tenant: tenant, Tokens: [TokenTypeCount]uint64{Output: tokens}, TTFT: -1}, d.now)
}

// page is what was visited of a model, kept.
type page struct {
	Books
	tenants, tiers map[string]Account
}

func keep(accounts []Account) (map[string]Account, []Account) {
	names := map[string]Account{}
	list := slices.Clone(accounts)
	for i := range list {
		list[i].TTFT.Counts = slices.Clone(list[i].TTFT.Counts)
		names[list[i].Name] = list[i]
	}
	return names, list
}

// closeAfter ends an evaluation and returns all that was visited, by model.
func (d *desk) closeAfter(after time.Duration) map[string]page {
	d.t.Helper()
	d.now = d.now.Add(after)
	pages := map[string]page{}
	var order []string
	d.Close(d.now, func(b *Books) {
		p := page{Books: *b}
		p.tenants, p.Tenants = keep(b.Tenants)
		p.tiers, p.Tiers = keep(b.Tiers)
		require.Len(d.t, p.tenants, len(b.Tenants), "a name stands twice")
		require.True(d.t, slices.IsSortedFunc(b.Tenants, byName))
		require.True(d.t, slices.IsSortedFunc(b.Tiers, byName))
		pages[b.Model] = p
		order = append(order, b.Model)
	})
	require.True(d.t, slices.IsSorted(order))
	return pages
}

// total is all tokens of all accounts of a page.
func (p page) total() (n uint64) {
	for _, a := range p.Tenants {
		for _, tokens := range a.Tokens {
			n += tokens
		}
	}
	return n
}

func TestAThousandTenantsInTwentyOneSeries(t *testing.T) {
	d := openDesk(t, LedgerOptions{})
	last := map[string]uint64{}
	grown := func(p page) (growth uint64) {
		assert.LessOrEqual(t, len(p.Tenants), 21)
		next := map[string]uint64{}
		for _, a := range p.Tenants {
			series := fmt.Sprint(a.Name, " since ", a.Since)
			next[series] = a.Tokens[Output]
			require.GreaterOrEqual(t, a.Tokens[Output], last[series], "%s fell", series)
			growth += a.Tokens[Output] - last[series]
		}
		last = next
		return growth
	}

	for i := range 1000 {
		d.send(fmt.Sprintf("user-%04d", i), 1)
	}
	p := d.closeAfter(time.Minute)[Unknown]
	assert.Equal(t, uint64(1000), grown(p))
	assert.Len(t, p.Tenants, 21)
	assert.InEpsilon(t, 1000, p.Distinct, 0.06, "within four standard errors")

	growth := uint64(0)
	for range 5 {
		d.send("user-0999", 100)
		growth += grown(d.closeAfter(time.Minute)[Unknown])
	}
	assert.Equal(t, uint64(500), growth)

	for range 59 {
		assert.Zero(t, grown(d.closeAfter(time.Minute)[Unknown]))
	}
	for range 5 {
		for _, p := range d.closeAfter(time.Minute) {
			assert.Zero(t, grown(p))
		}
	}
	assert.Empty(t, d.models, "all are forgotten after the TTL")
}

func TestWhoIsNamedBeginsAtZero(t *testing.T) {
	d := openDesk(t, LedgerOptions{Top: 2})
	d.send("a", 10)
	p := d.closeAfter(time.Minute)[Unknown]
	assert.Equal(t, d.now, p.tenants["a"].Since)
	assert.Equal(t, buckets(DefaultBounds).newTally(), p.tenants["a"].Tally)
	assert.True(t, math.IsNaN(p.tenants["a"].KnownRatio[Output]))
	assert.Equal(t, epoch, p.tenants[Other].Since)
	assert.Equal(t, uint64(10), p.tenants[Other].Tokens[Output])

	named := d.now
	d.send("a", 7)
	p = d.closeAfter(time.Minute)[Unknown]
	assert.Equal(t, uint64(7), p.tenants["a"].Tokens[Output])
	assert.Equal(t, named, p.tenants["a"].Since)
	assert.Equal(t, uint64(10), p.tenants[Other].Tokens[Output])
}

func TestAChallengerHasToPersist(t *testing.T) {
	d := openDesk(t, LedgerOptions{Top: 1})
	d.send("old", 100)
	d.closeAfter(time.Minute)
	d.send("new", 1000)
	for range 2 {
		assert.Contains(t, d.closeAfter(time.Second)[Unknown].tenants, "old")
	}
	d.send("old", 30)
	p := d.closeAfter(time.Second)[Unknown]
	assert.NotContains(t, p.tenants, "old")
	assert.Zero(t, p.tenants["new"].Tokens[Output])
	assert.Equal(t, d.now, p.tenants["new"].Since)
	assert.Equal(t, uint64(1130), p.tenants[Other].Tokens[Output], "what old sent in the evaluation in which he left is in Other")

	d.send("old", 1)
	p = d.closeAfter(time.Second)[Unknown]
	assert.Equal(t, uint64(1131), p.tenants[Other].Tokens[Output])
}

func TestAChallengerWhoFallsBackStartsAnew(t *testing.T) {
	d := openDesk(t, LedgerOptions{Top: 1})
	d.send("old", 100)
	d.closeAfter(time.Minute)
	d.send("new", 150)
	d.closeAfter(time.Second)
	d.closeAfter(time.Second)
	d.send("old", 100)
	d.closeAfter(time.Second)
	d.send("new", 100)
	for range 2 {
		assert.Contains(t, d.closeAfter(time.Second)[Unknown].tenants, "old")
	}
	assert.Contains(t, d.closeAfter(time.Second)[Unknown].tenants, "new")
}

func TestWhoIsCrowdedOutLeaves(t *testing.T) {
	d := openDesk(t, LedgerOptions{Top: 2, Track: 2})
	d.send("a", 1)
	d.send("b", 5)
	d.closeAfter(time.Minute)
	d.send("a", 1)
	d.send("c", 9) // takes the place of a in the list that is watched
	p := d.closeAfter(time.Minute)[Unknown]
	assert.NotContains(t, p.tenants, "a")
	assert.Equal(t, uint64(16), p.total())
	assert.Contains(t, p.tenants, "c", "the free place is taken at once")
}

func TestReservedNamesAreNamedLikeTenants(t *testing.T) {
	d := openDesk(t, LedgerOptions{})
	for range 2 {
		for _, name := range []string{Unknown, Invalid, Unmapped, Other} {
			d.send(name, 3)
		}
		d.closeAfter(time.Minute)
	}
	p := d.closeAfter(time.Minute)[Unknown]
	assert.Len(t, p.Tenants, 4)
	assert.Equal(t, uint64(3), p.tenants[Unmapped].Tokens[Output])
	assert.Equal(t, uint64(15), p.tenants[Other].Tokens[Output])
	assert.Zero(t, p.Distinct)
}

func TestInventedModelsAreOneOther(t *testing.T) {
	d := openDesk(t, LedgerOptions{MaxModels: 32})
	for i := range 10_000 {
		d.Count(&Request{Tenant: "a", Model: fmt.Sprintf("gpt-4o-mimi-%d", i), TTFT: -1}, d.now)
	}
	pages := d.closeAfter(time.Minute)
	assert.Len(t, pages, 33)
	assert.Equal(t, uint64(10_000-32), pages[Other].tenants[Other].Requests[OK])

	d.closeAfter(2 * time.Hour)
	d.Count(&Request{Tenant: "a", Model: "real", TTFT: -1}, d.now)
	pages = d.closeAfter(time.Minute)
	assert.Len(t, pages, 1, "models that are forgotten make room")
	assert.Contains(t, pages, "real")
}

// TestOnlyWhatIsServedHasAName: failures cannot take the places of models and
// tiers; what failed before counts for Other, and stays there.
func TestOnlyWhatIsServedHasAName(t *testing.T) {
	d := openDesk(t, LedgerOptions{MaxModels: 2, MaxTiers: 2})
	count := func(model, tier string, outcome Outcome) {
		d.Count(&Request{Tenant: "a", Model: model, Tier: tier, Outcome: outcome, TTFT: -1}, d.now)
	}
	for _, outcome := range []Outcome{Failed, Throttled} {
		for i := range 100 {
			count(fmt.Sprint("invented ", i), "", outcome)
			count("real", fmt.Sprint("invented ", i), outcome)
		}
		count("real", "gold", outcome)
	}
	pages := d.closeAfter(time.Minute)
	assert.Len(t, pages, 1)
	assert.Equal(t, [OutcomeCount]uint64{Failed: 201, Throttled: 201}, pages[Other].tenants[Other].Requests)
	assert.Empty(t, pages[Other].Tiers, "none was served")

	since := d.now
	for _, model := range []string{"real", "other", "third"} {
		for _, tier := range []string{"gold", "", "free", "third"} {
			count(model, tier, OK)
		}
	}
	count("real", "gold", Failed)
	count("real", "", Failed)
	count("real", "invented", Failed)
	count("", "", Failed)
	count("two\nlines", "", Failed)
	pages = d.closeAfter(time.Minute)
	assert.ElementsMatch(t, []string{"real", "other", Other, Unknown, Invalid}, slices.Collect(maps.Keys(pages)))
	served := pages["real"]
	assert.Equal(t, since, served.tenants[Other].Since)
	assert.Equal(t, [OutcomeCount]uint64{OK: 4, Failed: 3}, served.tenants[Other].Requests)
	assert.ElementsMatch(t, []string{"gold", "free", Unknown, Other}, slices.Collect(maps.Keys(served.tiers)))
	assert.Equal(t, [OutcomeCount]uint64{OK: 1, Failed: 1}, served.tiers["gold"].Requests)
	assert.Equal(t, [OutcomeCount]uint64{OK: 1, Failed: 1}, served.tiers[Unknown].Requests)
	assert.Equal(t, [OutcomeCount]uint64{OK: 1, Failed: 1}, served.tiers[Other].Requests)
	assert.Equal(t, [OutcomeCount]uint64{OK: 4}, pages[Other].tenants["a"].Requests, "the third model")
}

func TestTiersAreToldFromWhenOneIs(t *testing.T) {
	d := openDesk(t, LedgerOptions{MaxTiers: 2})
	d.send("a", 5)
	assert.Empty(t, d.closeAfter(time.Minute)[Unknown].Tiers)

	since := d.now
	tiers := []string{"gold", "", "silver", "lead", "two\nlines"}
	for _, tier := range tiers {
		d.Count(&Request{Tenant: "a", Tier: tier, TTFT: -1}, d.now)
	}
	p := d.closeAfter(time.Minute)[Unknown]
	assert.Len(t, p.Tiers, 5)
	for _, name := range []string{"gold", "silver", Unknown, Invalid, Other} {
		assert.Equal(t, uint64(1), p.tiers[name].Requests[OK], name)
	}
	assert.Equal(t, since, p.tiers[Unknown].Since)
	assert.Zero(t, p.tiers[Unknown].Tokens[Output], "what came before tiers were told is in none")
}

func TestKnownRatioIsOfLate(t *testing.T) {
	d := openDesk(t, LedgerOptions{HalfLife: time.Minute})
	p := d.closeAfter(0)
	assert.Empty(t, p)
	d.Count(&Request{Tenant: "a", Outcome: Throttled, TTFT: -1}, d.now)
	assert.True(t, math.IsNaN(d.closeAfter(0)[Unknown].tenants[Other].KnownRatio[Output]), "nobody was to tell")
	for _, known := range []bool{true, false, false} {
		d.Count(&Request{Tenant: "a", Known: [TokenTypeCount]bool{Output: known}, TTFT: -1}, d.now)
		d.now = d.now.Add(time.Minute)
	}
	a := d.closeAfter(0)[Unknown].tenants["a"]
	// A minute is a half life: (1/4) / (1/4 + 1/2 + 1).
	assert.InEpsilon(t, 1.0/7, a.KnownRatio[Output], 1e-12)
	assert.Zero(t, a.KnownRatio[InputCached])
	assert.Equal(t, uint64(1), a.Known[Output])

	d.Count(&Request{Tenant: "a", Known: [TokenTypeCount]bool{Output: true}, TTFT: -1}, d.now.Add(-2*time.Minute))
	a = d.closeAfter(0)[Unknown].tenants["a"]
	// (1/4 + 1/2) / (1/4 + 1/2 + 1/2 + 1).
	assert.InEpsilon(t, 1.0/3, a.KnownRatio[Output], 1e-12, "one that comes late counts as it would have in time")
}

func TestWhatComesLateIsVisited(t *testing.T) {
	d := openDesk(t, LedgerOptions{TTL: time.Minute})
	d.Count(&Request{Tenant: "a", Tokens: [TokenTypeCount]uint64{Output: 4}, TTFT: -1}, epoch.Add(-time.Hour))
	assert.Equal(t, uint64(4), d.closeAfter(10 * time.Minute)[Unknown].total())
	assert.Empty(t, d.closeAfter(10*time.Minute))
}
