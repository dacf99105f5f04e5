// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mine is a component of each sort that is not the chart's.
var mine = map[string]map[string]any{
	"receivers":  {"otlp/mine": map[string]any{"protocols": map[string]any{"grpc": map[string]any{"endpoint": "127.0.0.1:14317"}}}},
	"processors": {"batch/mine": map[string]any{}},
	"exporters":  {"debug/mine": map[string]any{}},
	"connectors": {"forward/mine": map[string]any{}},
	"extensions": {"pprof/mine": map[string]any{"endpoint": "127.0.0.1:1777"}},
}

// TestExtraAppends: whatever else is set, components of one's own come behind the chart's; nothing of the chart's is gone,
// changed or elsewhere, and the collector accepts the whole.
func TestExtraAppends(t *testing.T) {
	t.Parallel()
	for _, installed := range append(ciInstallations(t), defaults) {
		if installed.name == "ci extra" {
			continue // has its own
		}
		t.Run(installed.name, func(t *testing.T) {
			t.Parallel()
			before := gateway(t, installed.render(t)).parsed(t)
			extended := gateway(t, installed.render(t, extraFor(t, before)))
			after := extended.parsed(t)
			assertKept(t, "receivers", before.Receivers, after.Receivers)
			assertKept(t, "processors", before.Processors, after.Processors)
			assertKept(t, "exporters", before.Exporters, after.Exporters)
			assertKept(t, "connectors", before.Connectors, after.Connectors)
			assertKept(t, "extensions", before.Extensions, after.Extensions)
			assert.Subset(t, after.Service.Extensions, append(before.Service.Extensions, "pprof/mine"))
			assert.Equal(t, before.Service.Telemetry, after.Service.Telemetry)
			for name, p := range before.Service.Pipelines {
				assert.Equal(t, slices.Concat(p.Receivers, addition.Receivers), after.Service.Pipelines[name].Receivers, name)
				assert.Equal(t, slices.Concat(p.Processors, addition.Processors), after.Service.Pipelines[name].Processors, name)
				assert.Equal(t, slices.Concat(p.Exporters, addition.Exporters), after.Service.Pipelines[name].Exporters, name)
			}
			assert.Contains(t, after.Service.Pipelines, "logs/mine")
			answer, err := validate(t, extended)
			assert.NoError(t, err, "%s\n%s", answer, extended.config)
		})
	}
}

// gateway returns the workload that judges.
func gateway(t *testing.T, all manifests) workload {
	t.Helper()
	selected := selectedBy(t, map[string]string{"app.kubernetes.io/component": "gateway"}, all)
	require.Len(t, selected, 1)
	return selected[0]
}

// addition is what is added to each pipeline.
var addition = pipeline{[]string{"otlp/mine"}, []string{"batch/mine"}, []string{"debug/mine"}}

// extraFor returns the flag for values that add something to every pipeline of a configuration, and a pipeline.
func extraFor(t *testing.T, config collectorConfig) string {
	t.Helper()
	pipelines := map[string]any{
		"logs/mine":   pipeline{[]string{"otlp/mine"}, []string{}, []string{"forward/mine"}}.values(),
		"logs/mine-2": pipeline{[]string{"forward/mine"}, []string{}, []string{"debug/mine"}}.values(),
	}
	for name := range config.Service.Pipelines {
		pipelines[name] = addition.values()
	}
	extra := map[string]any{"pipelines": pipelines}
	for section, components := range mine {
		extra[section] = components
	}
	return withValues(t, map[string]any{"extra": extra})
}

func (p pipeline) values() map[string]any {
	return map[string]any{"receivers": p.Receivers, "processors": p.Processors, "exporters": p.Exporters}
}

// assertKept checks that a section still holds what it held, and one component more.
func assertKept(t *testing.T, section string, before, after map[string]map[string]any) {
	t.Helper()
	assert.Len(t, after, len(before)+1, section)
	for name, body := range before {
		require.Contains(t, after, name, section)
		assert.Equal(t, body, after[name], name)
	}
}
