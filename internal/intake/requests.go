// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/internal/tenant"
	"github.com/llmfleet/llmfleet/internal/window"
)

// RequestOptions are how requests are read from spans.
type RequestOptions struct {
	// Tenants and Tiers are attributes of a span, or else of its resource: the
	// first that says something counts. Without, the defaults are read.
	Tenants, Tiers []string
	// Name is what a tenant is called, as tenant.Namer has it. It is called with
	// a borrowed text.
	Name func(raw string) string
	// Classes are the spans that count; without, DefaultRequestClasses.
	Classes []RequestClass
	// Attributes are other names for what a span says, by RequestFields: they
	// stand in for the usual ones. Times are in seconds.
	Attributes map[string][]string
	// IncludesCached says of sources whether their input tokens include those
	// that were found in a cache. A source is an instrumentation scope, a
	// service.name, or a provider, in whatever case; the first of a span's that is
	// known counts.
	IncludesCached map[string]bool
	// Aliases are other names of models: of each the name that counts.
	Aliases map[string]string
}

// SpanFacts say which span told of a request, and when it ended.
type SpanFacts struct {
	TraceID pcommon.TraceID
	SpanID  pcommon.SpanID
	End     window.Instant
	Class   RequestClass
}

// Requests reads spans of requests. It is safe for concurrent use.
type Requests struct {
	name           func(string) string
	includesCached map[string]bool
	models         models
	wanted         [RequestClassCount]bool
	tally          *Tally
	read           [RequestClassCount]atomic.Uint64
	pages          sync.Pool // of *requestPage
}

// NewRequests makes a reader of requests. The options should be valid.
func NewRequests(o RequestOptions) *Requests {
	q := &Requests{
		name: o.Name, includesCached: o.includesCached(), models: newModels(o.Aliases), tally: newTally(),
	}
	classes := o.Classes
	if len(classes) == 0 {
		classes = DefaultRequestClasses()
	}
	for c := range RequestClassCount {
		q.wanted[c] = slices.Contains(classes, c)
	}
	x := o.index()
	q.pages.New = func() any {
		return &requestPage{requests: q, lookup: lookup{index: x}, variants: make(map[variantFacts]string)}
	}
	return q
}

// Tally is what was ignored so far.
func (q *Requests) Tally() *Tally { return q.tally }

// Observed is how many requests were read of a class.
func (q *Requests) Observed(c RequestClass) uint64 { return q.read[c].Load() }

// requestPage is the memory for reading spans.
type requestPage struct {
	requests *Requests
	lookup   lookup
	request  tenant.Request
	facts    SpanFacts
	variants map[variantFacts]string

	resource, span sheet
	service, scope string
	router         bool   // the scope is of llm-d's router
	instance       string // of the resource, for examples
	letters        letters
}

// Read calls each with the requests that spans tell of, in their order. What it
// is called with is borrowed until it returns.
func (q *Requests) Read(td ptrace.Traces, each func(r *tenant.Request, span *SpanFacts)) {
	p := q.pages.Get().(*requestPage)
	defer q.pages.Put(p)
	defer p.forget()
	resources := td.ResourceSpans()
	for i := range resources.Len() {
		p.open(resources.At(i).Resource().Attributes())
		scopes := resources.At(i).ScopeSpans()
		for j := range scopes.Len() {
			p.scope = scopes.At(j).Scope().Name()
			p.router = isRouter(p.scope)
			spans := scopes.At(j).Spans()
			for k := range spans.Len() {
				if p.read(spans.At(k)) {
					each(&p.request, &p.facts)
				}
			}
		}
	}
}

func (p *requestPage) open(resource pcommon.Map) {
	p.resource.read(resource, &p.lookup)
	p.instance, p.service = instanceOf(resource), ""
	if v, ok := resource.Get("service.name"); ok {
		p.service = textIn(v)
	}
}

// forget lets go of texts that are others'.
func (p *requestPage) forget() {
	p.lookup.forget()
	p.resource, p.span, p.request = sheet{}, sheet{}, tenant.Request{}
	p.service, p.scope, p.instance = "", "", ""
}

// read reads a span, and tells whether it is a request that counts.
func (p *requestPage) read(span ptrace.Span) bool {
	p.span.read(span.Attributes(), &p.lookup)
	class, ok := p.class(span)
	if !ok {
		return false
	}
	raw := p.text(fieldTenant)
	switch {
	case !p.requests.wanted[class]:
		p.ignore(OtherClass)
		return false
	case raw != "":
		p.request.Tenant = p.requests.name(raw)
	case class == EngineRequest: // the gateway tells of the same request, with its tenant
		p.ignore(NoTenant)
		return false
	default:
		p.request.Tenant = tenant.Unknown
	}
	if p.span.bad {
		p.ignore(BadUsage)
	}
	p.request.Tier = bounded(p.text(fieldTier))
	p.request.Model = bounded(p.model())
	p.request.Variant = p.variant()
	p.request.Outcome = p.outcome(span)
	p.usage()
	p.facts = SpanFacts{TraceID: span.TraceID(), SpanID: span.SpanID(), End: instant(span.EndTimestamp()), Class: class}
	p.requests.read[class].Add(1)
	return true
}

// ignore counts a span, or a part of it, that is not used. Its example is who sent
// it: its name may be anything that a client has sent.
func (p *requestPage) ignore(r Reason) {
	p.requests.tally.ignore(r, bounded(cmp.Or(p.scope, p.service)), bounded(p.instance))
}

// text is what the span says of a field, or else its resource.
func (p *requestPage) text(f field) string {
	if p.span.has(f) {
		return p.span.said[f].text
	}
	return p.resource.said[f].text
}

// model is the name of the model: as fleet_identity has stamped it; else as the
// response names it, for that is what an engine says of itself in its metrics,
// while the request may hold whatever a client has made up.
func (p *requestPage) model() string {
	for _, f := range [...]field{fieldServedModel, fieldModel} {
		if name := p.text(f); name != "" {
			return p.requests.models.canonical(name)
		}
	}
	return ""
}

// variantFacts are revision, engine's version and configuration.
type variantFacts [3]string

// maxVariants bounds the variants that a page remembers.
const maxVariants = 256

// variant is what served the request, in one text.
func (p *requestPage) variant() string {
	facts := variantFacts{p.text(fieldRevision), p.text(fieldEngineVersion), p.text(fieldConfigHash)}
	if facts == (variantFacts{}) {
		return ""
	}
	if text, ok := p.variants[facts]; ok {
		return text
	}
	var told []string
	for i, fact := range facts {
		facts[i] = strings.Clone(bounded(fact))
		if fact != "" {
			told = append(told, facts[i])
		}
	}
	text := bounded(strings.Join(told, " "))
	if len(p.variants) >= maxVariants {
		clear(p.variants)
	}
	p.variants[facts] = text
	return text
}
