// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// annotationLimit is what Kubernetes lets the annotations of an object take, all together. `kubectl apply` keeps the whole
// object in one of them.
const annotationLimit = 256 << 10

// TestDashboardsAreGrafanas: each dashboard of deploy/grafana is in a ConfigMap of its own, to the letter, with the label that
// Grafana's sidecar looks for, and small enough for kubectl apply.
func TestDashboardsAreGrafanas(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(repository, "deploy", "grafana", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	want := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		want[filepath.Base(file)] = string(text)
	}
	all := installation{flags: []string{"--set=dashboards.enabled=true"}}.render(t)
	got := map[string]string{}
	for _, configMap := range of[corev1.ConfigMap](t, all, "ConfigMap") {
		if _, ok := configMap.Labels["grafana_dashboard"]; !ok {
			continue
		}
		assert.Equal(t, "1", configMap.Labels["grafana_dashboard"], configMap.Name)
		require.Len(t, configMap.Data, 1, configMap.Name)
		maps.Copy(got, configMap.Data)
		applied, err := yaml.Marshal(configMap)
		require.NoError(t, err)
		asJSON, err := yaml.YAMLToJSON(applied)
		require.NoError(t, err)
		assert.Less(t, len(asJSON), annotationLimit, configMap.Name)
	}
	require.Len(t, got, len(want))
	for file, text := range want {
		assert.JSONEq(t, text, got[file], file)
	}
	assert.NotContains(t, defaults.text(t), "grafana_dashboard")
}
