// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

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

// jaeger is a trace store under way.
type jaeger struct{ otlp, query string } // addresses

// startJaeger runs a Jaeger server that takes spans by OTLP over gRPC.
func startJaeger(t *testing.T) jaeger {
	t.Helper()
	address := func() string { return binarytest.LoopbackAddress(binarytest.FreePort(t)) }
	j := jaeger{otlp: address(), query: address()}
	config := render(t, jaegerConfig, map[string]string{"OTLP": j.otlp, "HTTP": j.query, "GRPC": address()})
	binarytest.Start(t, binarytest.Jaeger(t), "--config="+binarytest.WriteFile(t, "jaeger.yaml", config))
	require.Eventually(t, func() bool {
		response, err := http.Get("http://" + j.query + "/api/services")
		return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
	}, patience, tick, "Jaeger does not answer")
	return j
}

// span is one of a trace as Jaeger tells it.
type span struct {
	SpanID        string
	OperationName string
	References    []struct{ RefType string }
	StartTime     int64 // microseconds since 1970
	Duration      int64 // microseconds
	Tags          []struct {
		Key   string
		Value any
	}
}

func (s *span) start() time.Time { return time.UnixMicro(s.StartTime) }
func (s *span) end() time.Time   { return time.UnixMicro(s.StartTime + s.Duration) }

func (s *span) tag(key string) string {
	for _, tag := range s.Tags {
		if tag.Key == key {
			return fmt.Sprint(tag.Value)
		}
	}
	return ""
}

// trace is all that Jaeger has of one trace.
type trace []span

// trace finds that of a pod by its uid; none if there is none (yet).
func (j jaeger) trace(t *testing.T, pod types.UID) trace {
	t.Helper()
	response, err := http.Get("http://" + j.query + "/api/traces/" + strings.ReplaceAll(string(pod), "-", ""))
	require.NoError(t, err)
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotFound {
		return nil
	}
	require.Equal(t, http.StatusOK, response.StatusCode)
	var answer struct{ Data []struct{ Spans trace } }
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	require.Len(t, answer.Data, 1)
	return answer.Data[0].Spans
}

// roots are the spans that have no parent.
func (tr trace) roots() (roots []span) {
	for _, s := range tr {
		if len(s.References) == 0 {
			roots = append(roots, s)
		}
	}
	return roots
}

// stage is from when to when the trace has spans of one of the names; zero without any.
func (tr trace) stage(names ...string) (from, to time.Time) {
	for _, s := range tr {
		for _, name := range names {
			if s.OperationName != name {
				continue
			}
			if from.IsZero() || s.start().Before(from) {
				from = s.start()
			}
			if s.end().After(to) {
				to = s.end()
			}
		}
	}
	return from, to
}
