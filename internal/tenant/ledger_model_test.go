// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/llmfleet/llmfleet/internal/window"
)

// auditor holds what a Ledger shows against what it was told. He knows nothing
// of ranks: only that series add up, never fall, and are few.
type auditor struct {
	options LedgerOptions
	told    map[string]*Tally // since the last evaluation, by model
	tenants map[string]map[string]Account
	tiers   map[string]map[string]Account
	ended   map[series]bool
	closed  window.Instant
}

type series struct {
	model, name string
	since       window.Instant
}

func newAuditor(o LedgerOptions) *auditor {
	return &auditor{
		options: o, closed: epoch,
		told: map[string]*Tally{}, ended: map[series]bool{},
		tenants: map[string]map[string]Account{}, tiers: map[string]map[string]Account{},
	}
}

// layout is that of the options, by the public contract.
func (a *auditor) layout() buckets {
	if a.options.Exponential {
		return nil
	}
	return a.options.Bounds
}

// hear is told of a request that counts for a model.
func (a *auditor) hear(model string, r *Request) {
	if a.told[model] == nil {
		t := a.layout().newTally()
		a.told[model] = &t
	}
	a.layout().count(a.told[model], r)
}

// audit checks the books of one evaluation.
func (a *auditor) audit(t *rapid.T, end window.Instant, books map[string]page) {
	require.LessOrEqual(t, len(books), a.options.MaxModels+3)
	for model := range a.told {
		require.Contains(t, books, model, "requests of a model are not visited")
	}
	for model := range a.tenants {
		if _, ok := books[model]; !ok {
			a.end(model, a.tenants[model], nil)
			delete(a.tenants, model)
			delete(a.tiers, model)
		}
	}
	for model, p := range books {
		told := a.layout().newTally()
		if a.told[model] != nil {
			told = *a.told[model]
		}
		require.LessOrEqual(t, len(p.tenants), a.options.Top+1)
		require.Contains(t, p.tenants, Other)
		require.Equal(t, told, a.growth(t, a.tenants[model], p.tenants), "tenants of %s", model)
		a.checkSince(t, end, model, p)
		if len(p.tiers) > 0 {
			require.LessOrEqual(t, len(p.tiers), a.options.MaxTiers+3)
			require.Equal(t, told, a.growth(t, a.tiers[model], p.tiers), "tiers of %s", model)
		}
		a.end(model, a.tenants[model], p.tenants)
		a.tenants[model], a.tiers[model] = p.tenants, p.tiers
	}
	clear(a.told)
	a.closed = end
}

// growth is what the series of now have more than those before, in total.
func (a *auditor) growth(t *rapid.T, before, now map[string]Account) Tally {
	sum := a.layout().newTally()
	for name, account := range now {
		from := a.layout().newTally()
		if old, ok := before[name]; ok && old.Since == account.Since {
			from = old.Tally
		}
		grow := func(sum *uint64, from, to uint64) {
			require.GreaterOrEqual(t, to, from, "%s fell", name)
			*sum += to - from
		}
		for i := range account.Tokens {
			grow(&sum.Tokens[i], from.Tokens[i], account.Tokens[i])
			grow(&sum.Known[i], from.Known[i], account.Known[i])
		}
		for i := range account.Requests {
			grow(&sum.Requests[i], from.Requests[i], account.Requests[i])
		}
		for i := range account.TTFT.Counts {
			grow(&sum.TTFT.Counts[i], from.TTFT.Counts[i], account.TTFT.Counts[i])
		}
		grow(&sum.TTFT.Count, from.TTFT.Count, account.TTFT.Count)
		require.GreaterOrEqual(t, account.TTFT.Sum, from.TTFT.Sum)
		sum.TTFT.Sum += account.TTFT.Sum - from.TTFT.Sum
		checkRatios(t, account.KnownRatio)
	}
	return sum
}

func checkRatios(t *rapid.T, ratios [TokenTypeCount]float64) {
	for _, ratio := range ratios {
		require.True(t, math.IsNaN(ratio) || ratio >= 0 && ratio <= 1+1e-12, "%v", ratio)
	}
}

// checkSince checks when accounts begin, and that none that ended goes on.
func (a *auditor) checkSince(t *rapid.T, end window.Instant, model string, p page) {
	for name, account := range p.tenants {
		require.NotContains(t, a.ended, series{model, name, account.Since}, "it has ended before")
		old, known := a.tenants[model][name]
		switch {
		case known && old.Since == account.Since:
		case name == Other:
			require.False(t, known, "Other ends with its model only")
			require.Equal(t, a.closed, account.Since)
		default:
			require.Equal(t, end, account.Since)
			require.Equal(t, a.layout().newTally(), account.Tally, "%s begins with something", name)
		}
	}
	for name, account := range p.tiers {
		if old, ok := a.tiers[model][name]; !ok || old.Since != account.Since {
			require.Equal(t, a.closed, account.Since, "tier %s", name)
		}
	}
}

// end remembers the series of before that are not among those of now.
func (a *auditor) end(model string, before, now map[string]Account) {
	for name, account := range before {
		if still, ok := now[name]; !ok || still.Since != account.Since {
			a.ended[series{model, name, account.Since}] = true
		}
	}
}

// drawRequest draws times to first token of which sums are exact.
func drawRequest(t *rapid.T) *Request {
	r := &Request{
		Tenant:  rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", Unknown, Invalid, Other, ""}).Draw(t, "tenant"),
		Tier:    rapid.SampledFrom([]string{"", "", "", "gold", "silver", "lead"}).Draw(t, "tier"),
		Model:   rapid.SampledFrom([]string{"m", "m", "m", "n", "o", ""}).Draw(t, "model"),
		Outcome: Outcome(rapid.Uint8Range(0, uint8(OutcomeCount)-1).Draw(t, "outcome")),
		TTFT:    rapid.SampledFrom([]float64{-1, 0, 0.25, 0.5, 3, 1 << 20, math.NaN(), math.Inf(1)}).Draw(t, "ttft"),
	}
	for i := range r.Tokens {
		if r.Known[i] = rapid.Bool().Draw(t, "known"); r.Known[i] {
			r.Tokens[i] = rapid.Uint64Range(0, 1000).Draw(t, "tokens")
		}
	}
	return r
}

func TestLedgerConserves(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := LedgerOptions{
			Top:      rapid.IntRange(1, 4).Draw(rt, "top"),
			Track:    rapid.IntRange(1, 8).Draw(rt, "track"),
			HalfLife: 10 * time.Minute, TTL: rapid.SampledFrom([]time.Duration{time.Second, 3 * time.Minute, time.Hour}).Draw(rt, "ttl"),
			MaxModels: 2, MaxTiers: rapid.IntRange(1, 3).Draw(rt, "max tiers"),
			Bounds: []float64{0.25, 1, 10}, Exponential: rapid.Bool().Draw(rt, "exponential"),
		}
		d := openDesk(t, o)
		a := newAuditor(o)
		models := map[string]bool{} // that are told apart, as long as they are
		for range rapid.IntRange(1, 25).Draw(rt, "evaluations") {
			for range rapid.IntRange(0, 12).Draw(rt, "requests") {
				r := drawRequest(rt)
				a.hear(firstServed(models, r, o.MaxModels), r)
				d.Count(r, d.now.Add(rapid.SampledFrom([]time.Duration{-time.Hour, -time.Minute, 0, time.Second}).Draw(rt, "at")))
			}
			books := d.closeAfter(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 10 * time.Minute}).Draw(rt, "after"))
			a.audit(rt, d.now, books)
			for model := range models {
				if _, visited := books[model]; !visited {
					delete(models, model)
				}
			}
		}
	})
}

// firstServed is the model that a request counts for.
func firstServed(models map[string]bool, r *Request, limit int) string {
	switch {
	case r.Model == "":
		return Unknown
	case models[r.Model]:
	case r.Outcome != OK, len(models) >= limit:
		return Other
	}
	models[strings.Clone(r.Model)] = true
	return r.Model
}
