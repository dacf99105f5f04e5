// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"bytes"
	"compress/gzip"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sharedFleet is eight replicas on which fifty tenants send a hundred requests
// a pane each.
func sharedFleet() DrawnTenants {
	plan := DrawnTenants{
		Name: "shared", Replicas: 8, Homes: 3, Scrapes: 4, Prompt: DrawnTokens{1000, 1}, Output: DrawnTokens{200, 0.5},
		Decode: DecodeTime{Base: 8e-3, PerRunning: 120e-6, PerSquare: 1e-7, PerContext: 30e-9, PerPrefill: 1e-6, MaxRunning: 256},
	}
	for i := range 50 {
		plan.Tenants = append(plan.Tenants, DrawnTenant{Name: string(rune('a' + i)), Rates: []TenantRate{{100, 1}}})
	}
	return plan
}

func drawTenants(t *testing.T, plan DrawnTenants) *TenantDrawing {
	t.Helper()
	d, err := DrawTenants(plan, 3)
	require.NoError(t, err)
	return d
}

func TestDecodeTimeSolvesItsEquation(t *testing.T) {
	d := DecodeTime{Base: 0.01, PerRunning: 1e-4, PerSquare: 1e-6, PerContext: 1e-8, PerPrefill: 1e-6, MaxRunning: 100}
	w := work{prefill: 60 * 5000, output: 60 * 1000, attended: 60 * 1e6}
	itl, running := d.of(&w, 1.1)
	assert.InDelta(t, 1000*itl, running, 1e-9, "Little's law")
	right := 1.1*(0.01+1e-4*running+1e-6*running*running+1e-8*itl*1e6) + 1e-6*5000
	assert.InEpsilon(t, right, itl, 1e-12)

	idle, nobody := d.of(new(work), 2)
	assert.Equal(t, 0.02, idle)
	assert.Zero(t, nobody)
}

func TestAFullBatchMakesRequestsWait(t *testing.T) {
	d := DecodeTime{Base: 0.01, PerRunning: 1e-3, PerContext: 1e-8, MaxRunning: 100}
	w := work{output: 60 * 5000, attended: 60 * 5000 * 1000} // each request in the batch adds 5 to those that come
	itl, running := d.of(&w, 1)
	assert.Equal(t, 100.0, running)
	assert.InEpsilon(t, 0.01+0.1+1e-8*100*1000, itl, 1e-12)
}

func TestTenantsSendAtTheirRates(t *testing.T) {
	plan := sharedFleet()
	plan.Tenants[0].Rates = []TenantRate{{200, 1}, {50, 1}}
	plan.Tenants[1].Rates[0].Dispersion = 4
	plan.Surges = []Surge{{From: 300, To: 400, Factor: 2}}
	d := drawTenants(t, plan)
	mean := func(panes int) (prefill, output, square [50]float64) {
		for range panes {
			d.Next()
			for i := range 50 {
				p, o := d.Usage(i)
				prefill[i] += p / float64(panes)
				output[i] += o / float64(panes)
				square[i] += o * o / float64(panes)
			}
		}
		return prefill, output, square
	}
	prefill, _, _ := mean(RateStep)
	assert.InEpsilon(t, 200_000, prefill[0], 5*math.Sqrt(2.0/2000), "variance of a sum of n lengths over its squared mean: (1+cv²)/n")
	prefill, output, square := mean(300 - RateStep)
	assert.InEpsilon(t, 50_000, prefill[0], 0.05)
	assert.InEpsilon(t, 100_000, prefill[2], 0.05)
	assert.InEpsilon(t, 20_000, output[2], 0.03)
	variance := func(i int) float64 { return square[i] - output[i]*output[i] }
	assert.InEpsilon(t, 100*200*200*(1+0.25), variance(2), 0.5, "Poisson sum of lengths")
	assert.InEpsilon(t, 100*200*200*(4+0.25), variance(1), 0.5, "dispersed sum of lengths")
	prefill, _, _ = mean(100)
	assert.InEpsilon(t, 200_000, prefill[2], 0.05, "in the surge")
}

func TestATenantStaysWithItsReplicas(t *testing.T) {
	plan := sharedFleet()
	plan.Tenants = plan.Tenants[:1]
	d := drawTenants(t, plan)
	used := map[int]bool{}
	for range 20 {
		d.Next()
		for i := range d.replicas {
			if d.replicas[i].work.output > 0 {
				used[i] = true
			}
		}
	}
	assert.Len(t, used, 3)
}

func TestScrapesSeeTheBatch(t *testing.T) {
	d := drawTenants(t, sharedFleet())
	var told, is float64
	for range 200 {
		d.Next()
		sum, _ := d.ITL()
		is += sum / 60 // Little's law: each token keeps its request in the batch for so long
		told += d.Running()
	}
	assert.InEpsilon(t, is, told, 0.02)
}

// The burst's share is what the same fleet would not have had without it.
func TestContributionIsWhatABurstAdds(t *testing.T) {
	plan := sharedFleet()
	calm := drawTenants(t, plan)
	plan.Bursts = []Burst{{Tenant: 7, From: 20, To: 60, Prefill: 3e6, Length: 4}}
	d := drawTenants(t, plan)
	var added, told, others float64
	for pane := range 60 {
		calm.Next()
		d.Next()
		if pane < 20 {
			assert.Equal(t, calm.replicas, d.replicas, "before the burst nothing differs")
			continue
		}
		is, n := d.ITL()
		was, m := calm.ITL()
		added += is/n - was/m
		told += d.Contribution(7)
		others += math.Abs(d.Contribution(8))
	}
	assert.InEpsilon(t, added, told, 0.05)
	assert.Less(t, others, told/20)
}

func TestNobodyIsTheCauseOfASurge(t *testing.T) {
	plan := sharedFleet()
	plan.Surges = []Surge{{From: 20, To: 60, Factor: 2}}
	d := drawTenants(t, plan)
	var before, after float64
	var made [50]float64
	for pane := range 60 {
		d.Next()
		sum, count := d.ITL()
		if pane < 20 {
			before += sum / count / 20
			continue
		}
		after += sum / count / 40
		for i := range made {
			made[i] += d.Contribution(i) / 40
		}
	}
	assert.Greater(t, after, 1.3*before)
	for i := range made {
		assert.InDelta(t, 0, made[i], 0.005*after)
	}
}

func TestPlansOfTenantsThatMakeNoSenseAreRefused(t *testing.T) {
	for want, edit := range map[string]func(*DrawnTenants){
		"it needs some of each": func(p *DrawnTenants) { p.Homes = 9 },
		"dispersions not below": func(p *DrawnTenants) { p.Tenants[1].Rates = []TenantRate{{1, 0.5}} },
		"needs rates":           func(p *DrawnTenants) { p.Tenants[1].Rates = nil },
		"needs a tenant":        func(p *DrawnTenants) { p.Bursts = []Burst{{Tenant: 50, Length: 1}} },
	} {
		plan := sharedFleet()
		edit(&plan)
		_, err := DrawTenants(plan, 1)
		assert.ErrorContains(t, err, want)
	}
}

func TestRealClientsBecomeTenants(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte("client,t_s,rate_rps,cv,pattern\n5,1200,0.5,2,Gamma\n6,0,1,0.5,Weibull\n"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	file := filepath.Join(t.TempDir(), "rates.csv.gz")
	require.NoError(t, os.WriteFile(file, packed.Bytes(), 0o600))
	tenants, err := ReadTenants(file)
	require.NoError(t, err)
	assert.Equal(t, []DrawnTenant{
		{Name: "5", Rates: []TenantRate{{0, 1}, {0, 1}, {30, 4}}},
		{Name: "6", Rates: []TenantRate{{60, 1}, {0, 1}, {0, 1}}},
	}, tenants)

	_, err = ReadTenants(filepath.Join(t.TempDir(), "none"))
	assert.ErrorContains(t, err, "open trace")
}
