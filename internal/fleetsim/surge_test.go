// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// until draws the requests of a one-fleet scenario up to a time in seconds.
func until(t *testing.T, scenario string, end float64) []arrival {
	t.Helper()
	s, err := Parse([]byte(scenario))
	require.NoError(t, err)
	source, _, err := newArrivals(&s.Fleets[0], s.Faults, s.Seed)
	require.NoError(t, err)
	var all []arrival
	for a, more := source.next(); more && a.at < end; a, more = source.next() {
		all = append(all, a)
	}
	return all
}

const twoTenants = "named: [{name: a, share: 0.2}, {name: b, share: 0.8}]"

func TestASurgeAddsToOneTenantAlone(t *testing.T) {
	calm := until(t, withTenants(twoTenants), 1500)
	loud := until(t, withTenants(twoTenants)+"faults: [{kind: surge, tenant: a, factor: 2.5, prompt_factor: 3, from: 500s, to: 1000s}]", 1500)
	part := func(all []arrival, tenant int, from, to float64) (requests int, tokens float64) {
		for _, a := range all {
			if a.tenant == tenant && a.at >= from && a.at < to {
				requests++
				tokens += float64(a.prompt)
			}
		}
		return requests, tokens
	}
	for _, span := range [][2]float64{{0, 500}, {1010, 1500}} { // what is added comes within ten seconds
		was, _ := part(calm, 1, span[0], span[1])
		is, _ := part(loud, 1, span[0], span[1])
		assert.Equal(t, was, is)
	}
	others := func(all []arrival) (b []arrival) {
		for _, a := range all {
			if a.tenant == 2 {
				b = append(b, a)
			}
		}
		return b
	}
	assert.Equal(t, others(calm), others(loud), "the other sends what it would")
	was, tokensWere := part(calm, 1, 500, 1000)
	is, tokensAre := part(loud, 1, 500, 1010)
	after, tokensAfter := part(calm, 1, 1000, 1010)
	assert.InEpsilon(t, 2.5, float64(is-after)/float64(was), .02)
	assert.InEpsilon(t, 7.5, (tokensAre-tokensAfter)/tokensWere, .03)
	for i := 1; i < len(loud); i++ {
		assert.LessOrEqual(t, loud[i-1].at, loud[i].at)
	}
}

// A Poisson process with another one on top stays one: its counts vary as much
// as they are.
func TestASurgeOfEveryoneIsNoBurst(t *testing.T) {
	all := until(t, withTenants("")+"faults: [{kind: surge, factor: 2, from: 10s}]", 2020)
	counts := make([]float64, 2000)
	for _, a := range all {
		if at := int(a.at) - 20; at >= 0 {
			counts[at]++
		}
	}
	mean, sd := moments(counts)
	assert.InEpsilon(t, 100, mean, .02)
	assert.InEpsilon(t, 1, sd*sd/mean, .15)
}

func TestASurgeMayAlsoTakeAway(t *testing.T) {
	all := until(t, withTenants(twoTenants)+"faults: [{kind: surge, tenant: b, factor: 0.5}]", 1000)
	own := 0
	for _, a := range all {
		if a.tenant == 2 {
			own++
		}
	}
	assert.InDelta(t, 20_000, own, 4*math.Sqrt(20_000), "of 40 a second")
}

func TestRequestsAreCountedWithWhatASurgeAdds(t *testing.T) {
	s, err := Parse([]byte("fleets: [{engine: vllm, model_name: m, arrivals: {rate: 50, requests: 300}}]\nfaults: [{kind: surge, factor: 3}]"))
	require.NoError(t, err)
	source, _, err := newArrivals(&s.Fleets[0], s.Faults, 1)
	require.NoError(t, err)
	n := 0
	for _, more := source.next(); more; _, more = source.next() {
		n++
	}
	assert.Equal(t, 300, n)
}

func TestSurgeMistakesSayWhatToWrite(t *testing.T) {
	for fault, want := range map[string]string{
		"{kind: surge}":                                    "faults[0]: has factor 1 and prompt_factor 1: write how many times",
		"{kind: surge, factor: -2}":                        "has factor -2",
		"{kind: surge, prompt_factor: .inf}":               "prompt_factor +Inf",
		"{kind: surge, factor: 2, tenant: c}":              `faults[0].tenant: is "c": write one of the tenants of fleet f`,
		"{kind: surge, factor: 2, replicas: [0]}":          "leave out replicas, pick and node",
		"{kind: surge, factor: 2, pick: 1}":                "leave out replicas, pick and node",
		"{kind: surge, factor: 2, fleet: g}":               `faults[0].fleet: is "g"`,
		"{kind: surge, factor: 2, tenant: a, mode: close}": "faults[0].mode: is only read",
	} {
		_, err := Parse([]byte(withTenants(twoTenants) + "faults: [" + fault + "]"))
		require.ErrorContains(t, err, want, fault)
	}
	file := traceFile(t, "rates.csv", "client,t_s,rate_rps,cv,pattern\n7,0,20,0.5,Gamma\n")
	s, err := Parse([]byte("fleets: [{engine: vllm, model_name: m, arrivals: {process: trace, format: servegen, file: " + file + "}}]\nfaults: [{kind: surge, factor: 2, tenant: client-8}]"))
	require.NoError(t, err)
	_, err = New(s, start)
	require.ErrorContains(t, err, `faults[0].tenant: is "client-8", who sends nothing`)
}

func TestTheAnswerKeyHasWhoAndHowMuch(t *testing.T) {
	sim := simulate(t, withTenants("count: 3, named: [{name: a, share: 0.25, prompt_tokens: {mean: 1024}}]")+
		"faults: [{kind: surge, tenant: a, factor: 4, from: 60s, to: 90s}, {kind: surge, factor: 2}]")
	key := sim.AnswerKey()
	require.Len(t, key, 2)
	assert.Equal(t, KeyFault{Time: start.UTC(), Fleet: "f", Kind: TrafficSurge, Factor: 2, PromptFactor: 1}, key[0])
	until := start.Add(90 * time.Second).UTC()
	assert.Equal(t, KeyFault{
		Time: start.Add(time.Minute).UTC(), Fleet: "f", Kind: TrafficSurge, Tenant: "a", Factor: 4, PromptFactor: 1, Until: &until,
		ShareBefore: .4, ShareDuring: 8. / 11, // 1/4 of twice the length, beside 3/4: 2 of 5; then 8 of 11
	}, key[1])
}
