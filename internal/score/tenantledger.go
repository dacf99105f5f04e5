// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/llmfleet/llmfleet/internal/tenant"
	"github.com/llmfleet/llmfleet/internal/window"
)

const (
	// crowdTenants send by Zipf's law, crowdRequests of all of them in a pane.
	crowdTenants, crowdRequests = 100_000, 50_000
	namedTenants                = 20
	ledgerHalfLife              = 10 * time.Minute
	ledgerTTL                   = time.Hour
	// churnPanes is after how many panes other tenants are the largest, in the
	// stream that is there to have names come and go.
	churnPanes = 6
	// silence is how many panes that stream has been over when it is forgotten.
	silence = 2 * int(ledgerTTL/pane)
)

// crowd draws the requests of very many tenants.
type crowd struct {
	draw    *rand.Rand
	weights []float64 // of the ranks, summed up
	names   []string
	churns  bool
	shift   int // the tenant that is the first in rank
	panes   int
	served  map[string]bool // models of which a request was OK, or that are not told
	// decayed is what each tenant took of late, in a unit that shrinks with time.
	decayed []float64
	// counted is the truth of the pane by model.
	counted map[string]*ledgerTotals
}

// ledgerTotals are counts of one model, of all tenants together.
type ledgerTotals struct {
	tokens   [tenant.TokenTypeCount]uint64
	requests [tenant.OutcomeCount]uint64
	ttft     uint64
}

func newCrowd(churns bool, seed uint64) *crowd {
	c := &crowd{draw: rand.New(rand.NewPCG(seed, crowdTenants)), churns: churns, decayed: make([]float64, crowdTenants), served: map[string]bool{"": true}}
	all := 0.0
	for rank := range crowdTenants {
		all += 1 / float64(rank+1)
		c.weights = append(c.weights, all)
		c.names = append(c.names, fmt.Sprintf("tenant-%06d", rank))
	}
	return c
}

// next lets the ledger count a pane of requests.
func (c *crowd) next(l *tenant.Ledger) (end window.Instant) {
	begin := paneStart(c.panes)
	c.counted = map[string]*ledgerTotals{}
	if c.churns && c.panes > 0 && c.panes%churnPanes == 0 {
		c.shift += namedTenants / 2
	}
	var r tenant.Request
	for i := range crowdRequests {
		at := begin + window.Instant(i+1)*window.Instant(pane)/crowdRequests
		who := c.request(&r)
		l.Count(&r, at)
		c.decayed[who] += float64(r.Total()) * math.Exp2(float64(at.Sub(storiesBegin))/float64(ledgerHalfLife))
	}
	c.panes++
	return begin.Add(pane)
}

// request draws one, and counts it. Some fail, some do not tell what they took,
// and where names come and go there are several models.
func (c *crowd) request(r *tenant.Request) (who int) {
	rank := sort.SearchFloat64s(c.weights, c.draw.Float64()*c.weights[crowdTenants-1])
	who = (rank + c.shift) % crowdTenants
	*r = tenant.Request{Tenant: c.names[who], Model: "model", TTFT: -1}
	if c.churns {
		r.Model = [...]string{"model", "another", ""}[c.draw.IntN(3)]
		r.Outcome = [...]tenant.Outcome{tenant.OK, tenant.OK, tenant.Failed, tenant.Throttled}[c.draw.IntN(4)]
		r.Tier = [...]string{"", "gold", "free"}[c.draw.IntN(3)]
	}
	counts := r.Model
	if c.served[counts] = c.served[counts] || r.Outcome == tenant.OK; !c.served[counts] {
		counts = tenant.Other
	}
	of := c.counted[counts]
	if of == nil {
		of = new(ledgerTotals)
		c.counted[counts] = of
	}
	if r.Outcome == tenant.OK {
		r.TTFT = c.draw.ExpFloat64()
		of.ttft++
	}
	of.requests[r.Outcome]++
	for kind := range tenant.TokenTypeCount {
		if c.churns && c.draw.IntN(4) == 0 {
			continue
		}
		r.Known[kind] = true
		r.Tokens[kind] = uint64(1 + 500*math.Exp(c.draw.NormFloat64()))
		of.tokens[kind] += r.Tokens[kind]
	}
	return who
}

// largest are the names of the tenants that took the most of late.
func (c *crowd) largest(n int) map[string]bool {
	places := make([]int, crowdTenants)
	for i := range places {
		places[i] = i
	}
	slices.SortFunc(places, func(x, y int) int { return cmp.Compare(c.decayed[y], c.decayed[x]) })
	names := map[string]bool{}
	for _, p := range places[:n] {
		names[c.names[p]] = true
	}
	return names
}

// bookkeeper adds up what a ledger says was added since the evaluation before.
type bookkeeper struct {
	series map[ledgerSeries]ledgerTotals
	named  []string        // in the newest evaluation, of all models
	most   int             // series of tenants of one model, over all evaluations
	wrong  float64         // sum of the differences to the truth
	ever   map[string]bool // named in any
}

// ledgerSeries is one counter of tenants or of tiers.
type ledgerSeries struct {
	model, name string
	tier        bool
	since       window.Instant
}

// close closes the ledger at the end of a pane, and compares with the truth.
func (b *bookkeeper) close(l *tenant.Ledger, end window.Instant, truth map[string]*ledgerTotals) {
	series := map[ledgerSeries]ledgerTotals{}
	b.named = b.named[:0]
	if b.ever == nil {
		b.ever = map[string]bool{}
	}
	open := len(truth)
	l.Close(end, func(books *tenant.Books) {
		var is ledgerTotals
		model := books.Model
		if model == tenant.Unknown {
			model = ""
		}
		if t := truth[model]; t != nil {
			is = *t
			open--
		}
		b.wrong += is.from(b.increases(series, books.Model, false, books.Tenants))
		if len(books.Tiers) > 0 {
			b.wrong += is.from(b.increases(series, books.Model, true, books.Tiers))
		}
		for i := range books.Tenants {
			if name := books.Tenants[i].Name; name != tenant.Other {
				b.named = append(b.named, name)
				b.ever[name] = true
			}
		}
		b.most = max(b.most, len(books.Tenants))
	})
	b.wrong += float64(open) // models that are not told of
	b.series = series
}

// increases adds up by how much the accounts grew. A series that was not there
// before began at zero.
func (b *bookkeeper) increases(series map[ledgerSeries]ledgerTotals, model string, tier bool, accounts []tenant.Account) (sum ledgerTotals) {
	for i := range accounts {
		a := &accounts[i]
		key := ledgerSeries{model, a.Name, tier, a.Since}
		now := ledgerTotals{a.Tokens, a.Requests, a.TTFT.Count}
		before := b.series[key]
		series[key] = now
		for kind := range now.tokens {
			sum.tokens[kind] += now.tokens[kind] - before.tokens[kind]
		}
		for outcome := range now.requests {
			sum.requests[outcome] += now.requests[outcome] - before.requests[outcome]
		}
		sum.ttft += now.ttft - before.ttft
	}
	return sum
}

// from is how far other totals are from these.
func (t *ledgerTotals) from(other ledgerTotals) (distance float64) {
	for kind := range t.tokens {
		distance += math.Abs(float64(int64(t.tokens[kind] - other.tokens[kind]))) //nolint:gosec // wraps back to a small difference
	}
	for outcome := range t.requests {
		distance += math.Abs(float64(int64(t.requests[outcome] - other.requests[outcome]))) //nolint:gosec // wraps back to a small difference
	}
	return distance + math.Abs(float64(int64(t.ttft-other.ttft))) //nolint:gosec // wraps back to a small difference
}

// keep plays panes of a crowd, and then a silence, through a ledger.
func (b *bookkeeper) keep(c *crowd, panes, silence int) {
	l := tenant.NewLedger(tenant.LedgerOptions{
		Top: namedTenants, Track: 512, HalfLife: ledgerHalfLife, TTL: ledgerTTL, MaxModels: 32, MaxTiers: 16,
	}, storiesBegin)
	for range panes {
		end := c.next(l)
		b.close(l, end, c.counted)
	}
	for i := range silence {
		b.close(l, paneStart(panes+i+1), nil)
	}
}

// ledgerLines plays very many tenants through a ledger: whether increases add up,
// as names come and go and after all have fallen silent, and who is named.
func ledgerLines(panes int, seed uint64) []Line {
	churning, churned := newCrowd(true, seed), &bookkeeper{}
	steady, kept := newCrowd(false, seed), &bookkeeper{}
	var players sync.WaitGroup
	players.Go(func() { churned.keep(churning, panes, silence) })
	players.Go(func() { kept.keep(steady, panes, 0) })
	players.Wait()
	right := 0
	largest := steady.largest(namedTenants)
	for _, name := range kept.named {
		if largest[name] {
			right++
		}
	}
	return []Line{
		{
			Name: "tenant_share_error", Value: churned.wrong + kept.wrong, Unit: "{count}", Target: atMost(0),
			Note: fmt.Sprintf("%d requests of %d tenants, %d of whom were named, %d evaluations, at most %d series a model; %d series after the silence",
				2*churning.panes*crowdRequests, crowdTenants, len(churned.ever), churning.panes+steady.panes+silence, max(churned.most, kept.most), len(churned.series)),
		},
		{
			Name: "tenant_recall_top20", Value: float64(right), Unit: "{tenant}", Target: atLeast(namedTenants),
			Note: fmt.Sprintf("of %d tenants, %d requests", crowdTenants, steady.panes*crowdRequests),
		},
	}
}
