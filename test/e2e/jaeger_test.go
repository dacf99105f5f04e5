// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/binarytest"
)

// jaegerConfig keeps traces in memory.
const jaegerConfig = `
receivers:
  otlp: {protocols: {grpc: {endpoint: "{{ .OTLP }}"}}}
exporters:
  jaeger_storage_exporter: {trace_storage: memory}
extensions:
  jaeger_storage:
    backends: {memory: {memory: {max_traces: 100000}}}
  jaeger_query:
    storage: {traces: memory}
    enable_tracing: false # its own traces would go to whoever listens at OTLP's usual port
    http: {endpoint: "{{ .HTTP }}"}
    grpc: {endpoint: "{{ .GRPC }}"}
service:
  telemetry: {metrics: {level: none}}
  extensions: [jaeger_storage, jaeger_query]
  pipelines:
    traces: {receivers: [otlp], exporters: [jaeger_storage_exporter]}
`

// traceStore is a Jaeger server under way.
type traceStore struct {
	t           *testing.T
	otlp, query string // addresses
}

// startJaeger runs a Jaeger server that takes spans by OTLP over gRPC.
func startJaeger(t *testing.T) *traceStore {
	t.Helper()
	address := func() string { return binarytest.LoopbackAddress(binarytest.FreePort(t)) }
	s := &traceStore{t: t, otlp: address(), query: address()}
	config := render(t, jaegerConfig, map[string]string{"OTLP": s.otlp, "HTTP": s.query, "GRPC": address()})
	binarytest.Start(t, binarytest.Jaeger(t), "--config="+binarytest.WriteFile(t, "jaeger.yaml", config))
	require.Eventually(t, func() bool {
		response, err := http.Get("http://" + s.query + "/api/services")
		return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
	}, time.Minute, 100*time.Millisecond, "Jaeger does not answer")
	return s
}

// spans finds spans of a service by a tag, those of up to 20 traces: their tags as text.
func (s *traceStore) spans(service, key, value string) []map[string]string {
	s.t.Helper()
	tags, err := json.Marshal(map[string]string{key: value})
	require.NoError(s.t, err)
	query := url.Values{"service": {service}, "tags": {string(tags)}, "limit": {"20"}}
	response, err := http.Get("http://" + s.query + "/api/traces?" + query.Encode())
	require.NoError(s.t, err)
	defer response.Body.Close()
	require.Equal(s.t, http.StatusOK, response.StatusCode)
	var answer struct {
		Data []struct {
			Spans []struct {
				Tags []struct {
					Key   string
					Value any
				}
			}
		}
	}
	require.NoError(s.t, json.NewDecoder(response.Body).Decode(&answer))
	var found []map[string]string
	for _, trace := range answer.Data {
		for _, span := range trace.Spans {
			all := map[string]string{}
			for _, tag := range span.Tags {
				all[tag.Key] = fmt.Sprint(tag.Value)
			}
			found = append(found, all)
		}
	}
	return found
}
