// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// customResources are the files that define kinds of other projects, by the module that holds them.
var customResources = map[string][]string{
	"github.com/prometheus-operator/prometheus-operator": {
		"example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
	},
	"sigs.k8s.io/gateway-api-inference-extension": {
		"config/crd/bases/inference.networking.k8s.io_inferencepools.yaml",
		"config/crd/bases/inference.networking.x-k8s.io_inferencepools.yaml",
	},
	"sigs.k8s.io/karpenter": {"pkg/apis/crds/karpenter.sh_nodeclaims.yaml"},
	"sigs.k8s.io/lws":       {"config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml"},
}

// DefineCustomResources makes the API server take the kinds that a cluster with LLM engines has besides its own: PodMonitor,
// ServiceMonitor and PrometheusRule, InferencePool, NodeClaim and LeaderWorkerSet. No controller of theirs runs. The definitions are those
// of the modules that test/kube/crds/go.mod requires.
func (cp *ControlPlane) DefineCustomResources(t *testing.T) {
	t.Helper()
	api := cp.Dynamic.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	folders := moduleFolders(t)
	var names []string
	for module, files := range customResources {
		for _, file := range files {
			content, err := os.ReadFile(filepath.Join(folders[module], file))
			require.NoError(t, err)
			definition := &unstructured.Unstructured{}
			require.NoError(t, yaml.Unmarshal(content, definition))
			_, err = api.Create(t.Context(), definition, metav1.CreateOptions{})
			require.NoError(t, err)
			names = append(names, definition.GetName())
		}
	}
	for _, name := range names {
		cp.await(t, name+" to be served", func() bool {
			definition, err := api.Get(t.Context(), name, metav1.GetOptions{})
			return err == nil && established(definition)
		})
	}
}

// established tells whether the API server serves what a definition defines.
func established(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, condition := range conditions {
		if c, ok := condition.(map[string]any); ok && c["type"] == "Established" {
			return c["status"] == "True"
		}
	}
	return false
}

// moduleFolders has the go command fetch the modules of customResources and returns where they lie.
func moduleFolders(t *testing.T) map[string]string {
	t.Helper()
	args := []string{"mod", "download", "-json"}
	for module := range customResources {
		args = append(args, module)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.Join(repository(t), "test", "kube", "crds")
	cmd.Stderr = t.Output()
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	folders := map[string]string{}
	for decoder := json.NewDecoder(output); ; {
		var module struct{ Path, Dir, Error string }
		err := decoder.Decode(&module)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.Empty(t, module.Error)
		folders[module.Path] = module.Dir
	}
	require.NoError(t, cmd.Wait())
	return folders
}
