// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/sha256"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// metricSink takes metrics by OTLP over HTTP at any path. It keeps the points that this project derives, and of all other
// requests only a hash.
type metricSink struct {
	url string

	mu      sync.Mutex
	derived []numberOut
	others  map[string]map[[sha256.Size]byte]int // by path, how often
}

// startMetricSink takes metrics until the test ends.
func startMetricSink(t *testing.T) *metricSink {
	t.Helper()
	s := &metricSink{others: map[string]map[[sha256.Size]byte]int{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		request := pmetricotlp.NewExportRequest()
		assert.NoError(t, request.UnmarshalProto(body))
		s.take(r.URL.Path, body, request)
		answer, err := pmetricotlp.NewExportResponse().MarshalProto()
		assert.NoError(t, err)
		w.Header().Set("Content-Type", "application/x-protobuf")
		w.Write(answer) //nolint:errcheck // the collector has gone; there is nobody to tell
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *metricSink) take(path string, body []byte, request pmetricotlp.ExportRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	derived := false
	for _, rm := range request.Metrics().ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if !strings.HasPrefix(m.Name(), "llmfleet.") {
					continue
				}
				derived = true
				points(m, func(at pcommon.Timestamp, value float64, attributes pcommon.Map) {
					s.derived = append(s.derived, numberOut{metric: m.Name(), at: at.AsTime(), value: value, attributes: textOf(attributes)})
				})
			}
		}
	}
	if derived {
		return
	}
	if s.others[path] == nil {
		s.others[path] = map[[sha256.Size]byte]int{}
	}
	s.others[path][sha256.Sum256(body)]++
}

// requests are the hashes of those at a path that have nothing derived, and how often each came.
func (s *metricSink) requests(path string) map[[sha256.Size]byte]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.others[path])
}

// at are the derived points of a metric at an instant.
func (s *metricSink) at(instant time.Time, metric string) (found []numberOut) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.derived {
		if p.metric == metric && p.at.Equal(instant) {
			found = append(found, p)
		}
	}
	return found
}

// latest is the last point of a metric that has one series.
func (s *metricSink) latest(metric string) (found numberOut) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.derived {
		if p.metric == metric && p.at.After(found.at) {
			found = p
		}
	}
	return found
}

// verdictOut is a verdict on a canary that came out.
type verdictOut struct {
	at      time.Time
	verdict string
}

// turns are the verdicts in one measure, the first and each that is another than the one before.
type turns []verdictOut

func (t turns) last() string {
	if len(t) == 0 {
		return ""
	}
	return t[len(t)-1].verdict
}

// said are the verdicts without their times.
func (t turns) said() (all []string) {
	for _, turn := range t {
		all = append(all, turn.verdict)
	}
	return all
}

// verdicts are those that were given, by measure.
func (s *metricSink) verdicts() map[string]turns {
	s.mu.Lock()
	given := slices.DeleteFunc(slices.Clone(s.derived), func(p numberOut) bool { return p.metric != "llmfleet.canary.verdict" || p.value != 1 })
	s.mu.Unlock()
	slices.SortStableFunc(given, func(a, b numberOut) int { return a.at.Compare(b.at) })
	all := map[string]turns{}
	for _, p := range given {
		measure, verdict := p.attributes["measure"], p.attributes["verdict"]
		if all[measure].last() != verdict {
			all[measure] = append(all[measure], verdictOut{p.at, verdict})
		}
	}
	return all
}
