// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"fmt"
	"io"
	"math"
)

// Usage is what one tenant sent in the newest pane: prompt tokens, none of them
// cached, and the tokens made for it.
func (d *TenantDrawing) Usage(tenant int) (prefill, output float64) {
	for _, w := range d.tenants[tenant].sent {
		prefill += w.prefill
		output += w.output
	}
	return prefill, output
}

// ITL is what all replicas observed in the newest pane: seconds between tokens,
// and how many.
func (d *TenantDrawing) ITL() (sum, count float64) {
	for i := range d.replicas {
		r := &d.replicas[i]
		sum += r.itl * r.work.output
		count += r.work.output
	}
	return sum, count
}

// Running is how many requests ran on all replicas in the newest pane, the mean
// of what the scrapes saw.
func (d *TenantDrawing) Running() float64 { return d.told }

// Contribution is by how many seconds the newest pane's mean inter-token latency
// is longer than it had been if the tenant had sent what was to be expected: as
// many requests beside those expected of the others as usual. What all do together
// is nobody's.
func (d *TenantDrawing) Contribution(tenant int) float64 {
	t := &d.tenants[tenant]
	expected := t.rate
	if t.usual < 1 {
		expected = t.usual / (1 - t.usual) * (d.going - t.rate)
	}
	expected /= float64(len(t.homes))
	var sum, count, sumWithout, countWithout float64
	for i := range d.replicas {
		r := &d.replicas[i]
		without, itl := r.work, r.itl
		for h, home := range t.homes {
			if home == i {
				without.add(&t.sent[h], -1)
				without.add(&d.expected, expected)
				itl, _ = d.plan.Decode.of(&without, math.Exp(r.offset+r.drift))
			}
		}
		sum += r.itl * r.work.output
		count += r.work.output
		sumWithout += itl * without.output
		countWithout += without.output
	}
	return sum/count - sumWithout/countWithout
}

// ReadTenants reads a ServeGen trace of the rates of real clients: each becomes
// a tenant, with a rate for every step of the trace.
func ReadTenants(file string) ([]DrawnTenant, error) { return fromFile(file, readClients) }

// readClients takes the dispersion of a renewal process's counts, which tends to
// the squared coefficient of variation of its gaps, for that of a step.
func readClients(text io.Reader) (tenants []DrawnTenant, err error) {
	rows, err := readCSV(text, "client", "t_s", "rate_rps", "cv", "pattern")
	if err != nil {
		return nil, err
	}
	places := map[string]int{}
	steps := 0
	for i, row := range rows {
		rate, err := parseClientRate(row)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i+2, err)
		}
		place, known := places[row[0]]
		if !known {
			place = len(tenants)
			places[row[0]] = place
			tenants = append(tenants, DrawnTenant{Name: row[0]})
		}
		t := &tenants[place]
		step := int(rate.from / serveGenStep)
		t.silentUntil(step + 1)
		t.Rates[step] = TenantRate{Requests: rate.rate * driftPeriod, Dispersion: max(1, rate.cv*rate.cv)}
		steps = max(steps, step+1)
	}
	for i := range tenants {
		tenants[i].silentUntil(steps)
	}
	return tenants, nil
}

// silentUntil lets the tenant send nothing in the steps that it has no rate for.
func (t *DrawnTenant) silentUntil(step int) {
	for len(t.Rates) < step {
		t.Rates = append(t.Rates, TenantRate{Dispersion: 1})
	}
}
