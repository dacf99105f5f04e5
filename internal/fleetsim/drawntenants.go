// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
)

// DrawnTenants is a fleet that tenants share, without engines: what each sends
// is drawn pane by pane, and the time of a decoding step follows from it by
// DecodeTime. Whose tokens made the fleet slower, and by how much, is known.
//
// A tenant's requests of a pane are Poisson, or more dispersed, their lengths
// log-normal. Each goes to one of the few replicas that serve the tenant.
type DrawnTenants struct {
	// Name of the fleet: two of different names draw different numbers.
	Name string
	// Replicas is how many there are, and Homes how many of them serve one tenant.
	Replicas, Homes int
	Tenants         []DrawnTenant
	// Begin is the pane of the day in which it begins, and RateSwing by which
	// share of a tenant's rate load rises and falls with the day, below 1.
	Begin     int
	RateSwing float64
	// Prompt and Output are the tokens of a request.
	Prompt, Output DrawnTokens
	Decode         DecodeTime
	// PodNoise and DriftNoise are those of Latency.
	PodNoise, DriftNoise float64
	// Scrapes are how many times a pane the engines say how many requests run.
	Scrapes int
	Bursts  []Burst
	Surges  []Surge
}

// DrawnTenant is one tenant, and the rates at which it sends by turns of
// RateStep panes each. The last holds on.
type DrawnTenant struct {
	Name  string
	Rates []TenantRate
}

// RateStep is for how many panes one rate of a tenant holds.
const RateStep = serveGenStep / driftPeriod

// TenantRate is how many requests a tenant sends in a pane on average, and their
// variance over that mean: 1 is a Poisson process, which is the least.
type TenantRate struct{ Requests, Dispersion float64 }

func (t *DrawnTenant) rateAt(pane int) TenantRate { return t.Rates[min(pane/RateStep, len(t.Rates)-1)] }

// DrawnTokens are the mean and the coefficient of variation of a log-normal
// number of tokens.
type DrawnTokens struct{ Mean, CV float64 }

// Burst is a tenant that sends, in the panes from From to before To, requests
// with prompts Length times as long as all send, beside what it usually does:
// Prefill tokens a pane on average.
type Burst struct {
	Tenant, From, To int
	Prefill, Length  float64
}

// Surge is when all tenants send Factor times as many requests: in the panes
// from From to before To.
type Surge struct {
	From, To int
	Factor   float64
}

// TenantDrawing is such a fleet in motion. Not safe for concurrent use.
type TenantDrawing struct {
	plan     DrawnTenants
	pane     int // the next one
	tenants  []drawnSender
	replicas []drawnServer
	running  *rand.Rand
	told     float64 // running as scraped
	prompt   variate
	output   variate
	expected work    // of one request
	going    float64 // requests of all that the newest pane expects, without bursts
}

// drawnSender is one tenant and its newest pane.
type drawnSender struct {
	requests *rand.Rand
	homes    []int
	sent     []work // to each of its homes
	rate     float64
	usual    float64 // share of the requests of all
}

// drawnServer is one replica and its newest pane.
type drawnServer struct {
	drifts        *rand.Rand
	offset, drift float64 // log
	work          work
	itl           float64
}

// DrawTenants puts such a fleet into motion, before its first pane. Every
// tenant draws from a stream of its own, so what one sends changes nothing but
// what the replicas make of it.
func DrawTenants(plan DrawnTenants, seed uint64) (*TenantDrawing, error) {
	if err := plan.validate(); err != nil {
		return nil, err
	}
	d := &TenantDrawing{
		plan: plan, tenants: make([]drawnSender, len(plan.Tenants)), replicas: make([]drawnServer, plan.Replicas),
		running: stream(seed, plan.Name, "running"),
		prompt:  newVariate(ShapeLognormal, plan.Prompt.CV), output: newVariate(ShapeLognormal, plan.Output.CV),
	}
	d.expected = plan.meanRequest()
	for i := range d.tenants {
		name := plan.Name + "/" + plan.Tenants[i].Name
		d.tenants[i] = drawnSender{
			requests: stream(seed, name, "requests"), sent: make([]work, plan.Homes),
			homes: stream(seed, name, "homes").Perm(plan.Replicas)[:plan.Homes],
		}
	}
	for i := range d.replicas {
		name := fmt.Sprintf("%s-%d", plan.Name, i)
		r := &d.replicas[i]
		r.drifts = stream(seed, name, "drift")
		r.offset = plan.PodNoise * stream(seed, name, "offset").NormFloat64()
		r.drift = plan.DriftNoise * r.drifts.NormFloat64()
	}
	return d, nil
}

func (p *DrawnTenants) validate() error {
	var errs mistakes
	if p.Replicas < 1 || p.Homes < 1 || p.Homes > p.Replicas || p.Scrapes < 1 {
		errs.add(p.Name, "has %d replicas, %d for each tenant, and %d scrapes: it needs some of each", p.Replicas, p.Homes, p.Scrapes)
	}
	for i, t := range p.Tenants {
		sends := len(t.Rates) > 0
		for _, r := range t.Rates {
			sends = sends && r.Requests >= 0 && r.Dispersion >= 1
		}
		if !sends {
			errs.add(fmt.Sprintf("%s.tenants[%d]", p.Name, i), "needs rates that are not below 0, and dispersions not below 1")
		}
	}
	for i, b := range p.Bursts {
		if b.Tenant < 0 || b.Tenant >= len(p.Tenants) || !(b.Length > 0) {
			errs.add(fmt.Sprintf("%s.bursts[%d]", p.Name, i), "needs a tenant of the fleet and a length above 0")
		}
	}
	return errors.Join(errs...)
}

// meanRequest is the work that a request is on average; its output and prompt
// are independent.
func (p *DrawnTenants) meanRequest() work {
	prompt, output := p.Prompt.Mean, p.Output.Mean
	return work{prompt, output, output * (prompt + output*(1+p.Output.CV*p.Output.CV)/2)}
}

// Next draws the next pane of all tenants, and how long the replicas' steps take.
func (d *TenantDrawing) Next() {
	for i := range d.replicas {
		r := &d.replicas[i]
		if d.pane > 0 {
			r.drift = driftMemory*r.drift + d.plan.DriftNoise*math.Sqrt(1-driftMemory*driftMemory)*r.drifts.NormFloat64()
		}
		r.work = work{}
	}
	d.setRates()
	for i := range d.tenants {
		d.send(i)
	}
	d.told = 0
	for i := range d.replicas {
		r := &d.replicas[i]
		var batch float64
		r.itl, batch = d.plan.Decode.of(&r.work, math.Exp(r.offset+r.drift))
		d.told += float64(poisson(d.running, batch*float64(d.plan.Scrapes))) / float64(d.plan.Scrapes)
	}
	d.pane++
}

// setRates sets how many requests are to be expected from each tenant in this
// pane, and which share of all it usually sends: the mean up to this pane, in
// which a pane of half an hour ago counts half.
func (d *TenantDrawing) setRates() {
	const halfLife = 30 // panes
	renewal := 1 - math.Exp2(-1.0/halfLife)
	if d.pane == 0 {
		renewal = 1
	}
	factor := 1 + d.plan.RateSwing*math.Sin(2*math.Pi*float64(d.plan.Begin+d.pane)/float64(panesADay))
	for _, s := range d.plan.Surges {
		if s.From <= d.pane && d.pane < s.To {
			factor *= s.Factor
		}
	}
	d.going = 0
	for i := range d.tenants {
		d.tenants[i].rate = factor * d.plan.Tenants[i].rateAt(d.pane).Requests
		d.going += d.tenants[i].rate
	}
	for i := range d.tenants {
		t := &d.tenants[i]
		if d.going > 0 {
			t.usual += renewal * (t.rate/d.going - t.usual)
		}
	}
}

// send draws what one tenant sends in this pane.
func (d *TenantDrawing) send(tenant int) {
	t := &d.tenants[tenant]
	clear(t.sent)
	mean := t.rate
	if excess := d.plan.Tenants[tenant].rateAt(d.pane).Dispersion - 1; excess > 0 && mean > 0 {
		mean = excess * gamma(t.requests, mean/excess) // negative binomial
	}
	d.sendRequests(t, mean, 1)
	for _, b := range d.plan.Bursts {
		if b.Tenant == tenant && b.From <= d.pane && d.pane < b.To {
			d.sendRequests(t, b.Prefill/(d.plan.Prompt.Mean*b.Length), b.Length)
		}
	}
	for h, home := range t.homes {
		d.replicas[home].work.add(&t.sent[h], 1)
	}
}

// sendRequests draws a Poisson number of requests, their lengths and where they
// go.
func (d *TenantDrawing) sendRequests(t *drawnSender, mean, length float64) {
	for range poisson(t.requests, mean) {
		prompt := max(1, math.Round(d.plan.Prompt.Mean*length*d.prompt.draw(t.requests)))
		output := max(1, math.Round(d.plan.Output.Mean*d.output.draw(t.requests)))
		t.sent[t.requests.IntN(len(t.homes))].add(&work{prompt, output, output * (prompt + output/2)}, 1)
	}
}
