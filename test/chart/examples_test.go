// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestExamplesAreRendered: what lies beside the values of an example is what the chart makes of them, file by file.
func TestExamplesAreRendered(t *testing.T) {
	t.Parallel()
	for _, installed := range exampleInstallations(t) {
		t.Run(installed.name, func(t *testing.T) {
			t.Parallel()
			want := map[string]string{}
			for _, m := range installed.render(t) {
				name := filepath.Base(m.source)
				want[name] += "---\n# Source: " + m.source + "\n" + m.text
			}
			folder := filepath.Join(filepath.Dir(installed.flags[0][len("--values="):]), "rendered")
			if *update {
				write(t, folder, want)
			}
			got := map[string]string{}
			files, err := os.ReadDir(folder)
			require.NoError(t, err)
			for _, file := range files {
				text, err := os.ReadFile(filepath.Join(folder, file.Name()))
				require.NoError(t, err)
				got[file.Name()] = string(text)
			}
			assert.Equal(t, want, got, "write it anew with `go test ./chart -run TestExamplesAreRendered -update` in test/")
		})
	}
}

// write replaces what is in a folder.
func write(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(folder))
	require.NoError(t, os.MkdirAll(folder, 0o755))
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
	}
}
