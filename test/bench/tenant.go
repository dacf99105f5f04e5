// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/connector/tenantusageconnector"
)

const (
	spansOfBatch   = 512
	tenantBatches  = 100 // that are measured, after as many to warm up
	manyTenants    = 1_000_000
	spanAttributes = 20
)

// tenantSpans measures how many request spans a second tenant_usage counts on one
// core, most of them of tenants that it has no place for.
func tenantSpans(ctx context.Context) (perSecond float64, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	err = countTenants(ctx, func(batches []ptrace.Traces, consume func(ptrace.Traces)) {
		runtime.GC()
		began := processorTime()
		for _, td := range batches {
			consume(td)
		}
		perSecond = float64(len(batches)*spansOfBatch) / (processorTime() - began).Seconds()
	})
	return perSecond, err
}

// tenantSpanAllocs measures how many allocations one span takes.
func tenantSpanAllocs(ctx context.Context) (allocs float64, err error) {
	err = countTenants(ctx, func(batches []ptrace.Traces, consume func(ptrace.Traces)) {
		next := 0
		allocs = testing.AllocsPerRun(len(batches)-1, func() { // runs once more before it counts
			consume(batches[next])
			next++
		}) / spansOfBatch
	})
	return allocs, err
}

// countTenants gives batches of spans to tenant_usage, as many to warm up as
// measure is given.
func countTenants(ctx context.Context, measure func(batches []ptrace.Traces, consume func(ptrace.Traces))) (err error) {
	usage, err := startTenantUsage(ctx)
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, usage.Shutdown(ctx)) }()
	consume := func(td ptrace.Traces) { err = firstError(err, usage.ConsumeTraces(ctx, td)) }
	next := zipfTenants(manyTenants)
	batches := make([]ptrace.Traces, 2*tenantBatches)
	for i := range batches {
		batches[i] = gatewaySpans(next)
	}
	for _, td := range batches[:tenantBatches] {
		consume(td)
	}
	measure(batches[tenantBatches:], consume)
	return err
}

// tenantHeapOf measures the heap that tenant_usage takes after so many tenants
// have sent a request each, and some of them more.
func tenantHeapOf(tenants int) func(context.Context) (megabytes float64, err error) {
	return func(ctx context.Context) (float64, error) {
		next, zipf := 0, zipfTenants(tenants)
		before := heap()
		usage, err := startTenantUsage(ctx)
		if err != nil {
			return 0, err
		}
		for range 2 * (tenants/spansOfBatch + 1) {
			td := gatewaySpans(func() int { // everyone in turn, and between them by Zipf's law
				if next++; next%2 == 0 {
					return zipf()
				}
				return next / 2 % tenants
			})
			if err := usage.ConsumeTraces(ctx, td); err != nil {
				return 0, firstError(err, usage.Shutdown(ctx))
			}
		}
		after := heap()
		runtime.KeepAlive(zipf)
		return float64(int64(after)-int64(before)) / 1e6, usage.Shutdown(ctx)
	}
}

// startTenantUsage starts the connector as configured by default: tenants are
// hashed.
func startTenantUsage(ctx context.Context) (connector.Traces, error) {
	factory := tenantusageconnector.NewFactory()
	c, err := factory.CreateTracesToMetrics(ctx, connectortest.NewNopSettings(factory.Type()), factory.CreateDefaultConfig(), consumertest.NewNop())
	if err != nil {
		return nil, err
	}
	return c, c.Start(ctx, componenttest.NewNopHost())
}

// zipfTenants draws tenants by Zipf's law with exponent 1.
func zipfTenants(tenants int) func() int {
	random := rand.New(rand.NewPCG(1, 2)) // the same draws every time
	weights, total := make([]float64, tenants), 0.0
	for k := range weights {
		total += 1 / float64(k+1)
		weights[k] = total
	}
	return func() int {
		k, _ := slices.BinarySearch(weights, random.Float64()*total)
		return min(k, tenants-1)
	}
}

// gatewaySpans are one batch of requests, as a gateway tells them.
func gatewaySpans(tenant func() int) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "ai-gateway")
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	spans.EnsureCapacity(spansOfBatch)
	now := time.Now()
	for i := range spansOfBatch {
		s := spans.AppendEmpty()
		s.SetKind(ptrace.SpanKindServer)
		s.SetName("chat qwen3-8b")
		s.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-2 * time.Second)))
		s.SetEndTimestamp(pcommon.NewTimestampFromTime(now))
		a := s.Attributes()
		a.EnsureCapacity(spanAttributes)
		a.PutStr("http.request.method", "POST")
		a.PutStr("url.path", "/v1/chat/completions")
		a.PutInt("http.response.status_code", 200)
		a.PutStr("network.protocol.version", "1.1")
		a.PutStr("server.address", "gateway.example.com")
		a.PutStr("user_agent.original", "openai-python/2.1")
		a.PutStr("gen_ai.operation.name", "chat")
		a.PutStr("gen_ai.provider.name", "openai")
		a.PutStr("gen_ai.request.model", "qwen3-8b")
		a.PutStr("gen_ai.response.model", "qwen3-8b")
		a.PutStr("gen_ai.response.id", fmt.Sprintf("chatcmpl-%06d", i))
		a.PutDouble("gen_ai.request.temperature", 0.7)
		a.PutInt("gen_ai.request.max_tokens", 1024)
		a.PutBool("gen_ai.request.stream", true)
		a.PutInt("gen_ai.usage.input_tokens", int64(200+i))
		a.PutInt("gen_ai.usage.cache_read.input_tokens", int64(i/4))
		a.PutInt("gen_ai.usage.output_tokens", int64(50+i/8))
		a.PutDouble("gen_ai.response.time_to_first_chunk", 0.05*math.Sqrt(float64(1+i)))
		a.PutStr("tier", "standard")
		a.PutStr("tenant.id", fmt.Sprintf("tenant-%07d", tenant()))
	}
	return td
}
