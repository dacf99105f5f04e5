// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/binarytest"
	"github.com/llmfleet/llmfleet/test/chart/kubeschema"
)

// TestObjectsConform: what every installation renders is what each release of Kubernetes takes, to the last field.
func TestObjectsConform(t *testing.T) {
	t.Parallel()
	all := installations(t)
	for _, release := range kubeschema.Releases {
		t.Run(release.Version, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			for i, installed := range all {
				text := installed.text(t, "--kube-version="+release.Version)
				require.NoError(t, os.WriteFile(filepath.Join(folder, strconv.Itoa(i)+".yaml"), []byte(text), 0o600))
			}
			seen := map[string]bool{}
			for _, v := range conform(t, release, folder) {
				i, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(v.Filename), ".yaml"))
				require.NoError(t, err)
				seen[all[i].name] = true
				assert.Equal(t, "statusValid", v.Status, "%s: %s %s: %s", all[i].name, v.Kind, v.Name, v.Msg)
			}
			assert.Len(t, seen, len(all), "kubeconform did not look at each")
		})
	}
}

// TestOtherManifestsConform: so is what else deploy/ has for people to apply.
func TestOtherManifestsConform(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(repository, "deploy", "autoscaling", "*.yaml"))
	require.NoError(t, err)
	// Without a kind it is a part of some program's configuration.
	files = slices.DeleteFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return !strings.Contains("\n"+string(text), "\nkind: ")
	})
	require.NotEmpty(t, files)
	for _, release := range kubeschema.Releases {
		for _, v := range conform(t, release, files...) {
			assert.Equal(t, "statusValid", v.Status, "%s: %s: %s", release.Version, filepath.Base(v.Filename), v.Msg)
		}
	}
}

// TestLint: helm itself finds nothing to say about any installation.
func TestLint(t *testing.T) {
	t.Parallel()
	for _, installed := range installations(t) {
		t.Run(installed.name, func(t *testing.T) {
			report := helm(t, append([]string{"lint", "--strict", chartFolder}, installed.flags...)...)
			assert.NotContains(t, report, "[WARNING]")
		})
	}
}

// TestConfigsAreValid: the collector accepts every configuration that is rendered, with the environment of its pod.
func TestConfigsAreValid(t *testing.T) {
	t.Parallel()
	for _, installed := range installations(t) {
		t.Run(installed.name, func(t *testing.T) {
			t.Parallel()
			for _, w := range workloads(t, installed.render(t)) {
				answer, err := validate(t, w)
				assert.NoError(t, err, "%s: %s\n%s", w.name, answer, w.config)
			}
		})
	}
}

// TestConfigsAreChecked: the collector does refuse a configuration with a mistake, as the tests run it.
func TestConfigsAreChecked(t *testing.T) {
	t.Parallel()
	w := workloads(t, defaults.render(t))[0]
	w.config = strings.Replace(w.config, "  fleet_outlier:\n", "  fleet_outlier:\n    windw: 5m\n", 1)
	answer, err := validate(t, w)
	assert.Error(t, err)
	assert.Contains(t, answer, "windw")
}

// defaults is the chart without any values.
var defaults = installation{name: "defaults"}

func validate(t *testing.T, w workload) (string, error) {
	t.Helper()
	command := exec.Command(binarytest.Collector(t), "validate", "--config="+writeFile(t, "config.yaml", w.local(t)))
	// As in the pod, nothing else of this machine's environment.
	command.Env = w.environment(t)
	answer, err := command.CombinedOutput()
	return string(answer), err
}

// TestOlderKubernetesIsRefused: before the oldest release that the chart is tested with, helm says so.
func TestOlderKubernetesIsRefused(t *testing.T) {
	t.Parallel()
	assert.Contains(t, refusal(t, "--kube-version=v1.33.9"), "kubeVersion: >=1.34.0-0")
	assert.Equal(t, "v1.34", kubeschema.Releases[0].Version[:len("v1.34")])
}
