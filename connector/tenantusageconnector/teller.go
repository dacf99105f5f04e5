// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantusageconnector

import (
	"context"

	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/connector/tenantusageconnector/internal/metadata"
	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/tenant"
	"github.com/llmfleet/llmfleet/internal/window"
)

// teller writes the books of models as metrics.
type teller struct {
	writer   *emit.Writer
	distinct emit.Slot
	tenants  accountSlots
	tiers    accountSlots
	bounds   []float64
	written  []pmetric.Metrics
	labels   [2]fleet.Label
}

// accountSlots are the series of one account.
type accountSlots struct {
	tokens   [tenant.TokenTypeCount]emit.Slot
	requests [tenant.OutcomeCount]emit.Slot
	known    [tenant.TokenTypeCount]emit.Slot
	ttft     emit.Slot
}

func newTeller(c *Config, set connector.Settings) *teller {
	t := &teller{bounds: c.TTFT.Bounds}
	t.writer = emit.NewWriter(emit.Options{
		Component: componentType,
		Switches:  c.Metrics,
		ScopeName: metadata.ScopeName,
		Version:   set.BuildInfo.Version,
		Instance:  emit.Instance(set.ID),
		Next: func(_ context.Context, md pmetric.Metrics) error {
			t.written = append(t.written, md)
			return nil
		},
	})
	t.distinct = t.writer.Slot(emit.Tenants)
	t.tenants = newAccountSlots(t.writer, emit.TenantTokens, emit.TenantRequests, emit.TenantUsageKnown, emit.TenantTTFT)
	t.tiers = newAccountSlots(t.writer, emit.TierTokens, emit.TierRequests, emit.TierUsageKnown, emit.TierTTFT)
	return t
}

func newAccountSlots(w *emit.Writer, tokens, requests, known, ttft string) accountSlots {
	s := accountSlots{ttft: w.Slot(ttft)}
	for i := range tenant.TokenTypeCount {
		label := fleet.Label{Name: emit.AttributeTokenType, Value: i.String()}
		s.tokens[i], s.known[i] = w.Slot(tokens, label), w.Slot(known, label)
	}
	for i := range tenant.OutcomeCount {
		s.requests[i] = w.Slot(requests, fleet.Label{Name: emit.AttributeOutcome, Value: i.String()})
	}
	return s
}

func (t *teller) begin(at window.Instant) { t.writer.Begin(at) }

// tell writes the books of one model.
func (t *teller) tell(ctx context.Context, b *tenant.Books) {
	t.labels[0] = fleet.Label{Name: emit.AttributeModelName, Value: b.Model}
	t.writer.About(ctx, t.labels[:1])
	t.writer.Set(t.distinct, b.Distinct)
	for i := range b.Tenants {
		t.account(ctx, emit.AttributeTenant, &b.Tenants[i], &t.tenants)
	}
	for i := range b.Tiers {
		t.account(ctx, emit.AttributeTier, &b.Tiers[i], &t.tiers)
	}
}

func (t *teller) account(ctx context.Context, attribute string, a *tenant.Account, s *accountSlots) {
	t.labels[1] = fleet.Label{Name: attribute, Value: a.Name}
	t.writer.AboutSince(ctx, t.labels[:], a.Since)
	for i, n := range a.Tokens {
		t.writer.Set(s.tokens[i], float64(n))
		t.writer.Set(s.known[i], a.KnownRatio[i])
	}
	for i, n := range a.Requests {
		t.writer.Set(s.requests[i], float64(n))
	}
	t.writer.SetDistribution(s.ttft, t.distribution(&a.TTFT))
}

func (t *teller) distribution(d *tenant.Durations) *emit.Distribution {
	told := &emit.Distribution{Count: d.Count, Sum: d.Sum, Counts: d.Counts}
	if e := d.Exponential; e != nil {
		told.Exponential = &window.Exponential{
			Scale: e.Scale, First: e.First, Buckets: len(d.Counts) - 2, ZeroThreshold: e.ZeroThreshold, Unit: 1,
		}
	} else {
		told.Bounds = t.bounds
	}
	return told
}

// end returns everything that was written since the beginning.
func (t *teller) end(ctx context.Context) (written []pmetric.Metrics) {
	_ = t.writer.End(ctx) // nothing is refused here
	written, t.written = t.written, nil
	return written
}
