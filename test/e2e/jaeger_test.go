// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/binarytest"
)

// traceStore is a Jaeger server under way.
type traceStore struct {
	t *testing.T
	binarytest.TraceStore
}

// startJaeger runs a Jaeger server that takes spans by OTLP over gRPC.
func startJaeger(t *testing.T) *traceStore {
	t.Helper()
	return &traceStore{t: t, TraceStore: binarytest.StartJaeger(t)}
}

// spans finds spans of a service by a tag, those of up to 20 traces: their tags as text.
func (s *traceStore) spans(service, key, value string) []map[string]string {
	s.t.Helper()
	tags, err := json.Marshal(map[string]string{key: value})
	require.NoError(s.t, err)
	query := url.Values{"service": {service}, "tags": {string(tags)}, "limit": {"20"}}
	response, err := http.Get("http://" + s.Query + "/api/traces?" + query.Encode())
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
