// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// RequestClass is who tells of a request.
type RequestClass uint8

// The classes. A request goes through several of them, and each may tell of it:
// to count it once, one class is read of those that know the tenant.
const (
	// GatewayRequest is told by a gateway: Envoy AI Gateway, LiteLLM, Kong, or
	// any other that follows the semantic conventions or OpenInference.
	GatewayRequest RequestClass = iota
	// RouterRequest is told by llm-d's endpoint picker, which stands between a
	// gateway and the engines, and does not tell tokens.
	RouterRequest
	// EngineRequest is told by vLLM or SGLang.
	EngineRequest
	RequestClassCount // how many classes there are; not a class
)

var requestClasses = [RequestClassCount]string{GatewayRequest: "gateway", RouterRequest: "router", EngineRequest: "engine"}

// String is the class's name in settings and in self-telemetry.
func (c RequestClass) String() string { return requestClasses[c] }

// RequestClassOf finds a class by its name.
func RequestClassOf(name string) (c RequestClass, ok bool) {
	i := slices.Index(requestClasses[:], name)
	return RequestClass(max(0, i)), i >= 0 //nolint:gosec // an index of the table
}

// DefaultRequestClasses are gateways and engines: of engines only those spans
// count that name a tenant, which they do where no gateway does.
func DefaultRequestClasses() []RequestClass { return []RequestClass{GatewayRequest, EngineRequest} }

// Scopes of llm-d's router, and what it calls the one span of a request's. What
// looks into bodies before it calls its own the same.
var routerScopes = []string{"llm-d-router", "llm-d-inference-scheduler", "gateway-api-inference-extension"}

const (
	routerSpan = "gateway.request"
	bodyScope  = "/bbr/"
)

func isRouter(scope string) bool {
	return slices.ContainsFunc(routerScopes, func(prefix string) bool { return strings.HasPrefix(scope, prefix) })
}

// class tells whether a span is a request, and whose word it is.
//
// An engine's span has a latency as only engines know it. A gateway's span tells
// tokens or a time to first token; or it names a model and either the operation
// or, by being a server's or a client's, that somebody called for it. Spans of
// the same trace that are around or inside of it do none of that: the server's
// span over a LiteLLM call has only HTTP's attributes, the raw request under it
// only the provider's. What is larger or other than one call of a model (an
// agent's run, whose usage is the sum of its calls, or a tool's) says so in its
// operation. A trace may hold many requests, so that its id tells nothing.
func (p *requestPage) class(span ptrace.Span) (RequestClass, bool) {
	s := &p.span
	serves := span.Kind() == ptrace.SpanKindServer
	switch {
	case p.router:
		return RouterRequest, serves && span.Name() == routerSpan && !strings.Contains(p.scope, bodyScope)
	case s.has(fieldOperation) && notOfAModel[string(p.letters.lower(s.said[fieldOperation].text))]:
		return 0, false
	case s.has(fieldEngine):
		return EngineRequest, !p.prefills(span)
	case s.has(fieldInput), s.has(fieldOutput), s.has(fieldTTFT):
		return GatewayRequest, true
	default:
		called := serves || span.Kind() == ptrace.SpanKindClient
		return GatewayRequest, s.has(fieldModel) && (called || s.has(fieldOperation))
	}
}

// prefills tells whether an engine's span is of the first half of a request that
// another engine answers: that one tells of it as a whole. SGLang says so in the
// span's name; of others fleet_identity knows the role.
func (p *requestPage) prefills(span ptrace.Span) bool {
	return p.text(fieldRole) == rolePrefill || strings.HasPrefix(span.Name(), rolePrefill+" Req ")
}

const rolePrefill = "prefill"

// notOfAModel are operations that are no single call of a model, in lower case:
// of the semantic conventions, OpenInference, Traceloop and LiteLLM.
var notOfAModel = map[string]bool{
	"create_agent": true, "invoke_agent": true, "invoke_workflow": true, "execute_tool": true, "plan": true, "retrieval": true,
	"agent": true, "chain": true, "tool": true, "retriever": true, "guardrail": true, "evaluator": true, "prompt": true,
	"workflow": true, "task": true,
	"tokenize": true, "litellm.vector_store_management": true, "litellm.vector_store_file_management": true,
	"litellm.responses_management": true,
}
