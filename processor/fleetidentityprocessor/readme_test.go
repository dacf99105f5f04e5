// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetidentityprocessor

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/settingstest"
)

// TestReadmeBlocks: every configuration of this processor in its README works.
func TestReadmeBlocks(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	settingstest.Shown[*Config](t, NewFactory(), "processors", string(readme))
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
