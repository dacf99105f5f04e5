// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetidentityprocessor

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/llmfleet/llmfleet/internal/emit"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestReadmeBlocks: every configuration of this processor in its README works.
func TestReadmeBlocks(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	found := 0
	for _, block := range yamlBlock.FindAllSubmatch(readme, -1) {
		retrieved, err := confmap.NewRetrievedFromYAML(block[1])
		require.NoError(t, err)
		conf, err := retrieved.AsConf()
		require.NoError(t, err)
		processors, err := conf.Sub("processors")
		require.NoError(t, err)
		for id := range processors.ToStringMap() {
			if id != componentType && !strings.HasPrefix(id, componentType+"/") {
				continue
			}
			found++
			body, err := processors.Sub(id)
			require.NoError(t, err)
			config := createDefaultConfig().(*Config)
			require.NoError(t, body.Unmarshal(config), "%s", block[1])
			assert.NoError(t, config.Validate(), "%s", block[1])
		}
	}
	assert.Positive(t, found)
}

// TestReadmeTables: every setting, and every metric but the canonical ones, has a
// row.
func TestReadmeTables(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	conf := confmap.New()
	require.NoError(t, conf.Marshal(createDefaultConfig()))
	for key := range conf.ToStringMap() {
		assert.Contains(t, string(readme), "\n| `"+key+"` |", "a row for the setting")
	}
	for _, m := range emit.Of(componentType) {
		if !strings.HasPrefix(m.Name, "llmfleet.engine.") {
			assert.Contains(t, string(readme), "\n| `"+m.Name+"` |", "a row for the metric")
		}
	}
}
