// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantusageconnector

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/internal/tenant"
	"github.com/llmfleet/llmfleet/internal/window"
)

// Names of events.
const (
	eventUsage   = "llmfleet.tenant.usage"
	eventRequest = "llmfleet.tenant.request"
)

// Attributes of events. Figures are called as the metrics that count them; the
// type of tokens and the outcome are part of the name.
const (
	attributeWindowStart  = "llmfleet.window.start"
	attributeWindowEnd    = "llmfleet.window.end"
	attributePartial      = "llmfleet.partial"
	attributeTokens       = emit.TenantTokens + "."
	attributeRequests     = emit.TenantRequests + "."
	attributeUsageKnown   = "llmfleet.tenant.usage_known."
	attributeTTFT         = emit.TenantTTFT
	attributeTTFTCount    = attributeTTFT + ".count"
	attributeTTFTSum      = attributeTTFT + ".sum"
	attributeTTFTBounds   = attributeTTFT + ".bounds"
	attributeTTFTCounts   = attributeTTFT + ".bucket_counts"
	attributeModels       = "llmfleet.tenant.models"
	attributeVariants     = "llmfleet.tenant.variants"
	attributeTiers        = "llmfleet.tenant.tiers"
	attributeModelVariant = "variant"
)

// window tells of a tenant in a window, or in a part of it.
func (p *post) window(r *tenant.Record) {
	of := ofWindow
	if r.Partial {
		of = ofPart
	}
	record := p.add(of, eventUsage, timestamp(r.To))
	record.Body().SetStr(windowSentence(r))
	into := record.Attributes()
	into.PutStr(emit.AttributeTenant, r.Tenant)
	into.PutStr(attributeWindowStart, clock(r.From))
	into.PutStr(attributeWindowEnd, clock(r.To))
	into.PutBool(attributePartial, r.Partial)
	for outcome, n := range r.Requests {
		putCount(into, attributeRequests+tenant.Outcome(outcome).String(), n)
	}
	for i, n := range r.Tokens {
		name := tenant.TokenType(i).String()
		if n > 0 || r.Known[i] > 0 {
			putCount(into, attributeTokens+name, n)
		}
		putCount(into, attributeUsageKnown+name, r.Known[i])
	}
	p.times(into, &r.TTFT)
	putTexts(into, attributeModels, r.Models)
	putTexts(into, attributeVariants, r.Variants)
	putTexts(into, attributeTiers, r.Tiers)
}

// times tells a histogram. Those of parts of a window, of windows and of tenants
// add up, bucket by bucket.
func (p *post) times(into pcommon.Map, d *tenant.Durations) {
	putCount(into, attributeTTFTCount, d.Count)
	if d.Count == 0 {
		return
	}
	into.PutDouble(attributeTTFTSum, d.Sum)
	bounds := into.PutEmptySlice(attributeTTFTBounds)
	for _, bound := range p.from.config.TTFT.Bounds {
		bounds.AppendEmpty().SetDouble(bound)
	}
	counts := into.PutEmptySlice(attributeTTFTCounts)
	for _, n := range d.Counts {
		counts.AppendEmpty().SetInt(int64(n)) //nolint:gosec // a count
	}
}

// each tells of each request of a batch.
func (p *post) each(b *batch) {
	for i := range b.requests {
		p.request(&b.requests[i], &b.spans[i])
	}
}

// credibleSkew is how far off a sender's clock may be: a store of logs refuses,
// or files where nobody looks, what says to be of another time.
const credibleSkew = 24 * time.Hour

// ended is when a span ended; when it came, if what it says of that cannot be.
func (p *post) ended(span *intake.SpanFacts) pcommon.Timestamp {
	if skew := timestamp(span.End).AsTime().Sub(p.observed.AsTime()); skew.Abs() > credibleSkew {
		return p.observed
	}
	return timestamp(span.End)
}

// request tells of one request.
func (p *post) request(r *tenant.Request, span *intake.SpanFacts) {
	record := p.add(ofRequest, eventRequest, p.ended(span))
	record.Body().SetStr(requestSentence(r))
	record.SetTraceID(span.TraceID)
	record.SetSpanID(span.SpanID)
	into := record.Attributes()
	for _, text := range [...]struct{ name, value string }{
		{emit.AttributeTenant, r.Tenant}, {emit.AttributeTier, r.Tier}, {emit.AttributeModelName, r.Model}, {attributeModelVariant, r.Variant},
	} {
		if text.value != "" {
			into.PutStr(text.name, text.value)
		}
	}
	into.PutStr(emit.AttributeOutcome, r.Outcome.String())
	for i, n := range r.Tokens {
		if r.Known[i] {
			putCount(into, attributeTokens+tenant.TokenType(i).String(), n)
		}
	}
	if r.TTFT >= 0 {
		into.PutDouble(attributeTTFT, r.TTFT)
	}
}

func putCount(into pcommon.Map, name string, n uint64) {
	into.PutInt(name, int64(n)) //nolint:gosec // far below 2^63
}

// putTexts tells a list, if there is something in it.
func putTexts(into pcommon.Map, name string, texts []string) {
	if len(texts) == 0 {
		return
	}
	list := into.PutEmptySlice(name)
	list.EnsureCapacity(len(texts))
	for _, text := range texts {
		list.AppendEmpty().SetStr(text)
	}
}

func timestamp(at window.Instant) pcommon.Timestamp {
	return pcommon.Timestamp(at) //nolint:gosec // since 1970
}

// clock is a time as people and stores of logs read it.
func clock(at window.Instant) string { return time.Unix(0, int64(at)).UTC().Format(time.RFC3339Nano) }
