// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantshareprocessor

import (
	"context"
	"slices"

	"go.opentelemetry.io/collector/consumer"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/judge/share"
	"github.com/llmfleet/llmfleet/internal/tenant"
	"github.com/llmfleet/llmfleet/internal/window"
	"github.com/llmfleet/llmfleet/processor/tenantshareprocessor/internal/metadata"
)

// reason is why a figure is not given. The first reasons are the judgement's.
type reason uint8

// The reasons that are no share.Withheld.
const (
	noCaches    = reason(share.WithheldCount) + iota // the source does not tell which prompt tokens were cached
	unreliable                                       // two processes answer under one name
	noRequests                                       // no requests, or nothing is told of those that were turned away
	noEngines                                        // no engine serves the model
	fleetLimit                                       // there are as many fleets as may be
	reasonCount                                      // how many reasons there are; not a reason
)

var reasonNames = [...]string{
	noCaches: "no_caches", unreliable: "unreliable", noRequests: "no_requests", noEngines: "no_engines", fleetLimit: "limit",
}

// String is the reason's name as it stands in self-telemetry.
func (r reason) String() string {
	if r < reason(share.WithheldCount) {
		return share.Withheld(r).String()
	}
	return reasonNames[r]
}

// directions are what shares are told of.
var directions = []struct {
	name string
	of   func(tokens) float64
}{
	{"input", func(t tokens) float64 { return t.input }},
	{"input_uncached", tokens.uncached},
	{"output", func(t tokens) float64 { return t.output }},
}

const inputUncached = 1 // in directions

// reportWriter writes what is found as metrics.
type reportWriter struct {
	writer   *emit.Writer
	shares   []emit.Slot // by directions
	usual    emit.Slot
	excess   emit.Slot
	noisy    emit.Slot
	score    emit.Slot
	duration emit.Slot

	throttled, budget       emit.Slot
	itl, usualITL, fairness emit.Slot
	at                      window.Instant
	labels                  []fleet.Label
	withheld                [reasonCount]uint64 // figures so far
}

func newReportWriter(c *Config, version, instance string, next consumer.Metrics) *reportWriter {
	w := emit.NewWriter(emit.Options{
		Component: componentType,
		Switches:  c.Metrics,
		ScopeName: metadata.ScopeName,
		Version:   version,
		Instance:  instance,
		Next:      next.ConsumeMetrics,
	})
	r := &reportWriter{
		writer: w,
		usual:  w.Slot(emit.TenantUsualShare), excess: w.Slot(emit.TenantITLExcess),
		noisy: w.Slot(emit.TenantNoisy), score: w.Slot(emit.TenantNoisyScore), duration: w.Slot(emit.TenantNoisyDuration),
		throttled: w.Slot(emit.TenantThrottledRatio), budget: w.Slot(emit.TenantBudgetUsed),
		itl: w.Slot(emit.FleetITL), usualITL: w.Slot(emit.FleetUsualITL), fairness: w.Slot(emit.FleetFairness),
	}
	for _, d := range directions {
		r.shares = append(r.shares, w.Slot(emit.TenantTokenShare, fleet.Label{Name: emit.AttributeDirection, Value: d.name}))
	}
	return r
}

func (w *reportWriter) begin(at window.Instant) {
	w.at = at
	w.writer.Begin(at)
}

func (w *reportWriter) end(ctx context.Context) error { return w.writer.End(ctx) }

// writeFleet writes what is told of a fleet as a whole.
func (w *reportWriter) writeFleet(ctx context.Context, keys []fleet.Label, r *share.Report, a *account) {
	w.writer.About(ctx, keys)
	w.set(w.itl, r.ITL)
	w.set(w.usualITL, r.UsualITL)
	var told []float64
	if a != nil && !a.unreliable {
		for i := range a.tenants {
			if u := &a.tenants[i]; u.window.all() > 0 && !tenant.Reserved(u.name) {
				told = append(told, u.window.all())
			}
		}
	}
	if len(told) == 0 {
		w.withhold(w.fairness, reason(share.NoTokens))
		return
	}
	w.writer.Set(w.fairness, share.Fairness(told))
}

// writeTenants writes what is told of tenants: of those that are named each, of
// all others together their shares.
func (w *reportWriter) writeTenants(ctx context.Context, keys []fleet.Label, a *account, verdicts map[string]share.Verdict, named []int) {
	total, _ := a.total()
	uncached := 0.0
	for i := range a.tenants {
		uncached += a.tenants[i].window.uncached()
	}
	totals := []float64{total.input, uncached, total.output}
	rest := make([]float64, len(directions))
	usual := share.Figure{}
	for i := range a.tenants {
		u := &a.tenants[i]
		v, heard := verdicts[u.name]
		if slices.Contains(named, i) {
			w.about(ctx, keys, u.name)
			for d, direction := range directions {
				w.share(d, direction.of(u.window), totals[d], a)
			}
			w.writeRequests(u)
			w.writeVerdict(&v, heard)
			continue
		}
		for d, direction := range directions {
			rest[d] += direction.of(u.window)
		}
		if heard && v.UsualShare.Withheld != share.Given {
			usual.Withheld = v.UsualShare.Withheld
		}
		usual.Value += v.UsualShare.Value
	}
	w.about(ctx, keys, tenant.Other)
	for d := range directions {
		w.share(d, rest[d], totals[d], a)
	}
	if len(verdicts) > 0 {
		w.set(w.usual, usual)
	}
}

func (w *reportWriter) about(ctx context.Context, keys []fleet.Label, name string) {
	w.labels = append(append(w.labels[:0], keys...), fleet.Label{Name: emit.AttributeTenant, Value: name})
	w.writer.About(ctx, w.labels)
}

// share writes one share of the tokens.
func (w *reportWriter) share(direction int, of, total float64, a *account) {
	slot := w.shares[direction]
	switch {
	case a.unreliable:
		w.withhold(slot, unreliable)
	case direction == inputUncached && !a.cached:
		w.withhold(slot, noCaches)
	case total == 0:
		w.withhold(slot, reason(share.NoTokens))
	default:
		w.writer.Set(slot, of/total)
	}
}

func (w *reportWriter) writeRequests(u *usage) {
	if u.throttled < 0 || u.finished <= 0 {
		w.withhold(w.throttled, noRequests)
		return
	}
	w.writer.Set(w.throttled, min(1, u.throttled/u.finished))
}

// writeVerdict writes what is said of a tenant. Of one that was not heard nothing
// is.
func (w *reportWriter) writeVerdict(v *share.Verdict, heard bool) {
	if !heard {
		return
	}
	w.set(w.usual, v.UsualShare)
	w.set(w.excess, v.Excess)
	w.set(w.score, v.Score)
	if v.Excess.Withheld != share.Given && !v.Noisy {
		w.withhold(w.noisy, reason(v.Excess.Withheld))
		w.withhold(w.duration, reason(v.Excess.Withheld))
		return
	}
	since := w.at
	if v.Noisy {
		since = v.Since
	}
	w.writer.Set(w.noisy, flag(v.Noisy))
	w.writer.Set(w.duration, w.at.Sub(since).Seconds())
}

// set writes a figure, or counts why not.
func (w *reportWriter) set(s emit.Slot, f share.Figure) {
	if f.Withheld != share.Given {
		w.withhold(s, reason(f.Withheld))
		return
	}
	w.writer.Set(s, f.Value)
}

func (w *reportWriter) withhold(s emit.Slot, why reason) {
	if s != emit.None {
		w.withheld[why]++
	}
}
