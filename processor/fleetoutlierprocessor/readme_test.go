// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/llmfleet/llmfleet/internal/settingstest"
)

// TestDocumentedBlocks: every configuration of this processor that its README and
// the page about its alarm show works.
func TestDocumentedBlocks(t *testing.T) {
	for _, path := range []string{"README.md", "../../docs/outliers.md"} {
		page, err := os.ReadFile(path)
		require.NoError(t, err)
		settingstest.Shown[*Config](t, NewFactory(), "processors", string(page))
	}
}

// TestDocumentedDefaults: the block that says to be the defaults of the alarm is.
func TestDocumentedDefaults(t *testing.T) {
	page, err := os.ReadFile("../../docs/outliers.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## Configuration\n")
	require.True(t, found)
	shown, err := settingstest.Blocks(t, section)[0].Sub("processors::" + componentType)
	require.NoError(t, err)
	alarm := &AlarmConfig{}
	shown, err = shown.Sub(keyAlarm)
	require.NoError(t, err)
	require.NoError(t, shown.Unmarshal(alarm))
	assert.Equal(t, createDefaultAlarm(), alarm)
}

// TestReadmeTable: every setting has a row.
func TestReadmeTable(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	conf := confmap.New()
	require.NoError(t, conf.Marshal(createDefaultConfig()))
	for _, key := range conf.AllKeys() {
		key = strings.ReplaceAll(key, confmap.KeyDelimiter, ".")
		assert.Contains(t, string(readme), "\n| `"+key+"` |")
	}
}
