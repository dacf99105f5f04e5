// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

const (
	// tenantCount tenants send by Zipf's law: the one of rank r as much as 1/r.
	tenantCount = 200
	// tenantReplicas serve them, tenantHomes each of them.
	tenantReplicas, tenantHomes = 8, 3
	// tenantRequests are those of a replica in a pane.
	tenantRequests = 120
	// tenantDispersion is that of the arrivals of the median client of ServeGen.
	tenantDispersion = 1.7
	fullBatch        = 256
	// tenantScrapes of each engine are made in a pane.
	tenantScrapes = 4

	hourPanes = 60
	// tenantQuiet is the pane in which the tenants are known, tenantStory the one
	// a quiet hour later from which on something happens, and tenantAfter how
	// long one waits for it to pass.
	tenantQuiet, tenantStory, tenantAfter = hourPanes, 2 * hourPanes, 20
	// A story begins in the first quarter of an hour, and lasts one to two.
	leastBurst, mostBurst = 15, 30
	// The culprit is of this rank, from 1.
	firstCulprit, lastCulprit = 3, 20
	// burstLength is how many times as long its prompts are.
	burstLength = 4
	smallBurst  = 0.4
	surgeFactor = 2
)

var (
	tenantPrompt = fleetsim.DrawnTokens{Mean: 2000, CV: 1}
	tenantOutput = fleetsim.DrawnTokens{Mean: 250, CV: 1}
	// tenantDecode is that of the simulated engines, a full batch of which costs
	// 30 % more than a line says; it makes about 13 ms of usual load, a quarter of
	// that by prefill.
	tenantDecode = fleetsim.DecodeTime{
		Base: 8e-3, PerRunning: 120e-6, PerSquare: 0.3 * 120e-6 / fullBatch, PerContext: 30e-9, PerPrefill: 0.8e-6, MaxRunning: fullBatch,
	}
)

// story is what happens to a fleet that tenants share, and how it is told.
type story struct {
	name string
	// burst: a tenant sends as many prompt tokens as all usually do together; small:
	// smallBurst times as many.
	burst, small bool
	// surge: all send twice as much.
	surge bool
	// tokensLate, enginesLate: the gateways' tokens or the engines' figures are
	// told a pane late.
	tokensLate, enginesLate bool
	// apart is how many tenants are told apart, the largest; 0 is all.
	apart int
	// clients are real ones, of which a stretch is played; nil for Zipf's.
	clients []fleetsim.DrawnTenant
}

// storyRun is one fleet that a story happens to.
type storyRun struct {
	plan fleetsim.DrawnTenants
	// from and to are the panes of the story; burst is the culprit's, in the story
	// or, if that has none, when its hour is over.
	from, to int
	burst    fleetsim.Burst
	story    *story
}

// panes is how long the run is.
func (r *storyRun) panes() int { return r.burst.To + tenantAfter }

// plan draws the nth run of a story. The same run of two stories differs by
// nothing but the story.
func (s *story) plan(n, seed uint64) *storyRun {
	draw := rand.New(rand.NewPCG(seed, n))
	r := &storyRun{story: s, from: tenantStory + draw.IntN(hourPanes/4)}
	r.to = r.from + leastBurst + draw.IntN(mostBurst-leastBurst+1)
	r.burst = fleetsim.Burst{
		Tenant: firstCulprit - 1 + draw.IntN(lastCulprit-firstCulprit+1), From: r.from, To: r.to,
		Prefill: tenantReplicas * tenantRequests * tenantPrompt.Mean, Length: burstLength,
	}
	if s.small {
		r.burst.Prefill *= smallBurst
	}
	if !s.burst {
		r.burst.From = r.from + hourPanes
		r.burst.To = r.burst.From + leastBurst
	}
	r.plan = fleetsim.DrawnTenants{
		Name: fmt.Sprintf("tenants-%d", n), Replicas: tenantReplicas, Homes: tenantHomes, Tenants: zipf(tenantCount),
		Begin: draw.IntN(panesADay), RateSwing: rateSwing, Prompt: tenantPrompt, Output: tenantOutput, Decode: tenantDecode,
		PodNoise: noisy, DriftNoise: noisy, Scrapes: tenantScrapes, Bursts: []fleetsim.Burst{r.burst},
	}
	if s.clients != nil { // what they do in a day is in their rates
		r.plan.Tenants, r.plan.RateSwing = stretch(s.clients, r.panes(), draw), 0
	}
	if s.surge {
		r.plan.Surges = []fleetsim.Surge{{From: r.from, To: r.to, Factor: surgeFactor}}
	}
	return r
}

// zipf are so many tenants in the order of their ranks.
func zipf(n int) []fleetsim.DrawnTenant {
	tenants := make([]fleetsim.DrawnTenant, n)
	var all float64
	for i := range tenants {
		all += 1 / float64(i+1)
	}
	for i := range tenants {
		requests := tenantReplicas * tenantRequests / float64(i+1) / all
		tenants[i] = fleetsim.DrawnTenant{Name: tenantName(i), Rates: []fleetsim.TenantRate{{Requests: requests, Dispersion: tenantDispersion}}}
	}
	return tenants
}

// tenantName is such that the order of names is that of ranks.
func tenantName(rank int) string { return fmt.Sprintf("tenant-%03d", rank+1) }

// stretch cuts some hours out of the rates of real clients, in the order of what
// they send in them, and thins them, or the opposite, to the requests that the
// fleet is made for. Thinning makes arrivals more like a Poisson process.
func stretch(clients []fleetsim.DrawnTenant, panes int, draw *rand.Rand) []fleetsim.DrawnTenant {
	steps := panes/fleetsim.RateStep + 1
	from := draw.IntN(len(clients[0].Rates) - steps + 1)
	tenants := make([]fleetsim.DrawnTenant, len(clients))
	sent := func(t *fleetsim.DrawnTenant) (requests float64) {
		for _, r := range t.Rates {
			requests += r.Requests
		}
		return requests
	}
	var all float64
	for i, c := range clients {
		tenants[i].Rates = slices.Clone(c.Rates[from : from+steps])
		all += sent(&tenants[i])
	}
	slices.SortStableFunc(tenants, func(x, y fleetsim.DrawnTenant) int {
		return cmp.Compare(sent(&y), sent(&x))
	})
	kept := tenantReplicas * tenantRequests * float64(steps) / all
	for i := range tenants {
		tenants[i].Name = tenantName(i)
		for k := range tenants[i].Rates {
			r := &tenants[i].Rates[k]
			r.Requests *= kept
			r.Dispersion = 1 + (r.Dispersion-1)*min(1, kept)
		}
	}
	return tenants
}
