// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSubchart: the chart renders as a part of another, with that one's values for it and by its switch, and
// refuses typos there.
func TestSubchart(t *testing.T) {
	t.Parallel()
	child, err := filepath.Abs(chartFolder)
	require.NoError(t, err)
	parent := t.TempDir()
	for name, text := range map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: platform\nversion: 1.0.0\n" +
			"dependencies:\n  - {name: llmfleet, version: '*', repository: 'file://" + child + "', condition: llmfleet.enabled}\n",
		"values.yaml": "global: {region: eu}\nllmfleet:\n  enabled: true\n  presets: {gpu: {enabled: true}}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(parent, name), []byte(text), 0o600))
	}
	helm(t, "dependency", "build", parent)
	w := gateway(t, decode(t, helm(t, "template", "tools", parent, "--namespace="+namespace)))
	assert.Equal(t, "tools-llmfleet", w.name)
	assert.Contains(t, w.config, "job_name: gpu")

	switchedOff := helm(t, "template", "tools", parent, "--set=llmfleet.enabled=false")
	assert.NotContains(t, switchedOff, "kind:")
	assert.Equal(t, defaults.text(t), defaults.text(t, "--set=enabled=false"), "only a parent reads the switch")

	_, complaint, err := run(tool(t, "helm"), "template", "tools", parent, "--set=llmfleet.presets.gpus.enabled=true")
	assert.Error(t, err)
	assert.Contains(t, complaint, "'gpus'")
}
