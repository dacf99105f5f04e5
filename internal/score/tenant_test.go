// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/judge/share"
	"github.com/llmfleet/llmfleet/internal/tenant"
)

func TestCorrelationIsPearsons(t *testing.T) {
	var c correlation
	// Anscombe's first set (1973): r = 0.81642, t of its slope 4.241.
	xs := []float64{10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5}
	ys := []float64{8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68}
	for i := range xs {
		c.add(xs[i], ys[i], 1)
	}
	assert.InDelta(t, 0.81642, c.coefficient(), 1e-5)
	assert.InDelta(t, 4.241, c.t(), 1e-3)
	assert.Zero(t, new(correlation).coefficient())
}

func TestAPaneHalfALifeAgoCountsHalf(t *testing.T) {
	var decayed, weighed correlation
	half := [][2]float64{{1, 2}, {2, 1}, {4, 5}}
	whole := [][2]float64{{3, 3}, {5, 4}}
	for _, v := range half {
		decayed.add(v[0], v[1], 1)
		weighed.add(v[0], v[1], 1)
	}
	for i, v := range whole {
		decayed.add(v[0], v[1], []float64{0.5, 1}[i])
		weighed.add(v[0], v[1], 1)
		weighed.add(v[0], v[1], 1)
	}
	assert.InDelta(t, weighed.coefficient(), decayed.coefficient(), 1e-12)
	assert.InDelta(t, 3.5*3.5/2.75, decayed.weight*decayed.weight/decayed.squares, 1e-12)
}

// pairTeller tells apart two tenants.
func pairTeller(tokens [2]float64, itl float64) (*teller, *share.Pane) {
	p := share.Pane{ITLSum: itl, ITLCount: 1, Tenants: []share.Usage{{Name: tenantName(0), Uncached: tokens[0]}, {Name: tenantName(1), Uncached: tokens[1]}}}
	return &teller{ranks: 2, told: p}, &p
}

func TestCorrelationsNameTheHighestAndAccuseWhoStaysAboveTheLimit(t *testing.T) {
	says := verdict{accused: make([]bool, 2)}
	tokens, shares := newCorrelations(tokenCorrelation, 2), newCorrelations(shareCorrelation, 2)
	for pane := range 40 {
		x := float64(pane % 7)
		teller, p := pairTeller([2]float64{100 + x, 100 - x}, 1+x/10)
		tokens.judge(p, teller, &says)
		assert.Equal(t, 0, says.named, "the one whose tokens follow")
		if pane == 4 {
			assert.True(t, says.accused[0], "from the third to the fifth the line is exact")
		}
		shares.judge(p, teller, &says)
	}
	assert.Equal(t, []bool{true, false}, says.accused)

	tokens, shares = newCorrelations(tokenCorrelation, 2), newCorrelations(shareCorrelation, 2)
	for pane := range 40 {
		x := 1 + float64(pane%7)
		teller, p := pairTeller([2]float64{100 * x, 200 * x}, x)
		tokens.judge(p, teller, &says)
		assert.Equal(t, pane > 3, says.accused[1] && says.accused[0], "a surge accuses everyone, pane %d", pane)
		shares.judge(p, teller, &says)
		assert.Equal(t, []bool{false, false}, says.accused, "shares stand still")
	}
}

func TestTellersAreLateAndPutTogether(t *testing.T) {
	plan := (&story{}).plan(0, tuningSeed).plan
	draw := func() *fleetsim.TenantDrawing {
		d, err := fleetsim.DrawTenants(plan, tuningSeed)
		require.NoError(t, err)
		return d
	}
	prompt := newTeller(&story{}, draw(), tenantCount)
	tokens := newTeller(&story{tokensLate: true}, draw(), tenantCount)
	engines := newTeller(&story{enginesLate: true}, draw(), tenantCount)
	named := newTeller(&story{apart: 20}, draw(), tenantCount)
	var before share.Pane
	for i := range 5 {
		now := *prompt.next()
		now.Tenants = append([]share.Usage(nil), now.Tenants...)
		late, slow, few := tokens.next(), engines.next(), named.next()
		assert.Equal(t, storiesBegin.Add(time.Duration(i+1)*time.Minute), now.End)
		if i > 0 {
			assert.Equal(t, before.Tenants, late.Tenants)
			assert.Equal(t, now.ITLSum, late.ITLSum)
			assert.Equal(t, now.Tenants, slow.Tenants)
			assert.Equal(t, before.ITLSum, slow.ITLSum)
			assert.Equal(t, before.Running, slow.Running)
		}
		var all, together float64
		for _, u := range now.Tenants {
			all += u.Uncached
		}
		for _, u := range few.Tenants {
			together += u.Uncached
		}
		assert.Equal(t, all, together)
		assert.Equal(t, all, now.Prompt)
		require.Len(t, few.Tenants, 21)
		assert.Equal(t, tenant.Other, few.Tenants[0].Name)
		assert.Equal(t, now.Tenants[:20], few.Tenants[1:])
		before = now
	}
	assert.Equal(t, nobody, named.rank(0))
	assert.Equal(t, 19, named.rank(20))
	assert.Equal(t, 0, prompt.rank(0))
}

func TestTheSameRunOfTwoStoriesDiffersByTheStory(t *testing.T) {
	burst := (&story{burst: true}).plan(5, 1)
	surge := (&story{surge: true}).plan(5, 1)
	assert.Equal(t, burst.burst.Tenant, surge.burst.Tenant)
	assert.Equal(t, burst.from, surge.from)
	assert.Equal(t, burst.from, burst.burst.From)
	assert.Equal(t, surge.from+hourPanes, surge.burst.From, "the control comes when the hour is over")
	assert.Equal(t, []fleetsim.Surge{{From: surge.from, To: surge.to, Factor: 2}}, surge.plan.Surges)
	ranks := map[int]bool{}
	for n := range uint64(400) {
		r := (&story{burst: true}).plan(n, 1)
		ranks[r.burst.Tenant+1] = true
		assert.GreaterOrEqual(t, r.to-r.from, 15)
		assert.LessOrEqual(t, r.to-r.from, 30)
	}
	assert.Len(t, ranks, 18)
	assert.False(t, ranks[2] || ranks[21])
}

func TestAStretchOfRealClientsIsThinned(t *testing.T) {
	rates := func(perStep float64) (all []fleetsim.TenantRate) {
		for range 40 {
			all = append(all, fleetsim.TenantRate{Requests: perStep, Dispersion: 5})
		}
		return all
	}
	clients := []fleetsim.DrawnTenant{{Name: "few", Rates: rates(960)}, {Name: "many", Rates: rates(2880)}}
	got := stretch(clients, 100, rand.New(rand.NewPCG(1, 1)))
	require.Len(t, got, 2)
	require.Len(t, got[0].Rates, 11)
	assert.Equal(t, "tenant-001", got[0].Name)
	assert.Equal(t, fleetsim.TenantRate{Requests: 720, Dispersion: 2}, got[0].Rates[0], "a quarter of 2880; of the dispersion beyond 1 as well")
	assert.Equal(t, fleetsim.TenantRate{Requests: 240, Dispersion: 2}, got[1].Rates[10])
	assert.Equal(t, 2880.0, clients[1].Rates[0].Requests, "the clients stay")
}

func TestABurstIsNamed(t *testing.T) {
	s := toldStory{story: story{name: "test", burst: true}, runs: 4}
	runs, err := s.play(tuningSeed)
	require.NoError(t, err)
	for _, o := range runs {
		assert.Equal(t, o.culprit, o.largest)
		assert.Equal(t, o.culprit, o.named[judgement])
		assert.InDelta(t, 5, o.delay, 5)
		assert.Greater(t, o.excess, 0.1)
	}
	again, err := s.play(tuningSeed)
	require.NoError(t, err)
	assert.Equal(t, runs, again)
}

func TestFiguresOfTenants(t *testing.T) {
	never := math.Inf(1)
	runs := []*storyOutcome{
		{culprit: 3, largest: 3, named: [tenantRuleCount]int{3, 1, nobody}, delay: 2, clear: 4, onset: -1, said: 0.5, excess: 0.4},
		{culprit: 4, largest: 4, named: [tenantRuleCount]int{nobody, 4, 4}, delay: never, clear: 1},
		{culprit: 5, largest: 5, named: [tenantRuleCount]int{6, 5, 5}, delay: 4, clear: 2, onset: 2, said: 0.3, excess: 0.6, bystanders: map[int]bool{6: true}},
		{culprit: 6, largest: 7, named: [tenantRuleCount]int{7, 6, 6}, delay: 6, clear: 3, onset: 0, said: 0.4, excess: 0.4},
	}
	runs[0].story[judgement] = []accusation{{1, 130, 0.2}}
	runs[1].story[judgement] = []accusation{{1, 130, 0.2}, {2, 131, 0.01}}
	runs[2].quiet[judgement] = []accusation{{2, 70, 0}}
	for _, c := range []struct {
		take func([]*storyOutcome, tenantRule) (float64, string, string)
		rule tenantRule
		want float64
		note string
	}{
		{culpritTop1, judgement, 1.0 / 3, "1 of 3, nobody is named in 1 and another in 1; without 1 in which another made the fleet slower"},
		{culpritTop1, shareCorrelation, 2.0 / 3, "2 of 3, nobody is named in 0 and another in 1; without 1 in which another made the fleet slower"},
		{accusedInStory, judgement, 0.5, "in 2 of 4 hours somebody is accused; of 3 accusations 1 are of those who made the fleet slower by less than 0.05"},
		{untrueInStory, judgement, 0.25, "in 2 of 4 hours somebody is accused; of 3 accusations 1 are of those who made the fleet slower by less than 0.05"},
		{accusedInQuiet, judgement, 0.25, "in 1 of 4 hours somebody is accused; of 1 accusations 1 are of those who made the fleet slower by less than 0.05"},
		{accusedInQuiet, shareCorrelation, 0, "in 0 of 4 hours somebody is accused"},
		{foundRuns, judgement, 0.75, "3 of 4"},
		{delayMedian, judgement, 5, "90 % of 4 within 6"},
		{clearMedian, judgement, 3, "90 % of 3 within 3"},
		{onsetError, judgement, 1, "90 % of 3 lie -1 to 0 late, median 0"},
		{excessError, judgement, 0.1, "said 0.4, true 0.4, medians of 3"},
		{bystanders, judgement, 0.25, "1 of 4 bursts"},
	} {
		value, _, note := c.take(runs, c.rule)
		assert.InDelta(t, c.want, value, 1e-12, c.note)
		assert.Equal(t, c.note, note)
	}
}

func TestABookkeeperSeesWhatIsLost(t *testing.T) {
	c, b := newCrowd(true, tuningSeed), new(bookkeeper)
	l := tenant.NewLedger(tenant.LedgerOptions{Top: 5, Track: 64, HalfLife: ledgerHalfLife, TTL: ledgerTTL, MaxModels: 4, MaxTiers: 4}, storiesBegin)
	b.close(l, c.next(l), c.counted)
	assert.Zero(t, b.wrong)

	end := c.next(l)
	c.counted["model"].tokens[tenant.Output] += 7
	c.counted["model"].requests[tenant.Failed]--
	c.counted["another"].ttft++
	delete(c.counted, "")
	b.close(l, end, c.counted)
	assert.Greater(t, b.wrong, 0.0)

	before := b.wrong
	b.close(l, end.Add(pane), map[string]*ledgerTotals{"unheard of": {}})
	assert.Equal(t, before+1, b.wrong)
}

func TestALedgerOfVeryManyTenantsKeepsItsBooks(t *testing.T) {
	lines := ledgerLines(8, tuningSeed)
	require.Len(t, lines, 2)
	assert.Zero(t, lines[0].Value)
	assert.Contains(t, lines[0].Note, "0 series after the silence")
}
