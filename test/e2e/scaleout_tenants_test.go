// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/test/binarytest"
)

// tenantsOfRouter counts the requests of tenants in the first tier, whose spans stay there.
const tenantsOfRouter = `
connectors:
  tenant_usage: {interval: 1s, tenant: {from: [tenant.id], id: plain}}
service:
  pipelines:
    traces: {receivers: [otlp], processors: [memory_limiter, fleet_identity], exporters: [tenant_usage]}
    metrics/tenants: {receivers: [tenant_usage], exporters: [load_balancing]}
`

const tenantsGateway = `
receivers: {otlp: {protocols: {grpc: {endpoint: "{{ .In }}"}}}}
exporters:
  file: {path: "{{ .Out }}", flush_interval: 100ms}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    metrics: {receivers: [otlp], exporters: [file]}
`

// TestScaleOutTenants: spans of all models come to one router, and what their tenants took comes to the gateway of each
// model, whole, and to no other.
func TestScaleOutTenants(t *testing.T) {
	const models, tenants, requests = 20, 3, 5
	gateways, quoted := [2]file{}, [2]string{}
	for i := range gateways {
		address := freeAddress(t)
		gateways[i], quoted[i] = file{filepath.Join(t.TempDir(), "metrics")}, fmt.Sprintf("%q", address)
		config := render(t, tenantsGateway, map[string]string{"In": address, "Out": gateways[i].path})
		binarytest.Start(t, binarytest.Collector(t), "--config="+binarytest.WriteFile(t, "gateway.yaml", config))
		awaitListening(t, address)
	}
	http := freeAddress(t)
	here := render(t, routerHere, map[string]string{"Listen": freeAddress(t), "ListenHTTP": http, "Gateways": quoted[0] + ", " + quoted[1]})
	startTier(t, "router", here, http, "--config="+binarytest.WriteFile(t, "tenants.yaml", tenantsOfRouter))
	for range requests {
		send(t, http, requestsOf(models, tenants))
	}

	var counted map[string]map[int]float64 // by model and gateway
	require.Eventually(t, func() bool {
		counted = map[string]map[int]float64{}
		sum := 0.0
		for i, gateway := range gateways {
			for name, of := range latestRequests(t, gateway) {
				if counted[name] == nil {
					counted[name] = map[int]float64{}
				}
				counted[name][i] = of
				sum += of
			}
		}
		return sum >= models*tenants*requests
	}, time.Minute, 200*time.Millisecond, "not every request was counted")
	perGateway := [2]int{}
	assert.Len(t, counted, models)
	for name, by := range counted {
		assert.Len(t, by, 1, name)
		for i, of := range by {
			perGateway[i]++
			assert.InDelta(t, tenants*requests, of, 0, name)
		}
	}
	assert.NotContains(t, perGateway, 0, "both gateways have models")
}

// requestsOf are the spans of a gateway: one request of each tenant to each model.
func requestsOf(models, tenants int) ptrace.Traces {
	traces := ptrace.NewTraces()
	spans := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	end := time.Now()
	for m := range models {
		for tenant := range tenants {
			span := spans.AppendEmpty()
			span.SetTraceID(pcommon.TraceID{1, byte(m), byte(tenant)})
			span.SetSpanID(pcommon.SpanID{1, byte(m), byte(tenant)})
			span.SetKind(ptrace.SpanKindServer)
			span.SetStartTimestamp(pcommon.NewTimestampFromTime(end.Add(-time.Second)))
			span.SetEndTimestamp(pcommon.NewTimestampFromTime(end))
			span.Attributes().PutStr("gen_ai.operation.name", "chat")
			span.Attributes().PutStr("gen_ai.request.model", fmt.Sprintf("test/model-%02d", m))
			span.Attributes().PutInt("gen_ai.usage.input_tokens", 100)
			span.Attributes().PutInt("gen_ai.usage.output_tokens", 10)
			span.Attributes().PutStr("tenant.id", fmt.Sprintf("tenant-%d", tenant))
		}
	}
	return traces
}

// latestRequests are the requests of each model, over the newest points of all its series.
func latestRequests(t *testing.T, f file) map[string]float64 {
	t.Helper()
	newest := map[string]numberOut{}
	for _, p := range f.numbers(t, "llmfleet.tenant.requests") {
		key := fmt.Sprint(p.attributes)
		if known, ok := newest[key]; !ok || p.at.After(known.at) {
			newest[key] = p
		}
	}
	sums := map[string]float64{}
	for _, p := range newest {
		sums[p.attributes["model_name"]] += p.value
	}
	return sums
}
