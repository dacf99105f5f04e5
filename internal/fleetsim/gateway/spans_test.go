// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// answered is a request that waited 50 ms, had its first token after 250 ms and
// its last after 2 s.
var answered = fleetsim.RequestRecord{
	Number: 7, Fleet: "chat", Engine: fleetsim.VLLM, Model: "qwen3-8b", Replica: "chat-1", Tenant: "acme", Tier: "gold", Status: 200,
	Arrived: noon, Scheduled: noon.Add(50 * time.Millisecond), FirstToken: noon.Add(250 * time.Millisecond), Ended: noon.Add(2 * time.Second),
	Prompt: 1000, Cached: 800, Output: 71, MaxTokens: 1280,
}

// with is a copy of a record after an edit.
func with(r fleetsim.RequestRecord, edit func(*fleetsim.RequestRecord)) fleetsim.RequestRecord {
	edit(&r)
	return r
}

// only is the one span of all, and its resource's attributes.
func only(t *testing.T, traces ptrace.Traces) (span ptrace.Span, resource map[string]any) {
	t.Helper()
	require.Equal(t, 1, traces.SpanCount())
	of := traces.ResourceSpans().At(0)
	return of.ScopeSpans().At(0).Spans().At(0), of.Resource().Attributes().AsRaw()
}

func TestTheGatewayTellsWhoAndHowMuch(t *testing.T) {
	span, resource := only(t, Spans(Gateway, []fleetsim.RequestRecord{answered}))
	assert.Equal(t, map[string]any{"service.name": "ai-gateway"}, resource)
	assert.Equal(t, "chat qwen3-8b", span.Name())
	assert.Equal(t, ptrace.SpanKindServer, span.Kind())
	assert.Equal(t, noon, span.StartTimestamp().AsTime())
	assert.Equal(t, noon.Add(2*time.Second), span.EndTimestamp().AsTime())
	assert.Equal(t, ptrace.StatusCodeUnset, span.Status().Code())
	assert.Equal(t, map[string]any{
		"gen_ai.operation.name":                "chat",
		"gen_ai.provider.name":                 "openai",
		"gen_ai.request.model":                 "qwen3-8b",
		"gen_ai.request.max_tokens":            int64(1280),
		"gen_ai.request.stream":                true,
		"gen_ai.response.model":                "qwen3-8b",
		"gen_ai.response.time_to_first_chunk":  .25,
		"gen_ai.usage.input_tokens":            int64(1000),
		"gen_ai.usage.cache_read.input_tokens": int64(800),
		"gen_ai.usage.output_tokens":           int64(71),
		"http.response.status_code":            int64(200),
		"tenant.id":                            "acme",
		"tier":                                 "gold",
	}, span.Attributes().AsRaw())
}

func TestOfAFailedRequestNoTokensAreKnown(t *testing.T) {
	throttled := with(answered, func(r *fleetsim.RequestRecord) {
		r.Status, r.Replica, r.Tenant, r.Tier, r.Output = 429, "", "", "", 0
		r.Scheduled, r.FirstToken, r.Ended = time.Time{}, time.Time{}, r.Arrived
	})
	span, _ := only(t, Spans(Gateway, []fleetsim.RequestRecord{throttled}))
	assert.Equal(t, ptrace.StatusCodeError, span.Status().Code())
	assert.Equal(t, map[string]any{
		"gen_ai.operation.name":     "chat",
		"gen_ai.provider.name":      "openai",
		"gen_ai.request.model":      "qwen3-8b",
		"gen_ai.request.max_tokens": int64(1280),
		"gen_ai.request.stream":     true,
		"http.response.status_code": int64(429),
		"error.type":                "429",
	}, span.Attributes().AsRaw())
}

func TestAnEngineTellsLatenciesAndOldNames(t *testing.T) {
	records := []fleetsim.RequestRecord{answered}
	span, resource := only(t, Spans(Engines, records))
	assert.Equal(t, map[string]any{"service.name": "vllm", "k8s.namespace.name": "fleetsim", "k8s.pod.name": "chat-1"}, resource)
	assert.Equal(t, "llm_request", span.Name())
	assert.Equal(t, ptrace.SpanKindServer, span.Kind())
	assert.Equal(t, map[string]any{
		"gen_ai.request.id":                      "chatcmpl-" + span.TraceID().String(),
		"gen_ai.request.max_tokens":              int64(1280),
		"gen_ai.request.n":                       int64(1),
		"gen_ai.usage.prompt_tokens":             int64(1000),
		"gen_ai.usage.completion_tokens":         int64(71),
		"gen_ai.latency.time_to_first_token":     .25,
		"gen_ai.latency.e2e":                     2.,
		"gen_ai.latency.time_in_queue":           .05,
		"gen_ai.latency.time_in_model_prefill":   .2,
		"gen_ai.latency.time_in_model_decode":    1.75,
		"gen_ai.latency.time_in_model_inference": 1.95,
	}, span.Attributes().AsRaw())
	parent, _ := only(t, Spans(Gateway, records))
	assert.Equal(t, parent.TraceID(), span.TraceID())
	assert.Equal(t, parent.SpanID(), span.ParentSpanID())
	assert.NotEqual(t, parent.SpanID(), span.SpanID())
}

func TestEnginesThatDidNotAnswerAndOtherKindsTellNothing(t *testing.T) {
	traces := Spans(Engines, []fleetsim.RequestRecord{
		with(answered, func(r *fleetsim.RequestRecord) { r.Status = 503 }),
		with(answered, func(r *fleetsim.RequestRecord) { r.Engine = fleetsim.SGLang }),
		with(answered, func(r *fleetsim.RequestRecord) { r.Number, r.Replica = 8, "chat-0" }),
		with(answered, func(r *fleetsim.RequestRecord) { r.Number = 9 }),
		with(answered, func(r *fleetsim.RequestRecord) { r.Number, r.Replica = 10, "chat-0" }),
	})
	spans := map[string]int{}
	for _, of := range traces.ResourceSpans().All() {
		pod, _ := of.Resource().Attributes().Get("k8s.pod.name")
		spans[pod.Str()] = of.ScopeSpans().At(0).Spans().Len()
	}
	assert.Equal(t, map[string]int{"chat-0": 2, "chat-1": 1}, spans)
	assert.Zero(t, Spans(Gateway, nil).ResourceSpans().Len())
}

func TestEveryRequestIsATraceOfItsOwn(t *testing.T) {
	traces := map[string]bool{}
	for _, r := range []fleetsim.RequestRecord{
		answered,
		answered, // the same again
		with(answered, func(r *fleetsim.RequestRecord) { r.Number++ }),
		with(answered, func(r *fleetsim.RequestRecord) { r.Fleet = "code" }),
		with(answered, func(r *fleetsim.RequestRecord) { r.Arrived = r.Arrived.Add(time.Hour) }),
	} {
		span, _ := only(t, Spans(Gateway, []fleetsim.RequestRecord{r}))
		traces[span.TraceID().String()] = true
	}
	assert.Len(t, traces, 4)
}
