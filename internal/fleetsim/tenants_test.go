// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sent draws a number of requests of a one-fleet scenario, and tells who sends
// them.
func sent(t *testing.T, scenario string, requests int) ([]arrival, *roster) {
	t.Helper()
	s, err := Parse([]byte(scenario))
	require.NoError(t, err)
	source, r, err := newArrivals(&s.Fleets[0], s.Faults, s.Seed)
	require.NoError(t, err)
	var all []arrival
	for range requests {
		a, more := source.next()
		require.True(t, more)
		all = append(all, a)
	}
	return all, r
}

// sharesOf are the shares of the requests by tenant.
func sharesOf(all []arrival, r *roster) map[string]float64 {
	shares := map[string]float64{}
	for _, a := range all {
		shares[r.name(a.tenant)] += 1 / float64(len(all))
	}
	return shares
}

// withTenants is a fleet whose requests have senders.
func withTenants(tenants string) string {
	return "fleets: [{name: f, engine: vllm, model_name: m, arrivals: {rate: 50}, tenants: {" + tenants + "}}]\n"
}

func TestTenantsSendByZipfsLaw(t *testing.T) {
	for _, c := range []struct {
		tenants string
		want    map[string]float64
	}{
		// The weights 1, 1/2, 1/3 and 1/4 sum to 25/12.
		{"count: 4", map[string]float64{"tenant-1": 12. / 25, "tenant-2": 6. / 25, "tenant-3": 4. / 25, "tenant-4": 3. / 25}},
		// The weights 1 and 1/4 sum to 5/4.
		{"count: 2, zipf: 2", map[string]float64{"tenant-1": .8, "tenant-2": .2}},
		{"count: 4, zipf: 0", map[string]float64{"tenant-1": .25, "tenant-2": .25, "tenant-3": .25, "tenant-4": .25}},
		{"count: 2, named: [{name: acme, share: 0.1}, {name: b, share: 0.3}]", map[string]float64{"acme": .1, "b": .3, "tenant-1": .4, "tenant-2": .2}},
		{"named: [{name: acme, share: 0.25}]", map[string]float64{"acme": .25, "": .75}},
	} {
		all, r := sent(t, withTenants(c.tenants), 40_000)
		got := sharesOf(all, r)
		assert.Len(t, got, len(c.want), c.tenants)
		for name, share := range c.want {
			assert.InDelta(t, share, got[name], .01, "%s of %s: four standard deviations of 40,000 draws", name, c.tenants)
		}
	}
}

func TestWhoSendsChangesNothingElse(t *testing.T) {
	nobody, _ := sent(t, withTenants(""), 1000)
	somebody, _ := sent(t, withTenants("count: 10, named: [{name: acme, share: 0.5, prompt_tokens: {mean: 4000, cv: 0}}]"), 1000)
	own := 0
	for i := range nobody {
		assert.Zero(t, nobody[i].tenant)
		want := nobody[i]
		if want.tenant = somebody[i].tenant; want.tenant == 1 {
			want.prompt = 4000
			own++
		}
		assert.Equal(t, want, somebody[i])
	}
	assert.InDelta(t, 500, own, 65)
}

func TestTiersRepeatOverAllTenants(t *testing.T) {
	_, r := sent(t, withTenants("count: 3, tiers: [gold, standard], named: [{name: a, share: 0.1}, {name: b, share: 0.1, tier: trial}]"), 1)
	var tiers []string
	for n := range 6 {
		tiers = append(tiers, r.name(n)+" "+r.tier(n))
		assert.Equal(t, n, r.number(r.name(n)))
	}
	assert.Equal(t, []string{" ", "a gold", "b trial", "tenant-1 gold", "tenant-2 standard", "tenant-3 gold"}, tiers)
	for _, stranger := range []string{"tenant-4", "tenant-0", "tenant-x", "c"} {
		assert.Zero(t, r.number(stranger), stranger)
	}
}

// Two clients: one sends 20 a second in the first ten minutes, the other 5 a
// second in the next.
func TestClientsOfServeGenAreTenants(t *testing.T) {
	file := traceFile(t, "rates.csv", "client,t_s,rate_rps,cv,pattern\n7,0,20,0.5,Gamma\nb,600,5,0.5,Weibull\n")
	scenario := "fleets: [{engine: vllm, model_name: m, arrivals: {process: trace, format: servegen, file: " + file + "}, tenants: {tiers: [gold, trial]}}]"
	s, err := Parse([]byte(scenario))
	require.NoError(t, err)
	source, r, err := newArrivals(&s.Fleets[0], nil, 1)
	require.NoError(t, err)
	sum := 0
	for a, more := source.next(); more; a, more = source.next() {
		assert.Equal(t, a.at < 600, r.name(a.tenant) == "client-7")
		sum++
	}
	assert.Equal(t, "trial", r.tier(r.number("client-b")))
	assert.InDelta(t, .8, r.shares()[0], .02)
	assert.InDelta(t, 1, r.shares()[0]+r.shares()[1], 1e-9)
	assert.InEpsilon(t, 15_000, sum, .03)
}

func TestRateLimitLetsASecondsRequestsThroughAtOnce(t *testing.T) {
	limit := rateLimit{gap: .25}
	var through []float64
	for _, at := range []float64{0, 0, 0, 0, 0, .1, .25, .3, 5, 5, 5, 5, 5} {
		if limit.allows(at) {
			through = append(through, at)
		}
	}
	assert.Equal(t, []float64{0, 0, 0, 0, .25, 5, 5, 5, 5}, through)
	slow := rateLimit{gap: 4}
	assert.Equal(t, []bool{true, false, false, true}, []bool{slow.allows(0), slow.allows(1), slow.allows(3.9), slow.allows(4)})
}

func TestTenantMistakesSayWhatToWrite(t *testing.T) {
	for _, c := range []struct{ tenants, want string }{
		{"count: -1", "fleets[0].tenants.count: is -1: write 0 to 1000000"},
		{"count: 1000001", "tenants.count: is 1000001"},
		{"count: 2, zipf: -1", "tenants.zipf: is -1: write 0 or more"},
		{"count: 2, zipf: .inf", "tenants.zipf: is infinite"},
		{"count: 2, tiers: [gold, '']", "tenants.tiers: holds an empty word"},
		{"named: [{share: 0.1}]", `tenants.named[0].name: is ""`},
		{"named: [{name: a}]", "tenants.named[0].share: is 0"},
		{"named: [{name: a, share: 1.1}]", "have shares of 1.1 in all: write at most 1"},
		{"count: 1, named: [{name: a, share: 1}]", "less if count says that there are others"},
		{"named: [{name: a, share: 0.1}, {name: a, share: 0.1}]", `tenants.named[1].name: is "a"`},
		{"named: [{name: tenant-1, share: 0.1}]", "does not begin with tenant-"},
		{"named: [{name: a, share: 0.1, rate_limit: -1}]", "rate_limit: is -1"},
		{"named: [{name: a, share: 0.1, prompt_tokens: {mean: -5}}]", "named[0].prompt_tokens.mean: is -5"},
		{"named: [{name: a, share: 0.1, prompt_tokens: {tiers: [gold]}}]", "there is no such key"},
	} {
		_, err := Parse([]byte(withTenants(c.tenants)))
		require.ErrorContains(t, err, c.want, c.tenants)
	}
	_, err := Parse([]byte(strings.Replace(withTenants("count: 2"), "rate: 50", "process: trace, format: servegen, file: f", 1)))
	require.ErrorContains(t, err, "whose clients are the tenants: leave them out")
}

func TestAScenarioIsNotChangedByPlayingIt(t *testing.T) {
	named := []Tenant{{Name: "a", Share: .5, Prompt: Tokens{Mean: 100}}}
	_, err := New(Scenario{Fleets: []Fleet{{Name: "f", Engine: VLLM, ModelName: "m", Arrivals: Arrivals{Rate: 1}, Tenants: Tenants{Named: named}}}}, start)
	require.NoError(t, err)
	assert.Nil(t, named[0].Prompt.CV)
}
