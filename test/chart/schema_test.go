// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/chart/kubeschema"
)

// verdict is what kubeconform says of one object.
type verdict struct{ Filename, Kind, Name, Status, Msg string }

// conform checks files, or all in a folder, against the schemas of a release, and returns a verdict on each object.
func conform(t *testing.T, release kubeschema.Release, files ...string) []verdict {
	t.Helper()
	schemas := t.TempDir()
	require.NoError(t, kubeschema.Write(schemas, release))
	flags := []string{"-strict", "-verbose", "-output=json", "-n=2", "-schema-location=" + kubeschema.Location(schemas)}
	written, complaint, _ := run(tool(t, "kubeconform"), append(flags, files...)...)
	var report struct{ Resources []verdict }
	require.NoError(t, json.Unmarshal([]byte(written), &report), "%s%s", written, complaint)
	require.NotEmpty(t, report.Resources, complaint)
	return report.Resources
}

const soundPod = `
apiVersion: v1
kind: Pod
metadata: {name: sound, labels: {app: sound}}
spec:
  containers:
    - name: sound
      image: sound
      resources: {limits: {memory: 64Mi, cpu: 0.5}}
      livenessProbe: {httpGet: {port: health}}
`

// TestSchemasRefuse: the schemas of every release refuse what the apiserver would, and nothing else.
func TestSchemasRefuse(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ manifest, word string }{
		"sound pod":       {soundPod, ""},
		"misspelt field":  {strings.Replace(soundPod, "image:", "imag:", 1), "imag"},
		"misplaced field": {strings.Replace(soundPod, "spec:\n", "spec:\n  resource: {}\n", 1), "resource"},
		"field twice":     {strings.Replace(soundPod, "      image: sound\n", "      image: sound\n      image: other\n", 1), "image"},
		"missing field":   {strings.Replace(soundPod, "    - name: sound\n      image", "    - image", 1), "name"},
		"wrong type":      {strings.Replace(soundPod, "port: health", "port: [health]", 1), "port"},
		"wrong quantity":  {strings.Replace(soundPod, "64Mi", "64MiB", 1), "memory"},
		"wrong version":   {strings.Replace(soundPod, "apiVersion: v1", "apiVersion: v2", 1), "could not find schema"},
		"sound monitor": {
			"apiVersion: monitoring.coreos.com/v1\nkind: PodMonitor\nmetadata: {name: a}\nspec: {selector: {}, podMetricsEndpoints: [{port: a, honorLabels: true}]}\n", "",
		},
		"misspelt field of a monitor": {
			"apiVersion: monitoring.coreos.com/v1\nkind: PodMonitor\nmetadata: {name: a}\nspec: {selector: {}, podMetricsEndpoints: [{port: a, honourLabels: true}]}\n", "honourLabels",
		},
		"misspelt metadata of a monitor": {
			"apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: a, label: {}}\nspec: {selector: {}, endpoints: []}\n", "label",
		},
		"sound scaled object": {
			"apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: a}\nspec: {scaleTargetRef: {name: a}, triggers: [{type: prometheus, metadata: {query: a}}]}\n", "",
		},
		"misspelt field of a scaled object": {
			"apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: a}\nspec: {scaleTargetRef: {name: a}, trigers: [], triggers: [{type: prometheus, metadata: {query: a}}]}\n", "trigers",
		},
	}
	folder := t.TempDir()
	for name, c := range cases {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name+".yaml"), []byte(c.manifest), 0o600))
	}
	for _, release := range kubeschema.Releases {
		t.Run(release.Version, func(t *testing.T) {
			seen := 0
			for _, v := range conform(t, release, folder) {
				name := strings.TrimSuffix(filepath.Base(v.Filename), ".yaml")
				seen++
				if word := cases[name].word; word != "" {
					assert.NotEqual(t, "statusValid", v.Status, name)
					assert.Contains(t, v.Msg, word, name)
				} else {
					assert.Equal(t, "statusValid", v.Status, "%s: %s", name, v.Msg)
				}
			}
			assert.Equal(t, len(cases), seen)
		})
	}
}

// TestSchemasDiffer: each release has its own schemas. Device taints are v1 since 1.37 only.
func TestSchemasDiffer(t *testing.T) {
	t.Parallel()
	for _, release := range kubeschema.Releases {
		folder := t.TempDir()
		require.NoError(t, kubeschema.Write(folder, release))
		_, err := os.Stat(filepath.Join(folder, "devicetaintrule-resource-v1.json"))
		assert.Equal(t, release.Version >= "v1.37", err == nil, release.Version)
	}
}
