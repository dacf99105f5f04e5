// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"maps"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// environmentOf returns the environment variables of a container, of which none is there twice: the API server takes no such pod.
func environmentOf(t *testing.T, w workload) map[string]string {
	t.Helper()
	given := map[string]string{}
	for _, variable := range w.container(t).Env {
		require.NotContains(t, given, variable.Name, w.name)
		given[variable.Name] = variable.Value
	}
	return given
}

// TestEnvironmentIsGiven: whatever environment variable a configuration names, its container has. HOSTNAME is from the container
// runtime, and in a pod that has no other it is the pod's name.
func TestEnvironmentIsGiven(t *testing.T) {
	t.Parallel()
	for _, w := range collectors(t) {
		t.Run(w.title, func(t *testing.T) {
			given := environmentOf(t, w)
			given["HOSTNAME"] = ""
			for _, reference := range regexp.MustCompile(`\$\{env:([^}]*)\}|key_env: (\S+)`).FindAllStringSubmatch(w.config, -1) {
				assert.Contains(t, given, reference[1]+reference[2])
			}
		})
	}
}

// TestExtraEnvCounts: a variable of one's own takes the place of the chart's of that name, and all others stay, in both roles.
func TestExtraEnvCounts(t *testing.T) {
	t.Parallel()
	yours := map[string]string{"GOMEMLIMIT": "500MiB", "POD_IP": "10.1.2.3", "HTTPS_PROXY": "http://proxy:3128"}
	var extra []map[string]string
	for name, value := range yours {
		extra = append(extra, map[string]string{"name": name, "value": value})
	}
	scaled := installation{flags: []string{"--values=" + chartFolder + "/ci/scale-out-values.yaml"}}
	before := workloads(t, scaled.render(t))
	after := workloads(t, scaled.render(t, withValues(t, map[string]any{"extraEnv": extra})))
	require.Len(t, after, 2)
	for i, w := range after {
		want := environmentOf(t, before[i])
		maps.Copy(want, yours)
		assert.Equal(t, want, environmentOf(t, w), w.name)
	}
}
