// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstartconnector

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/judge/coldstart"
	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/settingstest"
)

func readReadme(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(readme)
}

// TestReadmeBlocks: every configuration of this connector in its README works.
func TestReadmeBlocks(t *testing.T) {
	settingstest.Shown[*Config](t, NewFactory(), "connectors", readReadme(t))
}

// TestReadmeTables: every setting, every metric and every stage has a row, and the
// first tier routes by what is on the resource of facts.
func TestReadmeTables(t *testing.T) {
	readme := readReadme(t)
	conf := confmap.New()
	require.NoError(t, conf.Marshal(createDefaultConfig()))
	for _, key := range conf.AllKeys() {
		assert.Contains(t, readme, "\n| `"+strings.ReplaceAll(key, confmap.KeyDelimiter, ".")+"` |")
	}
	for _, m := range emit.Of(componentType) {
		assert.Contains(t, readme, "\n| `"+m.Name+"` |")
	}
	for _, stage := range coldstart.Stages() {
		assert.Contains(t, readme, "\n| `"+stage.String()+"` |")
	}
	assert.Contains(t, readme, "routing_attributes: ["+lifecycle.KeyPod+"]")
}
