// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// derived is a page as the collector's prometheus exporter writes it.
const derived = `# TYPE llmfleet_replica_outlier gauge
llmfleet_replica_outlier{pod="qwen-0"} 0
llmfleet_replica_outlier{pod="qwen-1"} 1
`

func TestFetch(t *testing.T) {
	status, text := http.StatusOK, derived
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	}))
	defer server.Close()
	page, err := Fetch(t.Context(), server.URL)
	require.NoError(t, err)
	require.Len(t, page, 1)
	status = http.StatusServiceUnavailable
	_, err = Fetch(t.Context(), server.URL)
	require.ErrorContains(t, err, "503")
	status, text = http.StatusOK, "no page"
	_, err = Fetch(t.Context(), server.URL)
	require.ErrorContains(t, err, "read the derived metrics")
}

func TestGaugesAreFoundByLabels(t *testing.T) {
	page, err := ReadPage(strings.NewReader(derived))
	require.NoError(t, err)
	read := func(name string, want map[string]string) map[string]float64 {
		values := map[string]float64{}
		page.Gauges(name, want, func(labels map[string]string, value float64) { values[labels["pod"]] = value })
		return values
	}
	assert.Equal(t, map[string]float64{"qwen-0": 0, "qwen-1": 1}, read("llmfleet_replica_outlier", nil))
	assert.Equal(t, map[string]float64{"qwen-1": 1}, read("llmfleet_replica_outlier", map[string]string{"pod": "qwen-1"}))
	assert.Empty(t, read("llmfleet_replica_outlier", map[string]string{"pod": "qwen-1", "state": "judged"}))
	assert.Empty(t, read("llmfleet_replica_stuck", nil))
}
