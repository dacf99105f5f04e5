// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package distribution

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEveryReleaseIsToldOf: a release of the changelog has its row in the table of upgrades; once it is released, also a list of
// its names, from which the next one tells what changed.
func TestEveryReleaseIsToldOf(t *testing.T) {
	releases := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+)( \(unreleased\))?`).FindAllStringSubmatch(string(read(t, "CHANGELOG.md")), -1)
	require.NotEmpty(t, releases)
	operations := string(read(t, "docs/operations.md"))
	for _, r := range releases {
		version, unreleased := r[1], r[2] != ""
		assert.Contains(t, operations, "\n| "+version+" | ", "docs/operations.md: what changes with %s", version)
		if !unreleased {
			assert.FileExists(t, filepath.Join(root, "docs", "names", "v"+version+".txt"), "copy docs/names/next.txt")
		}
	}
}
