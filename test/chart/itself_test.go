// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pushes are the exporters that send metrics, with those that send what a gateway says of itself; a page is for whoever comes.
var pushes = map[string]string{"prometheus_remote_write": "prometheus_remote_write/self", "otlp_grpc": "otlp_grpc", "otlp_http": "otlp_http"}

// TestItselfIsPushed: a gateway that pushes what it found out pushes what it says of itself to the same places, from its own
// telemetry page and by the names of that; one that is scraped alone does not, as the monitors scrape that page, too.
func TestItselfIsPushed(t *testing.T) {
	t.Parallel()
	seen := map[bool]int{}
	for _, installed := range append(installations(t), defaults) {
		w := gateway(t, installed.render(t))
		config := w.parsed(t)
		var want []string
		for _, exporter := range config.Service.Pipelines["metrics"].Exporters {
			if self, ok := pushes[exporter]; ok {
				want = append(want, self)
			}
		}
		seen[len(want) > 0]++
		assert.Equal(t, want, config.Service.Pipelines["metrics/self"].Exporters, installed.name)
		self, ok := config.Receivers["prometheus/self"]
		assert.Equal(t, len(want) > 0, ok, installed.name)
		if !ok {
			continue
		}
		assertSameStore(t, config.Exporters)
		assert.Equal(t, []string{"prometheus/self"}, config.Service.Pipelines["metrics/self"].Receivers, installed.name)
		jobs, _ := at(self, "config", "scrape_configs").([]any)
		require.Len(t, jobs, 1, installed.name)
		statics, _ := at(jobs[0], "static_configs").([]any)
		require.Len(t, statics, 1, installed.name)
		targets, _ := at(statics[0], "targets").([]any)
		require.Len(t, targets, 1, installed.name)
		assert.Equal(t, listening(t, config)["telemetry"], portOf(t, targets[0].(string)), installed.name)
		assert.Equal(t, "${env:HOSTNAME}", at(statics[0], "labels", "instance"), installed.name)
	}
	assert.Positive(t, seen[true])
	assert.Positive(t, seen[false])
}

// assertSameStore checks that what a gateway says of itself goes where the rest goes, and that nothing is added to its names.
func assertSameStore(t *testing.T, exporters map[string]map[string]any) {
	t.Helper()
	store, ok := exporters["prometheus_remote_write"]
	if !ok {
		return
	}
	want := maps.Clone(store)
	want["add_metric_suffixes"] = false
	assert.Equal(t, want, exporters["prometheus_remote_write/self"])
}
