// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"crypto/sha256"
	"encoding/binary"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// Spans are those that a source would send of requests. The gateway tells of
// each. Engines of vLLM tell of those that they answered, as parts of the same
// traces; other engines tell nothing.
func Spans(source Source, records []fleetsim.RequestRecord) ptrace.Traces {
	traces := ptrace.NewTraces()
	if source == Engines {
		addEngineSpans(traces, records)
		return traces
	}
	if len(records) == 0 {
		return traces
	}
	of := traces.ResourceSpans().AppendEmpty()
	of.Resource().Attributes().PutStr("service.name", "ai-gateway")
	scope := of.ScopeSpans().AppendEmpty()
	scope.Scope().SetName("envoyproxy/ai-gateway")
	scope.Spans().EnsureCapacity(len(records))
	for i := range records {
		fillGatewaySpan(scope.Spans().AppendEmpty(), &records[i])
	}
	return traces
}

// fillGatewaySpan writes what Envoy AI Gateway tells of a request when it is set
// to the semantic conventions for generative AI, with the headers of tenant and
// tier as attributes. Tokens are known of requests that were answered.
func fillGatewaySpan(span ptrace.Span, r *fleetsim.RequestRecord) {
	trace, own, _ := idsOf(r)
	span.SetTraceID(trace)
	span.SetSpanID(own)
	span.SetName("chat " + r.Model)
	span.SetKind(ptrace.SpanKindServer)
	setTimes(span, r)
	a := span.Attributes()
	a.EnsureCapacity(14)
	a.PutStr("gen_ai.operation.name", "chat")
	a.PutStr("gen_ai.provider.name", "openai")
	a.PutStr("gen_ai.request.model", r.Model)
	a.PutInt("gen_ai.request.max_tokens", int64(r.MaxTokens))
	a.PutBool("gen_ai.request.stream", true)
	a.PutInt("http.response.status_code", int64(r.Status))
	putKnown(a, "tenant.id", r.Tenant)
	putKnown(a, "tier", r.Tier)
	if !r.FirstToken.IsZero() {
		a.PutDouble("gen_ai.response.time_to_first_chunk", r.FirstToken.Sub(r.Arrived).Seconds())
	}
	if r.Status != http.StatusOK {
		a.PutStr("error.type", strconv.Itoa(r.Status))
		span.Status().SetCode(ptrace.StatusCodeError)
		return
	}
	a.PutStr("gen_ai.response.model", r.Model)
	a.PutInt("gen_ai.usage.input_tokens", int64(r.Prompt))
	a.PutInt("gen_ai.usage.cache_read.input_tokens", int64(r.Cached))
	a.PutInt("gen_ai.usage.output_tokens", int64(r.Output))
}

func putKnown(a pcommon.Map, key, value string) {
	if value != "" {
		a.PutStr(key, value)
	}
}

// addEngineSpans adds a resource for each replica that answered.
func addEngineSpans(traces ptrace.Traces, records []fleetsim.RequestRecord) {
	byReplica := map[string]ptrace.SpanSlice{}
	for i := range records {
		r := &records[i]
		if r.Engine != fleetsim.VLLM || r.Status != http.StatusOK {
			continue
		}
		spans, found := byReplica[r.Replica]
		if !found {
			of := traces.ResourceSpans().AppendEmpty()
			of.Resource().Attributes().PutStr("service.name", "vllm")
			of.Resource().Attributes().PutStr("k8s.namespace.name", fleetsim.Namespace)
			of.Resource().Attributes().PutStr("k8s.pod.name", r.Replica)
			scope := of.ScopeSpans().AppendEmpty()
			scope.Scope().SetName("vllm.llm_engine")
			spans = scope.Spans()
			byReplica[r.Replica] = spans
		}
		fillEngineSpan(spans.AppendEmpty(), r)
	}
}

// fillEngineSpan writes what vLLM tells of a request: neither model nor tenant,
// token counts by their old names, and none of the cached ones.
func fillEngineSpan(span ptrace.Span, r *fleetsim.RequestRecord) {
	trace, parent, own := idsOf(r)
	span.SetTraceID(trace)
	span.SetParentSpanID(parent)
	span.SetSpanID(own)
	span.SetName("llm_request")
	span.SetKind(ptrace.SpanKindServer)
	setTimes(span, r)
	a := span.Attributes()
	a.EnsureCapacity(11)
	a.PutStr("gen_ai.request.id", "chatcmpl-"+trace.String())
	a.PutInt("gen_ai.request.max_tokens", int64(r.MaxTokens))
	a.PutInt("gen_ai.request.n", 1)
	a.PutInt("gen_ai.usage.prompt_tokens", int64(r.Prompt))
	a.PutInt("gen_ai.usage.completion_tokens", int64(r.Output))
	seconds := func(name string, from, to time.Time) {
		a.PutDouble("gen_ai.latency."+name, to.Sub(from).Seconds())
	}
	seconds("time_to_first_token", r.Arrived, r.FirstToken)
	seconds("e2e", r.Arrived, r.Ended)
	seconds("time_in_queue", r.Arrived, r.Scheduled)
	seconds("time_in_model_prefill", r.Scheduled, r.FirstToken)
	seconds("time_in_model_decode", r.FirstToken, r.Ended)
	seconds("time_in_model_inference", r.Scheduled, r.Ended)
}

func setTimes(span ptrace.Span, r *fleetsim.RequestRecord) {
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(r.Arrived))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(r.Ended))
}

// idsOf are the ids of a request's trace, of the gateway's span in it and of the
// engine's: the same each time, and others for a simulation that starts at
// another time.
func idsOf(r *fleetsim.RequestRecord) (trace pcommon.TraceID, gateway, engine pcommon.SpanID) {
	key := binary.BigEndian.AppendUint64([]byte(r.Fleet), r.Number)
	key = binary.BigEndian.AppendUint64(key, uint64(r.Arrived.UnixNano()))
	sum := sha256.Sum256(key)
	copy(trace[:], sum[:16])
	copy(gateway[:], sum[16:24])
	copy(engine[:], sum[24:])
	return trace, gateway, engine
}
