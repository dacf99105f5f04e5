// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryImportFollowsTheArrow(t *testing.T) {
	packages := listPackages(t)
	require.Contains(t, packages, module+"internal/archtest", "go list has missed this very package")
	assert.Empty(t, packages.check(house))
}

func TestArrowPointsDown(t *testing.T) {
	var above []string
	for _, r := range house {
		for imported := range strings.FieldsSeq(r.imports) {
			assert.Contains(t, above, imported, "%s imports a room that is not below it", r.path)
		}
		above = append(above, r.path)
	}
	assert.Len(t, slices.Compact(slices.Sorted(slices.Values(above))), len(house), "a room stands twice in the table")
}

func TestSourcesAreShortTimelessAndLicensed(t *testing.T) {
	sources := readSources(t)
	require.NotEmpty(t, sources)
	for _, s := range sources {
		assert.Empty(t, s.checkSize())
		assert.Empty(t, s.checkClock(house))
		assert.Empty(t, s.checkLicence())
	}
}
