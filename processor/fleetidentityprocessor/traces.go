// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetidentityprocessor

import (
	"context"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/intake"
)

var _ processor.Traces = (*tracesProcessor)(nil)

// tracesProcessor stamps spans: an engine's with the engine, a gateway's with
// the engine that it chose.
type tracesProcessor struct {
	part
	next consumer.Traces
}

// ConsumeTraces stamps spans and passes them on.
func (p *tracesProcessor) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	resources := td.ResourceSpans()
	for i := range resources.Len() {
		rs := resources.At(i)
		attributes := rs.Resource().Attributes()
		own := p.clerk.Desk(attributes).Own()
		if own != nil {
			p.stampOwn(attributes, own)
		}
		scopes := rs.ScopeSpans()
		for j := range scopes.Len() {
			spans := scopes.At(j).Spans()
			for k := range spans.Len() {
				p.span(spans.At(k).Attributes(), own)
			}
		}
	}
	return p.next.ConsumeTraces(ctx, td)
}

// span stamps one span.
func (p *tracesProcessor) span(attributes pcommon.Map, own *fleet.Resident) {
	if own != nil {
		p.stampOwn(attributes, own)
		return
	}
	model := p.model(attributes)
	if address := firstText(attributes, p.config.EndpointAttributes); address != "" {
		if chosen := p.clerk.Endpoint(address); chosen != nil {
			if model == "" {
				model = chosen.Facts()[fleet.ModelName]
			}
			stamp(attributes, intake.StampsOn(attributes)|p.unasked, chosen, model)
			return
		}
	}
	if _, has := attributes.Get(fleet.ModelName.String()); model != "" && !has && !p.unasked.Has(intake.StampOf(fleet.ModelName)) {
		attributes.PutStr(fleet.ModelName.String(), model)
	}
}

// model is the engines' name of the model that a gateway was asked for; "" if
// no engine serves it, which is counted.
func (p *tracesProcessor) model(attributes pcommon.Map) string {
	asked := firstText(attributes, p.config.ModelAttributes)
	if asked == "" {
		return ""
	}
	model, served := p.clerk.Model(asked)
	if !served {
		p.clerk.Missed(intake.UnknownModel, asked)
		return ""
	}
	return model
}

// firstText is the first of some attributes that says something.
func firstText(attributes pcommon.Map, keys []string) string {
	for _, key := range keys {
		v, ok := attributes.Get(key)
		if !ok {
			continue
		}
		// A header is a list of its values.
		if v.Type() == pcommon.ValueTypeSlice && v.Slice().Len() > 0 {
			v = v.Slice().At(0)
		}
		if text := v.AsString(); text != "" {
			return text
		}
	}
	return ""
}
