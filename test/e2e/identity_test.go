// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/test/binarytest"
)

// twoEngines is one model on three replicas of vLLM, one of them slow, and two of SGLang.
var twoEngines = fleetsim.Scenario{
	Seed: 7,
	Fleets: []fleetsim.Fleet{
		{Name: "chat", Engine: fleetsim.VLLM, ModelName: "test/chat-8b", Replicas: 3, Arrivals: fleetsim.Arrivals{Rate: 30}, PrefixHitRatio: 0.4},
		{
			Name: "talk", Engine: fleetsim.SGLang, ModelName: "test/chat-8b", Replicas: 2, Arrivals: fleetsim.Arrivals{Rate: 20},
			PrefixHitRatio: 0.4, HostHitShare: 0.2,
		},
	},
	Faults: []fleetsim.Fault{{Kind: fleetsim.Slow, Fleet: "chat", Replicas: []int{2}, Factor: 1.8}},
}

// templateHash is the pod-template-hash of a fleet's pods.
var templateHash = map[string]string{"chat": "7d9f8b6c5d", "talk": "5b6c7d8e9f"}

// The pipeline `bare` has the very same pages, and fleet_outlier alone.
const identityConfig = `
receivers:
  prometheus:
    config:
      scrape_configs:
        - job_name: engines
          scrape_interval: 1s
          scrape_timeout: 1s
          static_configs:
{{- range .Targets }}
            - targets: ["{{ .Address }}"]
              labels: {namespace: serving, pod: "{{ .Pod }}", llm_d_ai_role: decode, pod_template_hash: "{{ .Template }}"}
{{- end }}
  otlp: {protocols: {http: {endpoint: "{{ .OTLP }}"}}}
processors:
  fleet_identity: {interval: 2s}
  fleet_identity/canonical: {interval: 2s, emit_canonical: true, drop_raw: true}
  fleet_outlier: &outlier {interval: 2s, window: 6s, lateness: 2s, quantiles: [0.5]}
  fleet_outlier/bare: *outlier
exporters:
  file/metrics: {path: "{{ .Folder }}/metrics", flush_interval: 100ms}
  file/bare: {path: "{{ .Folder }}/bare", flush_interval: 100ms}
  file/traces: {path: "{{ .Folder }}/traces", flush_interval: 100ms}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    metrics: {receivers: [prometheus], processors: [fleet_identity, fleet_outlier, fleet_identity/canonical], exporters: [file/metrics]}
    metrics/bare: {receivers: [prometheus], processors: [fleet_outlier/bare], exporters: [file/bare]}
    traces: {receivers: [otlp], processors: [fleet_identity], exporters: [file/traces]}
`

// TestIdentity: what metrics tell of a replica is on its metrics, on its spans and on a gateway's spans that name it; all
// engines say their signals in one spelling, their own is gone, and fleet_outlier in between finds what it finds alone.
func TestIdentity(t *testing.T) {
	t.Parallel()
	engines := labelledTargets(t)
	otlp, folder := binarytest.LoopbackAddress(binarytest.FreePort(t)), t.TempDir()
	config := render(t, identityConfig, map[string]any{"Targets": engines, "OTLP": otlp, "Folder": folder})
	collector := binarytest.Start(t, binarytest.Collector(t), "--config="+binarytest.WriteFile(t, "config.yaml", config))

	metrics, bare := file{filepath.Join(folder, "metrics")}, file{filepath.Join(folder, "bare")}
	const evaluations = 3
	require.Eventually(t, func() bool {
		require.True(t, collector.Running(), "the collector ended")
		return len(metrics.numbers(t, "llmfleet.replica.latency_ratio", "pod", "chat-2", "signal", "ttft")) >= evaluations
	}, time.Minute, time.Second, "the slow replica was not judged")
	send(t, otlp, spans(engines))
	traces := file{filepath.Join(folder, "traces")}
	require.Eventually(t, func() bool { return len(traces.spans(t)) == len(expectedSpans) }, time.Minute, time.Second, "spans did not come out")
	collector.Stop(t)

	assertSpans(t, traces.spans(t))
	assertDerived(t, metrics, bare)
	assertCanonical(t, metrics, bare)
	assertExplained(t, metrics)
}

// labelledTarget is a target with the hash of its pod's template.
type labelledTarget struct {
	target
	Template string
}

func labelledTargets(t *testing.T) []labelledTarget {
	t.Helper()
	var all []labelledTarget
	for _, served := range startFleet(t, twoEngines) {
		all = append(all, labelledTarget{served, templateHash[served.Pod[:len("chat")]]})
	}
	return all
}

// expectedSpans are the spans that are sent, by name, and the attributes that must come out of them; one with the value
// "" must not be there.
var expectedSpans = map[string]map[string]string{
	"engine by pod": {
		"model_name": "test/chat-8b", "engine_name": "vllm", "role": "decode", "config_hash": templateHash["chat"], "replica": "serving/chat-2",
		"gen_ai.usage.prompt_tokens": "12",
	},
	"engine by address": {
		"model_name": "test/chat-8b", "engine_name": "sglang", "role": "decode", "config_hash": templateHash["talk"], "replica": "serving/talk-1",
	},
	"engine that knows better": {"engine_name": "vllm", "role": "prefill", "replica": "serving/chat-0"},
	"gateway": {
		"model_name": "test/chat-8b", "engine_name": "sglang", "role": "decode", "config_hash": templateHash["talk"], "replica": "serving/talk-0",
	},
	"gateway with headers": {"model_name": "test/chat-8b", "engine_name": "vllm", "replica": "serving/chat-1"},
	"gateway elsewhere":    {"model_name": "", "engine_name": "", "replica": ""},
}

// spans are what engines and a gateway send of one request each.
func spans(engines []labelledTarget) ptrace.Traces {
	address := make(map[string]string)
	for _, e := range engines {
		address[e.Pod] = e.Address
	}
	traces := ptrace.NewTraces()
	add := func(name string, resource, attributes map[string]any) {
		rs := traces.ResourceSpans().AppendEmpty()
		_ = rs.Resource().Attributes().FromRaw(resource)
		span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.SetName(name)
		span.SetTraceID([16]byte{1})
		span.SetSpanID([8]byte{byte(traces.ResourceSpans().Len())})
		_ = span.Attributes().FromRaw(attributes)
	}
	gateway := map[string]any{"service.name": "gateway"}
	const destination = "x-gateway-destination-endpoint"
	add("engine by pod", map[string]any{"service.name": "vllm", "k8s.namespace.name": "serving", "k8s.pod.name": "chat-2"},
		map[string]any{"gen_ai.usage.prompt_tokens": 12})
	add("engine by address", map[string]any{"service.name": "sglang", "service.instance.id": address["talk-1"]}, nil)
	add("engine that knows better", map[string]any{"k8s.namespace.name": "serving", "k8s.pod.name": "chat-0"}, map[string]any{"role": "prefill"})
	add("gateway", gateway, map[string]any{destination: address["talk-0"]})
	add("gateway with headers", gateway, map[string]any{"http.request.header." + destination: []any{address["chat-1"]}})
	add("gateway elsewhere", gateway, map[string]any{destination: "192.0.2.1:8000"})
	return traces
}

func assertSpans(t *testing.T, all []spanOut) {
	t.Helper()
	for _, span := range all {
		expected := expectedSpans[span.name]
		require.NotNil(t, expected, span.name)
		for key, want := range expected {
			assert.Equal(t, want, span.attributes[key], "%s of %s", key, span.name)
		}
		if span.resource["service.name"] == "gateway" {
			assert.Equal(t, map[string]string{"service.name": "gateway"}, span.resource, "a gateway is no replica")
			continue
		}
		assert.Equal(t, expected["replica"], span.resource["replica"], span.name)
		assert.Equal(t, "test/chat-8b", span.resource["model_name"], span.name)
		assert.Equal(t, "decode", span.resource["role"], span.name)
	}
}
