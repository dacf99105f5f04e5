// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantshareprocessor

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/llmfleet/llmfleet/internal/judge/share"
	"github.com/llmfleet/llmfleet/internal/settingstest"
)

// TestDocumentedBlocks: every configuration that the README shows works.
func TestDocumentedBlocks(t *testing.T) {
	settingstest.Shown[*Config](t, NewFactory(), "processors", readme(t))
}

// TestReadmeTables: every setting has a row, and every reason.
func TestReadmeTables(t *testing.T) {
	text := readme(t)
	conf := confmap.New()
	require.NoError(t, conf.Marshal(createDefaultConfig()))
	for key := range conf.ToStringMap() {
		assert.Contains(t, text, "\n| `"+key+"` |")
	}
	for r := reason(share.Given) + 1; r < reasonCount; r++ {
		assert.Contains(t, text, "\n| `"+r.String()+"` |")
	}
}

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(text)
}
