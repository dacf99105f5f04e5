// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// workload is a StatefulSet or Deployment of the chart, with the configuration that its collector reads.
type workload struct {
	name   string
	title  string // its name with that of the installation
	pod    corev1.PodTemplateSpec
	claims []corev1.PersistentVolumeClaim
	config string
	all    manifests // what is rendered together with it
}

// workloads returns the collectors of a rendered chart.
func workloads(t *testing.T, all manifests) []workload {
	t.Helper()
	var found []workload
	for _, s := range of[appsv1.StatefulSet](t, all, "StatefulSet") {
		found = append(found, workload{name: s.Name, pod: s.Spec.Template, claims: s.Spec.VolumeClaimTemplates, all: all})
	}
	for _, d := range of[appsv1.Deployment](t, all, "Deployment") {
		found = append(found, workload{name: d.Name, pod: d.Spec.Template, all: all})
	}
	require.NotEmpty(t, found, "nothing runs")
	configMaps := of[corev1.ConfigMap](t, all, "ConfigMap")
	for i := range found {
		found[i].config = found[i].mountedConfig(t, configMaps)
	}
	return found
}

// collectors returns the workloads of every installation.
func collectors(t *testing.T) []workload {
	t.Helper()
	var found []workload
	for _, installed := range append(installations(t), defaults) {
		for _, w := range workloads(t, installed.render(t)) {
			w.title = installed.name + " " + w.name
			found = append(found, w)
		}
	}
	return found
}

func (w workload) container(t *testing.T) corev1.Container {
	t.Helper()
	require.Len(t, w.pod.Spec.Containers, 1, w.name)
	return w.pod.Spec.Containers[0]
}

// mountedConfig follows --config through the mounts and volumes of the pod to the text in a ConfigMap.
func (w workload) mountedConfig(t *testing.T, all []corev1.ConfigMap) string {
	t.Helper()
	c := w.container(t)
	var path string
	for _, arg := range c.Args {
		if after, ok := strings.CutPrefix(arg, "--config="); ok {
			require.Empty(t, path, "%s has two --config", w.name)
			path = after
		}
	}
	require.NotEmpty(t, path, "%s has no --config", w.name)
	for _, mount := range c.VolumeMounts {
		key, inside := strings.CutPrefix(path, mount.MountPath+"/")
		if path == mount.MountPath {
			key, inside = mount.SubPath, true
		}
		if !inside {
			continue
		}
		for _, volume := range w.pod.Spec.Volumes {
			if volume.Name == mount.Name && volume.ConfigMap != nil {
				return dataOf(t, all, volume.ConfigMap.Name, key)
			}
		}
	}
	t.Fatalf("%s: no ConfigMap is mounted at %s", w.name, path)
	return ""
}

func dataOf(t *testing.T, all []corev1.ConfigMap, name, key string) string {
	t.Helper()
	for _, configMap := range all {
		if configMap.Name == name {
			require.Contains(t, configMap.Data, key, name)
			return configMap.Data[key]
		}
	}
	t.Fatalf("there is no ConfigMap %s", name)
	return ""
}

// environment is what the kubelet and its runtime would give the container, with a word of its own for each secret.
func (w workload) environment(t *testing.T) []string {
	t.Helper()
	fields := map[string]string{
		"metadata.name": "llmfleet-0", "metadata.namespace": namespace, "metadata.uid": "5ad7c1d2-6d0e-4e5b-8a0c-0f3f8f9a0001",
		"status.podIP": "127.0.0.1", "spec.nodeName": "node-1",
		"metadata.labels['apps.kubernetes.io/pod-index']": "0",
	}
	environment := []string{"HOSTNAME=" + fields["metadata.name"]}
	for _, variable := range w.container(t).Env {
		value := variable.Value
		if from := variable.ValueFrom; from != nil {
			switch {
			case from.FieldRef != nil:
				require.Contains(t, fields, from.FieldRef.FieldPath, variable.Name)
				value = fields[from.FieldRef.FieldPath]
			case from.SecretKeyRef != nil:
				value = "secret-of-" + from.SecretKeyRef.Name
			default:
				t.Fatalf("%s: the environment variable %s is of a kind that the test does not know", w.name, variable.Name)
			}
		}
		environment = append(environment, variable.Name+"="+value)
	}
	return environment
}

// accountFolder is where the kubelet mounts the token of the pod's account.
const accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

// local returns the configuration with every mounted folder replaced by one of this machine, which exists and has the files
// that the configuration names.
func (w workload) local(t *testing.T) string {
	t.Helper()
	var folders []string
	for _, mount := range w.container(t).VolumeMounts {
		folders = append(folders, mount.MountPath)
	}
	if mounted := w.pod.Spec.AutomountServiceAccountToken; mounted != nil && *mounted {
		folders = append(folders, accountFolder)
	}
	// A folder may be mounted inside of another: the inner one counts.
	slices.SortFunc(folders, func(a, b string) int { return len(b) - len(a) })
	var replaced []string
	for _, folder := range folders {
		here := t.TempDir()
		replaced = append(replaced, folder, here)
		for _, named := range regexp.MustCompile(regexp.QuoteMeta(folder)+`/([\w.-]+)`).FindAllStringSubmatch(w.config, -1) {
			require.NoError(t, os.WriteFile(filepath.Join(here, named[1]), []byte("of a secret"), 0o600))
		}
	}
	return strings.NewReplacer(replaced...).Replace(w.config)
}

// collectorConfig is what the tests read of a collector's configuration.
type collectorConfig struct {
	Receivers, Processors, Exporters, Connectors, Extensions map[string]map[string]any
	Service                                                  struct {
		Extensions []string
		Pipelines  map[string]pipeline
		Telemetry  map[string]any
	}
}

type pipeline struct{ Receivers, Processors, Exporters []string }

func (w workload) parsed(t *testing.T) collectorConfig {
	t.Helper()
	var config collectorConfig
	require.NoError(t, yaml.Unmarshal([]byte(w.config), &config), w.config)
	return config
}

// at follows keys into a configuration; nil where there is nothing.
func at(tree any, keys ...string) any {
	for _, key := range keys {
		branch, ok := tree.(map[string]any)
		if !ok {
			return nil
		}
		tree = branch[key]
	}
	return tree
}

// component returns the type of a component's name: what stands before a slash.
func component(name string) string { before, _, _ := strings.Cut(name, "/"); return before }

// writeFile writes a file into a folder of the test's own and returns its path.
func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
