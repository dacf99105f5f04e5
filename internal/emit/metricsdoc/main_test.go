// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
)

func TestReferenceIsWhatTheTableSays(t *testing.T) {
	made := filepath.Join(t.TempDir(), "metrics.md")
	require.NoError(t, write(made))
	want, err := os.ReadFile(made)
	require.NoError(t, err)
	got, err := os.ReadFile("../../../docs/metrics.md")
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), "docs/metrics.md is out of date: run `make generate`")
}

func TestRowsStandUnderTheirComponent(t *testing.T) {
	page, err := render([]emit.Metric{
		{Name: "llmfleet.a", Kind: fleet.Gauge, Unit: "s", Description: "One.", Of: emit.Replica, Attributes: []string{"x", "y"}, Enabled: true, Component: "first", Stability: "stable"},
		{Name: "llmfleet.b_ratio", Kind: fleet.Gauge, Unit: "1", Description: "Two.", Of: emit.Fleet, Component: "second", Stability: "development"},
		{Name: "llmfleet.c", Kind: fleet.Counter, Unit: "{request}", Description: "Three.", Of: emit.Fleet, Component: "first", Stability: "stable"},
	})
	require.NoError(t, err)
	_, tables, _ := strings.Cut(page, "\n## ")
	const columns = "\n\n| metric | in Prometheus | type | unit | of | more labels | by default | stability | meaning |\n|---|---|---|---|---|---|---|---|---|\n"
	assert.Equal(t, "first"+columns+
		"| `llmfleet.a` | `llmfleet_a_seconds` | gauge | `s` | replica | `x`, `y` | on | stable | One. |\n"+
		"| `llmfleet.c` | `llmfleet_c_total` | counter | `{request}` | fleet |  | off | stable | Three. |\n"+
		"\n## second"+columns+
		"| `llmfleet.b_ratio` | `llmfleet_b_ratio` | gauge | `1` | fleet |  | off | development | Two. |\n", tables)
}

func TestFileThatCannotBeWritten(t *testing.T) {
	require.Error(t, write(filepath.Join(t.TempDir(), "missing", "metrics.md")))
}
