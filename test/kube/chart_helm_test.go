// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/llmfleet/llmfleet/test/kube/controlplanetest"
)

// newcomer is somebody in a clone of this repository with a kubeconfig that allows everything, helm and kubectl.
type newcomer struct {
	clone string
	env   []string
}

func newNewcomer(t *testing.T, cp *controlplanetest.ControlPlane) newcomer {
	t.Helper()
	tools, err := filepath.Abs("../../.tools")
	require.NoError(t, err)
	path := strings.Join([]string{tools, filepath.Join(tools, "kube"), os.Getenv("PATH")}, string(filepath.ListSeparator))
	home, clone := t.TempDir(), t.TempDir()
	deploy, err := filepath.Abs("../../deploy")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(deploy, filepath.Join(clone, "deploy")))
	return newcomer{clone: clone, env: append(os.Environ(), "PATH="+path, "KUBECONFIG="+cp.AdminKubeconfig(), "HOME="+home,
		"HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)}
}

// does has a shell run a command, which has to succeed, and returns what it wrote.
func (n newcomer) does(t *testing.T, command string) string {
	t.Helper()
	output, problems, err := n.tries(command)
	require.NoError(t, err, "%s\n%s%s", command, output, problems)
	return output
}

// isRefused has a shell run a command, which has to fail, and returns what it said.
func (n newcomer) isRefused(t *testing.T, command string) string {
	t.Helper()
	_, problems, err := n.tries(command)
	require.Error(t, err, command)
	return problems
}

func (n newcomer) tries(command string) (output, problems string, err error) {
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", command)
	cmd.Dir, cmd.Env = n.clone, n.env
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err = cmd.Run()
	return out.String(), complaints.String(), err
}

// decodeObjects reads the documents of a YAML stream.
func decodeObjects(t *testing.T, stream string) (objects []*unstructured.Unstructured) {
	t.Helper()
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(stream), 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err)
		if len(object.Object) > 0 { // a document may hold nothing but comments
			objects = append(objects, object)
		}
	}
}
