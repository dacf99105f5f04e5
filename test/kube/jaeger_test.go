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

// jaeger is a trace store under way.
type jaeger struct{ binarytest.TraceStore }

// startJaeger runs a Jaeger server that takes spans by OTLP over gRPC.
func startJaeger(t *testing.T) jaeger {
	t.Helper()
	return jaeger{binarytest.StartJaeger(t)}
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
	response, err := http.Get("http://" + j.Query + "/api/traces/" + strings.ReplaceAll(string(pod), "-", ""))
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
