// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package binarytest

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// jaegerConfig keeps traces in memory.
const jaegerConfig = `
receivers:
  otlp: {protocols: {grpc: {endpoint: "OTLP"}}}
exporters:
  jaeger_storage_exporter: {trace_storage: memory}
extensions:
  jaeger_storage:
    backends: {memory: {memory: {max_traces: 100000}}}
  jaeger_query:
    storage: {traces: memory}
    enable_tracing: false # its own traces would go to whoever listens at OTLP's usual port
    http: {endpoint: "HTTP"}
    grpc: {endpoint: "GRPC"}
service:
  telemetry: {metrics: {level: none}}
  extensions: [jaeger_storage, jaeger_query]
  pipelines:
    traces: {receivers: [otlp], exporters: [jaeger_storage_exporter]}
`

// TraceStore is a Jaeger server under way, by its addresses.
type TraceStore struct {
	OTLP  string // takes spans, over gRPC
	Query string // answers over HTTP
}

// StartJaeger runs a Jaeger server until the test ends.
func StartJaeger(t *testing.T) TraceStore {
	t.Helper()
	address := func() string { return LoopbackAddress(FreePort(t)) }
	s := TraceStore{OTLP: address(), Query: address()}
	config := strings.NewReplacer(`"OTLP"`, s.OTLP, `"HTTP"`, s.Query, `"GRPC"`, address()).Replace(jaegerConfig)
	Start(t, Jaeger(t), "--config="+WriteFile(t, "jaeger.yaml", config))
	require.Eventually(t, func() bool {
		response, err := http.Get("http://" + s.Query + "/api/services")
		return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
	}, time.Minute, 100*time.Millisecond, "Jaeger does not answer")
	return s
}
