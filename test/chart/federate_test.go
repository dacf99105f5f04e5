// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// federateJob returns the scrape job that reads another Prometheus.
func federateJob(t *testing.T, w workload) map[string]any {
	t.Helper()
	jobs, ok := at(w.parsed(t).Receivers["prometheus/federate"], "config", "scrape_configs").([]any)
	require.True(t, ok)
	require.Len(t, jobs, 1)
	job, ok := jobs[0].(map[string]any)
	require.True(t, ok)
	return job
}

// TestFederateAsksTheURL: scheme, host and path of the URL are those of the question, also where Prometheus has a prefix.
func TestFederateAsksTheURL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ url, scheme, target, path string }{
		{"http://prometheus.monitoring.svc:9090", "http", "prometheus.monitoring.svc:9090", "/federate"},
		{"https://prometheus.example.com/", "https", "prometheus.example.com", "/federate"},
		{"http://mimir:8080/prometheus", "http", "mimir:8080", "/prometheus/federate"},
		{"https://[2001:db8::1]:9090/a/b/", "https", "[2001:db8::1]:9090", "/a/b/federate"},
	} {
		job := federateJob(t, gateway(t, federating(t, map[string]any{"url": c.url}).render(t)))
		assert.Equal(t, c.scheme, job["scheme"], c.url)
		assert.Equal(t, c.path, job["metrics_path"], c.url)
		assert.Equal(t, []any{map[string]any{"targets": []any{c.target}}}, job["static_configs"], c.url)
	}
}

// TestFederateMatches: selectors of one's own come behind the chart's as they were written, whatever quotes they have, and
// the collector reads them.
func TestFederateMatches(t *testing.T) {
	t.Parallel()
	before := federateJob(t, gateway(t, federating(t, map[string]any{"url": "http://prometheus:9090"}).render(t)))
	yours := []any{`{job='mine'}`, `{job="mine",instance=~"a\\.b"}`, "{job=`mine`}"}
	w := gateway(t, federating(t, map[string]any{"url": "http://prometheus:9090", "match": yours}).render(t))
	own, ok := at(before, "params", "match[]").([]any)
	require.True(t, ok)
	assert.Equal(t, append(own, yours...), at(federateJob(t, w), "params", "match[]"))
	answer, err := validate(t, w)
	assert.NoError(t, err, answer)

	assert.Equal(t, own, shownMatches(t), "docs/operations.md shows other selectors than the chart has")
}

// shownMatches returns the selectors of the job that docs/operations.md shows.
func shownMatches(t *testing.T) []any {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(repository, "docs", "operations.md"))
	require.NoError(t, err)
	_, after, found := strings.Cut(string(page), "```yaml\n- job_name: federate\n")
	require.True(t, found)
	text, _, found := strings.Cut(after, "\n```")
	require.True(t, found)
	var jobs []any
	require.NoError(t, yaml.Unmarshal([]byte("- job_name: federate\n"+text), &jobs))
	matches, ok := at(jobs[0], "params", "match[]").([]any)
	require.True(t, ok)
	return matches
}

// federating is an installation that reads another Prometheus.
func federating(t *testing.T, federate map[string]any) installation {
	t.Helper()
	federate["enabled"] = true
	return installation{flags: []string{withValues(t, map[string]any{
		"inputs": map[string]any{"scrape": map[string]any{"enabled": false}, "federate": federate},
	})}}
}
