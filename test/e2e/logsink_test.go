// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
)

// logSink takes log records by OTLP over HTTP.
type logSink struct {
	url string

	mu      sync.Mutex
	records []eventOut
}

// startLogSink takes records until the test ends.
func startLogSink(t *testing.T) *logSink {
	t.Helper()
	s := &logSink{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		assert.Equal(t, "/v1/logs", r.URL.Path)
		request := plogotlp.NewExportRequest()
		assert.NoError(t, request.UnmarshalProto(body))
		s.take(request)
		answer, err := plogotlp.NewExportResponse().MarshalProto()
		assert.NoError(t, err)
		w.Header().Set("Content-Type", "application/x-protobuf")
		w.Write(answer) //nolint:errcheck // the collector has gone; there is nobody to tell
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *logSink) take(request plogotlp.ExportRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, eventsOf(request.Logs())...)
}

// named are the records of one event.
func (s *logSink) named(event string) (found []eventOut) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		if r.name == event {
			found = append(found, r)
		}
	}
	return found
}

// all are all records in order of time.
func (s *logSink) all() []eventOut {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedStableFunc(slices.Values(s.records), func(a, b eventOut) int { return a.at.Compare(b.at) })
}
