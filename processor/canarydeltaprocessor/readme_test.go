// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canarydeltaprocessor

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/llmfleet/llmfleet/internal/judge/canary"
	"github.com/llmfleet/llmfleet/internal/settingstest"
)

// TestDocumentedBlocks: every configuration that the README shows works.
func TestDocumentedBlocks(t *testing.T) {
	settingstest.Shown[*Config](t, NewFactory(), "processors", readme(t))
}

// TestReadmeTables: every setting has a row, and every measure, verdict, reason and
// reason to withhold.
func TestReadmeTables(t *testing.T) {
	text := readme(t)
	conf := confmap.New()
	require.NoError(t, conf.Marshal(createDefaultConfig()))
	rows := canary.Names()
	for _, key := range conf.AllKeys() {
		rows = append(rows, strings.ReplaceAll(key, confmap.KeyDelimiter, "."))
	}
	for v := range canary.VerdictCount {
		rows = append(rows, v.String())
	}
	for r := range canary.ReasonCount {
		rows = append(rows, r.String())
	}
	for r := reason(canary.Given) + 1; r < reasonCount; r++ {
		rows = append(rows, r.String())
	}
	for _, row := range rows {
		assert.Contains(t, text, "\n| `"+row+"` |")
	}
}

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(text)
}
