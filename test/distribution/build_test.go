// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package distribution

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// run runs a command in a folder, with settings of Go beside those of the environment.
func run(t *testing.T, folder string, environment []string, command ...string) string {
	t.Helper()
	c := exec.Command(command[0], command[1:]...)
	c.Dir = folder
	c.Env = append(os.Environ(), append([]string{"GOWORK=off", "GOFLAGS=-buildvcs=false"}, environment...)...)
	answer, err := c.CombinedOutput()
	require.NoError(t, err, "%s\n%s", strings.Join(command, " "), answer)
	return string(answer)
}

// TestShownManifestBuilds: a folder outside of this tree that holds nothing but the manifest of docs/distributions.md becomes a
// collector with our components. They are not fetched but taken from this tree by the path that the page tells of; compiling,
// as the page says, needs no network.
func TestShownManifestBuilds(t *testing.T) {
	t.Parallel()
	here, err := filepath.Abs(root)
	require.NoError(t, err)
	folder := t.TempDir()
	builder := filepath.Join(folder, "builder")
	run(t, here, nil, "go", "build", "-modfile=tools.mod", "-o", builder, "go.opentelemetry.io/collector/cmd/builder")

	var manifest strings.Builder
	for line := range strings.Lines(string(shown(t))) {
		manifest.WriteString(line)
		if strings.Contains(line, "import: "+product) {
			manifest.WriteString("    path: " + here + "\n")
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "builder-config.yaml"), []byte(manifest.String()), 0o600))
	run(t, folder, nil, builder, "--config=builder-config.yaml", "--skip-strict-versioning=false", "--skip-compilation")
	run(t, folder, []string{"GOPROXY=off"}, builder, "--config=builder-config.yaml", "--skip-generate", "--skip-get-modules")

	var has struct {
		Receivers, Processors, Connectors []struct{ Name string }
	}
	answer := run(t, folder, nil, filepath.Join(folder, "otelcol-acme", "otelcol-acme"), "components")
	require.NoError(t, yaml.Unmarshal([]byte(answer), &has))
	var names []string
	for _, c := range append(append(has.Receivers, has.Processors...), has.Connectors...) {
		names = append(names, c.Name)
	}
	assert.ElementsMatch(t, []string{
		"otlp", "k8s_fleet", "fleet_identity", "fleet_outlier", "tenant_share", "canary_delta", "tenant_usage", "cold_start", "fleet_events",
	}, names)
}
