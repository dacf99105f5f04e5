// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/llmfleet/llmfleet/test/binarytest"
)

// coldStartTier sends what tells of a pod to one of two gateways, as the README of cold_start shows it.
const coldStartTier = `
receivers:
  otlp: {protocols: {http: {endpoint: "{{ .In }}"}}}
exporters:
  load_balancing:
    routing_key: attributes
    routing_attributes: [k8s.pod.uid]
    protocol: {otlp: {tls: {insecure: true}}}
    resolver: {static: {hostnames: ["{{ .One }}", "{{ .Other }}"]}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    logs: {receivers: [otlp], exporters: [load_balancing]}
`

const coldStartGateway = `
receivers:
  otlp: {protocols: {grpc: {endpoint: "{{ .In }}"}}}
connectors:
  cold_start: {wait: 5s, interval: 2s}
exporters:
  file: {path: "{{ .Out }}", flush_interval: 100ms}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    logs: {receivers: [otlp], exporters: [cold_start]}
    traces: {receivers: [cold_start], exporters: [file]}
`

// TestColdStartGateways: facts and lines of a pod come in requests of their own, those of many pods mixed, and each pod's start is
// told by one of two gateways, whole.
func TestColdStartGateways(t *testing.T) {
	const pods = 60
	address := func() string { return binarytest.LoopbackAddress(binarytest.FreePort(t)) }
	in, gateways := address(), [2]string{address(), address()}
	var traces [2]file
	for i, gateway := range gateways {
		traces[i] = file{filepath.Join(t.TempDir(), "traces.jsonl")}
		config := render(t, coldStartGateway, map[string]string{"In": gateway, "Out": traces[i].path})
		binarytest.Start(t, binarytest.Collector(t), "--config="+binarytest.WriteFile(t, "gateway.yaml", config))
	}
	config := render(t, coldStartTier, map[string]string{"In": in, "One": gateways[0], "Other": gateways[1]})
	binarytest.Start(t, binarytest.Collector(t), "--config="+binarytest.WriteFile(t, "tier.yaml", config))

	created := time.Now().Add(-time.Minute).Truncate(time.Second)
	told := []struct {
		event, line string
		after       time.Duration
	}{
		{event: "llmfleet.pod.created"},
		{event: "llmfleet.pod.scheduled", after: 2 * time.Second},
		{event: "llmfleet.container.started", after: 5 * time.Second},
		{line: "INFO 08-05 08:41:37 [core.py:114] Initializing a V1 LLM engine (v0.11.0) with config: model='m'", after: 15 * time.Second},
		{line: "INFO 08-05 08:42:07 [api_server.py:624] Starting vLLM server on http://0.0.0.0:8000", after: 45 * time.Second},
		{event: "llmfleet.pod.ready", after: 50 * time.Second},
	}
	for _, said := range told {
		logs := plog.NewLogs()
		for pod := range pods {
			rl := logs.ResourceLogs().AppendEmpty()
			rl.Resource().Attributes().PutStr("k8s.pod.uid", podUID(pod))
			record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
			record.SetEventName(said.event)
			record.Attributes().PutStr("k8s.container.name", "engine")
			record.Body().SetStr(said.line)
			record.SetTimestamp(pcommon.NewTimestampFromTime(created.Add(said.after)))
		}
		sendLogs(t, in, logs)
	}

	owners := func() map[string][]int {
		of := map[string][]int{}
		for i := range traces {
			for _, span := range traces[i].spans(t) {
				if span.name == "replica.cold_start" {
					of[span.resource["k8s.pod.uid"]] = append(of[span.resource["k8s.pod.uid"]], i)
				}
			}
		}
		return of
	}
	require.Eventually(t, func() bool { return len(owners()) == pods }, time.Minute, 200*time.Millisecond, "every start is told")
	perGateway := [2]int{}
	for pod, gateways := range owners() {
		if assert.Len(t, gateways, 1, "who tells the start of %s", pod) {
			perGateway[gateways[0]]++
		}
	}
	assert.NotContains(t, perGateway, 0, "both gateways have pods")
	stages := map[string]int{}
	for i := range traces {
		for _, span := range traces[i].spans(t) {
			stages[span.name]++
		}
	}
	for _, whole := range []string{"scheduling", "engine.boot", "ready"} { // from facts, from both, from a line and a fact
		assert.Equal(t, pods, stages[whole], whole)
	}
}

func podUID(pod int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", pod, pod) }

// sendLogs sends log records to a collector that listens for OTLP over HTTP, once it does.
func sendLogs(t *testing.T, address string, logs plog.Logs) {
	t.Helper()
	body, err := plogotlp.NewExportRequestFromLogs(logs).MarshalProto()
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		response, err := http.Post("http://"+address+"/v1/logs", "application/x-protobuf", bytes.NewReader(body))
		return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
	}, time.Minute, 100*time.Millisecond)
}
