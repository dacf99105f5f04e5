// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package distribution

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const (
	root    = "../.."
	product = "github.com/llmfleet/llmfleet"
)

// component is one entry of a manifest, and the line where it stands.
type component struct {
	line            int
	module, version string
	path            string // that is imported
}

func components(t *testing.T, manifest []byte) []component {
	t.Helper()
	var sections map[string]yaml.Node
	require.NoError(t, yaml.Unmarshal(manifest, &sections))
	var all []component
	for name := range sections {
		section := sections[name]
		if section.Kind != yaml.SequenceNode {
			continue
		}
		for _, node := range section.Content {
			var entry struct{ Gomod, Import string }
			require.NoError(t, node.Decode(&entry))
			module, version, found := strings.Cut(entry.Gomod, " ")
			require.True(t, found, "line %d: %q has no version", node.Line, entry.Gomod)
			if entry.Import == "" {
				entry.Import = module
			}
			all = append(all, component{node.Line, module, version, entry.Import})
		}
	}
	require.NotEmpty(t, all)
	return all
}

// resolved is which version of each module a build has, by the go.mod in a folder.
func resolved(t *testing.T, folder string) map[string]string {
	t.Helper()
	edit := exec.Command("go", "mod", "edit", "-json")
	edit.Dir = folder
	text, err := edit.Output()
	require.NoError(t, err)
	var mod struct {
		Require []struct{ Path, Version string }
	}
	require.NoError(t, json.Unmarshal(text, &mod))
	versions := map[string]string{}
	for _, r := range mod.Require {
		versions[r.Path] = r.Version
	}
	return versions
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return text
}

var yamlBlock = regexp.MustCompile("(?s)\n```yaml\n(.*?)```")

// shown is the manifest of docs/distributions.md.
func shown(t *testing.T) []byte {
	t.Helper()
	block := yamlBlock.FindSubmatch(read(t, "docs/distributions.md"))
	require.NotNil(t, block, "the page begins with a manifest")
	return block[1]
}

// TestManifestSaysWhatIsBuilt: Go takes the newest version of a module that anybody requires, so an older one in the manifest
// would go unnoticed.
func TestManifestSaysWhatIsBuilt(t *testing.T) {
	built := resolved(t, filepath.Join(root, "dist"))
	for _, c := range components(t, read(t, "builder-config.yaml")) {
		assert.Equal(t, built[c.module], c.version, "builder-config.yaml:%d: write the version that dist/go.mod has of %s", c.line, c.module)
	}
}

// TestShownManifestIsOfOurTrain: who follows the page gets the versions that our own binary is made and tested with, and all
// of our components.
func TestShownManifestIsOfOurTrain(t *testing.T) {
	ours := components(t, read(t, "builder-config.yaml"))
	versions, missing := map[string]string{}, map[string]bool{}
	for _, c := range ours {
		versions[c.module] = c.version
		if c.module == product {
			missing[c.path] = true
		}
	}
	var manifest struct{ Dist struct{ Version string } }
	require.NoError(t, yaml.Unmarshal(read(t, "builder-config.yaml"), &manifest))
	versions[product] = "v" + manifest.Dist.Version

	for _, c := range components(t, shown(t)) {
		assert.Equal(t, versions[c.module], c.version, "docs/distributions.md, line %d of its manifest: edit the version of %s", c.line, c.module)
		delete(missing, c.path)
	}
	assert.Empty(t, missing, "components of ours that the manifest of docs/distributions.md leaves out")
}

// TestShownVersionsAreOfOurTrain: the numbers in the text and in its table.
func TestShownVersionsAreOfOurTrain(t *testing.T) {
	page, built := string(read(t, "docs/distributions.md")), resolved(t, filepath.Join(root, "dist"))
	list := exec.Command("go", "list", "-modfile=tools.mod", "-m", "-f", "{{.Version}}", "go.opentelemetry.io/collector/cmd/builder")
	list.Dir = root
	builder, err := list.Output()
	require.NoError(t, err)
	want := strings.TrimSpace(string(builder))
	for _, shown := range regexp.MustCompile(`builder@(\S+)`).FindAllStringSubmatch(page, -1) {
		assert.Equal(t, want, shown[1], "the builder")
	}
	beta, stable := built["go.opentelemetry.io/collector/receiver/otlpreceiver"], built["go.opentelemetry.io/collector/confmap"]
	require.Equal(t, want, beta, "the builder is of the collector's release")
	assert.Regexp(t, `(?m)^\| 0\.1 \| `+beta+` \| `+beta+`, or v0\.160\.0 \| `+stable+` \| 1\.26 \|$`, page)
}
