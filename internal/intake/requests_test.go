// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/internal/tenant"
)

// told are attributes by their names.
type told = map[string]any

// spanShape is a span as somebody sends it.
type spanShape struct {
	scope      string
	name       string
	kind       ptrace.SpanKind
	status     ptrace.StatusCode
	message    string // of the status
	exception  string // the type of one that an event tells
	resource   told
	attributes told
}

// spansOf are spans of one trace, each of a resource of its own.
func spansOf(tb testing.TB, shapes ...spanShape) ptrace.Traces {
	tb.Helper()
	td := ptrace.NewTraces()
	for i, shape := range shapes {
		rs := td.ResourceSpans().AppendEmpty()
		require.NoError(tb, rs.Resource().Attributes().FromRaw(shape.resource))
		ss := rs.ScopeSpans().AppendEmpty()
		ss.Scope().SetName(shape.scope)
		span := ss.Spans().AppendEmpty()
		span.SetTraceID(pcommon.TraceID{1})
		span.SetSpanID(pcommon.SpanID{byte(i + 1)})
		span.SetName(shape.name)
		span.SetKind(shape.kind)
		span.SetEndTimestamp(pcommon.Timestamp(noon.Add(time.Duration(i) * time.Second)))
		span.Status().SetCode(shape.status)
		span.Status().SetMessage(shape.message)
		require.NoError(tb, span.Attributes().FromRaw(shape.attributes))
		if shape.exception != "" {
			event := span.Events().AppendEmpty()
			event.SetName("exception")
			event.Attributes().PutStr("exception.type", shape.exception)
		}
	}
	return td
}

// requestsIn reads requests and keeps them, and the spans that told of them.
func requestsIn(q *Requests, td ptrace.Traces) (all []tenant.Request, facts []SpanFacts) {
	q.Read(td, func(r *tenant.Request, span *SpanFacts) {
		all, facts = append(all, *r), append(facts, *span)
	})
	return all, facts
}

// plain are options under which tenants go by what the span calls them.
func plain() RequestOptions {
	return RequestOptions{Name: func(raw string) string { return raw }}
}

// took is what a request took: uncached and cached input and output, -1 for
// what is not told.
func took(uncached, cached, output int64) (tokens [tenant.TokenTypeCount]uint64, known [tenant.TokenTypeCount]bool) {
	for t, n := range map[tenant.TokenType]int64{tenant.InputUncached: uncached, tenant.InputCached: cached, tenant.Output: output} {
		if n >= 0 {
			tokens[t], known[t] = uint64(n), true
		}
	}
	return tokens, known
}

// expected is a request that ended well, from what a test says of it.
func expected(name, model string, uncached, cached, output int64, ttft float64) tenant.Request {
	r := tenant.Request{Tenant: name, Model: model, TTFT: ttft}
	r.Tokens, r.Known = took(uncached, cached, output)
	return r
}

// failing is a request that ended in another way.
func failing(r tenant.Request, outcome tenant.Outcome) tenant.Request {
	r.Outcome = outcome
	return r
}

const untold = -1

func TestRequestsOfAllSources(t *testing.T) {
	for _, source := range sources() {
		t.Run(source.name, func(t *testing.T) {
			o := plain()
			o.Classes = source.classes
			got, _ := requestsIn(NewRequests(o), spansOf(t, source.spans...))
			assert.Equal(t, source.requests, got)
		})
	}
}

// TestSpanFacts: a request's event can name its span and when it ended.
func TestSpanFacts(t *testing.T) {
	_, facts := requestsIn(NewRequests(plain()), spansOf(t,
		spanShape{name: "GET /health", kind: ptrace.SpanKindServer},
		spanShape{kind: ptrace.SpanKindServer, attributes: told{"gen_ai.request.model": "m"}},
		spanShape{attributes: told{"tenant.id": "a", "gen_ai.latency.e2e": 1.5}},
	))
	trace := pcommon.TraceID{1}
	assert.Equal(t, []SpanFacts{
		{TraceID: trace, SpanID: pcommon.SpanID{2}, End: noon.Add(time.Second), Class: GatewayRequest},
		{TraceID: trace, SpanID: pcommon.SpanID{3}, End: noon.Add(2 * time.Second), Class: EngineRequest},
	}, facts)
}

// TestNothingIsCarriedOver from one span to the next, nor to another resource.
func TestNothingIsCarriedOver(t *testing.T) {
	q := NewRequests(plain())
	first := expected("a", "m", 200, 800, 50, 0.5)
	first.Tier, first.Variant, first.Outcome = "gold", "v1", tenant.Failed
	all, _ := requestsIn(q, spansOf(t,
		spanShape{status: failed, resource: told{"engine_version": "v1", "tenant.id": "a"}, attributes: told{
			"gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 1000, "gen_ai.usage.cached_tokens": 800, "gen_ai.usage.output_tokens": 50,
			"gen_ai.response.time_to_first_chunk": 0.5, "tier": "gold",
		}},
		spanShape{attributes: told{"gen_ai.usage.output_tokens": 5}},
		spanShape{kind: server, attributes: told{"gen_ai.request.model": "n"}},
	))
	assert.Equal(t, []tenant.Request{
		first, expected(tenant.Unknown, "", untold, untold, 5, untold), expected(tenant.Unknown, "n", untold, untold, untold, untold),
	}, all)
}

// TestRequestsOnlyOfClasses: who has spans of both a gateway and of engines that
// name tenants reads those of one.
func TestRequestsOnlyOfClasses(t *testing.T) {
	spans := spansOf(t,
		spanShape{kind: ptrace.SpanKindServer, attributes: told{"tenant.id": "a", "gen_ai.request.model": "m"}},
		spanShape{kind: ptrace.SpanKindServer, attributes: told{"tenant.id": "a", "gen_ai.latency.e2e": 1.5}},
		spanShape{kind: ptrace.SpanKindServer, scope: "llm-d-router/pkg/epp/handlers", name: "gateway.request", attributes: told{"llm_d.epp.fairness.id": "a"}},
	)
	for c := range RequestClassCount {
		o := plain()
		o.Classes = []RequestClass{c}
		q := NewRequests(o)
		_, facts := requestsIn(q, spans)
		require.Len(t, facts, 1, c)
		assert.Equal(t, c, facts[0].Class)
		assert.EqualValues(t, 1, q.Observed(c))
		assert.EqualValues(t, 2, q.Tally().Ignored(OtherClass))

		named, ok := RequestClassOf(c.String())
		assert.True(t, ok)
		assert.Equal(t, c, named)
	}
	_, ok := RequestClassOf("client")
	assert.False(t, ok)
}

// TestEngineRequestWithoutTenant: the gateway tells of the same one.
func TestEngineRequestWithoutTenant(t *testing.T) {
	q := NewRequests(plain())
	all, _ := requestsIn(q, spansOf(t, spanShape{
		scope: "vllm", name: "llm_request", kind: ptrace.SpanKindServer, resource: told{"service.instance.id": "10.0.0.1:8000"},
		attributes: told{"gen_ai.latency.e2e": 1.5, "gen_ai.usage.prompt_tokens": 10},
	}))
	assert.Empty(t, all)
	assert.EqualValues(t, 1, q.Tally().Ignored(NoTenant))
	assert.Equal(t, &Example{Metric: "vllm", Replica: "10.0.0.1:8000"}, q.Tally().TakeExample(NoTenant))
}

// TestExamplesNameNoSpan: what a client may have put into its name is in no
// example, nor anything else that could not be a label.
func TestExamplesNameNoSpan(t *testing.T) {
	long := strings.Repeat("x", maxText+1)
	for _, c := range []struct {
		scope    string
		resource told
		want     Example
	}{
		{"gateway", told{"service.name": "edge"}, Example{Metric: "gateway"}},
		{"", told{"service.name": "edge", "service.instance.id": "edge-1"}, Example{Metric: "edge", Replica: "edge-1"}},
		{"", nil, Example{}},
		{"a\nb", told{"service.instance.id": long}, Example{Metric: tenant.Invalid, Replica: tenant.Invalid}},
		{long, told{"service.instance.id": "sk-abc"}, Example{Metric: tenant.Invalid, Replica: tenant.Invalid}},
	} {
		q := NewRequests(plain())
		requestsIn(q, spansOf(t, spanShape{
			scope: c.scope, name: "chat sk-abc", kind: server, resource: c.resource, attributes: withModel(told{"gen_ai.usage.input_tokens": -1}),
		}))
		assert.Equal(t, &c.want, q.Tally().TakeExample(BadUsage))
	}
}

// TestOperationsInAnyCase: what is no call of a model is none, however it is
// written.
func TestOperationsInAnyCase(t *testing.T) {
	for operation := range notOfAModel {
		for _, spelled := range []string{operation, strings.ToUpper(operation), strings.ToUpper(operation[:1]) + operation[1:]} {
			all, _ := requestsIn(NewRequests(plain()), spansOf(t, spanShape{
				attributes: withModel(told{"gen_ai.operation.name": spelled, "gen_ai.usage.input_tokens": 10}),
			}))
			assert.Empty(t, all, spelled)
		}
	}
}

// TestTenantAndTier are read from a span before its resource, by names in their
// order; a header is a list.
func TestTenantAndTier(t *testing.T) {
	read := func(o RequestOptions, resource, attributes told) (name, tier string) {
		attributes["gen_ai.request.model"] = "m"
		all, _ := requestsIn(NewRequests(o), spansOf(t, spanShape{kind: ptrace.SpanKindServer, resource: resource, attributes: attributes}))
		require.Len(t, all, 1)
		return all[0].Tenant, all[0].Tier
	}
	for _, c := range []struct {
		name                 string
		resource, attributes told
		tenant, tier         string
	}{
		{"nobody", nil, told{}, tenant.Unknown, ""},
		{"the first name that says something", nil, told{"user.id": "u", "enduser.id": "", "tenant.id": "t", "tier": "gold"}, "t", "gold"},
		{"a span before its resource", told{"tenant.id": "r", "tier": "free"}, told{"user.id": "u"}, "u", "free"},
		{"else its resource", told{"tenant.id": "r"}, told{}, "r", ""},
		{"a header", nil, told{"http.request.header.x-tenant-id": []any{"h", "i"}}, "h", ""},
		{"a number", nil, told{"user.id": int64(4711)}, "4711", ""},
		{"no text", nil, told{"tenant.id": true, "enduser.id": 1.5, "user.id": []any{}, "fairness_id": told{"a": "b"}}, tenant.Unknown, ""},
		{"a tier that looks like a credential", nil, told{"tier": "Bearer abc"}, tenant.Unknown, tenant.Invalid},
		{"an unprintable tier", nil, told{"tier": "a\nb"}, tenant.Unknown, tenant.Invalid},
	} {
		name, tier := read(plain(), c.resource, c.attributes)
		assert.Equal(t, c.tenant, name, c.name)
		assert.Equal(t, c.tier, tier, c.name)
	}

	o := plain()
	o.Tenants, o.Tiers = []string{"customer", "user.id"}, []string{"plan"}
	name, tier := read(o, nil, told{"tenant.id": "t", "user.id": "u", "tier": "gold", "plan": "pro"})
	assert.Equal(t, "u", name)
	assert.Equal(t, "pro", tier)
}

// TestModelAndVariant: what fleet_identity stamped goes before what a response
// says, and that before what a client asked for.
func TestModelAndVariant(t *testing.T) {
	o := plain()
	o.Aliases = map[string]string{"qwen": "qwen3-32b"}
	q := NewRequests(o)
	long := strings.Repeat("m", maxText)
	for _, c := range []struct {
		resource, attributes told
		model, variant       string
	}{
		{nil, told{"gen_ai.request.model": "asked", "gen_ai.response.model": "served"}, "served", ""},
		{nil, told{"gen_ai.request.model": "asked", "gen_ai.response.model": ""}, "asked", ""},
		{told{"model_name": "stamped"}, told{"gen_ai.response.model": "served"}, "stamped", ""},
		{nil, told{"gen_ai.request.model": "qwen"}, "qwen3-32b", ""},
		{nil, told{"gen_ai.request.model": long}, long, ""},
		{nil, told{"gen_ai.request.model": long + "m"}, tenant.Invalid, ""},
		{nil, told{"gen_ai.request.model": "modèle"}, "modèle", ""},
		{nil, told{"gen_ai.request.model": "\xff"}, tenant.Invalid, ""},
		{nil, told{"gen_ai.request.model": "a\u202eb"}, tenant.Invalid, ""},
		{nil, told{"gen_ai.request.model": "sk-abc"}, tenant.Invalid, ""},
		{nil, told{"gen_ai.request.model": "m", "engine_version": "key=sk-abc", "config_hash": "c"}, "m", tenant.Invalid},
		{nil, told{"gen_ai.request.model": tenant.Other}, tenant.Invalid, ""},
		{
			told{"engine_version": "0.11.0", "config_hash": "3fa9c"},
			told{"gen_ai.request.model": "m", "model_revision": "main"},
			"m", "main 0.11.0 3fa9c",
		},
		{nil, told{"gen_ai.request.model": "m", "engine_version": long + "v"}, "m", tenant.Invalid},
		{nil, told{"gen_ai.request.model": "m", "engine_version": long, "config_hash": "c"}, "m", tenant.Invalid},
		{told{"engine_version": "0.11.0"}, told{"gen_ai.request.model": "m", "engine_version": "0.12.0"}, "m", "0.12.0"},
	} {
		all, _ := requestsIn(q, spansOf(t, spanShape{kind: ptrace.SpanKindServer, resource: c.resource, attributes: c.attributes}))
		require.Len(t, all, 1)
		assert.Equal(t, c.model, all[0].Model)
		assert.Equal(t, c.variant, all[0].Variant)
	}
}

// TestOtherAttributes: a gateway that calls everything by names of its own.
func TestOtherAttributes(t *testing.T) {
	o := plain()
	o.Tenants = []string{"acme.customer"}
	o.Attributes = map[string][]string{
		"input_tokens": {"acme.in"}, "output_tokens": {"acme.out"}, "cached_tokens": {"acme.hit"},
		"time_to_first_token": {"acme.first"}, "model": {"acme.model"}, "status_code": {"acme.code"},
	}
	require.NoError(t, o.Validate())
	q := NewRequests(o)
	all, _ := requestsIn(q, spansOf(t, spanShape{attributes: told{
		"acme.customer": "a", "acme.in": 1000, "acme.hit": 800, "acme.out": 50, "acme.first": 0.25, "acme.model": "m",
		"gen_ai.usage.input_tokens": 7, "http.response.status_code": 500,
	}}))
	assert.Equal(t, []tenant.Request{expected("a", "m", 200, 800, 50, 0.25)}, all)

	for _, wrong := range []map[string][]string{{"tenant": {"a"}}, {"inputs": {"a"}}, {"model": nil}} {
		o.Attributes = wrong
		assert.Error(t, o.Validate(), wrong)
	}
	o.Attributes, o.Tiers = nil, make([]string, maxNamesOfField+1)
	require.Error(t, o.Validate())
}
