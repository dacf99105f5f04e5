// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// The race detector makes pools forget, so that they allocate.
//go:build !race

package intake

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/internal/tenant"
)

// batch are 1,000 spans of one gateway, each with 20 attributes.
func batch(tb testing.TB) ptrace.Traces {
	tb.Helper()
	td := spansOf(tb, spanShape{scope: "litellm", resource: told{"service.name": "litellm", "engine_version": "0.19.0"}})
	spans := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	spans.RemoveIf(func(ptrace.Span) bool { return true })
	for i := range 1000 {
		span := spans.AppendEmpty()
		span.SetName("chat qwen3-32b")
		span.SetKind(ptrace.SpanKindClient)
		a := span.Attributes()
		a.PutStr("gen_ai.operation.name", "chat")
		a.PutStr("gen_ai.provider.name", "hosted_vllm")
		a.PutStr("gen_ai.request.model", "qwen3-32b")
		a.PutStr("gen_ai.response.model", "qwen3-32b")
		a.PutStr("gen_ai.response.id", "chatcmpl-1")
		a.PutInt("gen_ai.usage.input_tokens", 1000)
		a.PutInt("gen_ai.usage.output_tokens", 50)
		a.PutInt("gen_ai.usage.cache_read.input_tokens", 800)
		a.PutDouble("gen_ai.response.time_to_first_chunk", 0.125)
		a.PutStr("tenant.id", fmt.Sprintf("customer-%d", i))
		a.PutStr("tier", "gold")
		a.PutInt("http.response.status_code", 200)
		for _, k := range []string{
			"http.request.method", "url.path", "server.address", "litellm.call_id", "litellm.api_key.hash", "gen_ai.conversation.id",
			"gen_ai.output.type", "user_agent.original",
		} {
			a.PutStr(k, "whatever it is")
		}
	}
	return td
}

// TestReadingRequestsAllocatesNothing, whatever names tenants may take.
func TestReadingRequestsAllocatesNothing(t *testing.T) {
	q, td := NewRequests(plain()), batch(t)
	var seen uint64
	read := func() {
		q.Read(td, func(r *tenant.Request, _ *SpanFacts) { seen += r.Tokens[tenant.Output] })
	}
	read()
	const runs = 20
	assert.Zero(t, testing.AllocsPerRun(runs, read))
	assert.EqualValues(t, 50*1000*(1+1+runs), seen, "with the run that warms up")
}

func BenchmarkReadRequests(b *testing.B) {
	q, td := NewRequests(plain()), batch(b)
	var tokens uint64
	b.ReportAllocs()
	for b.Loop() {
		q.Read(td, func(r *tenant.Request, _ *SpanFacts) { tokens += r.Total() })
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/span")
}
