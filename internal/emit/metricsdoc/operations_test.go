// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var code = regexp.MustCompile("`([a-z0-9_]+)`")

// codes are the words in a table's cell that are set as code.
func codes(cell string) []string {
	var all []string
	for _, m := range code.FindAllStringSubmatch(cell, -1) {
		all = append(all, m[1])
	}
	return all
}

// What llmfleet tells of itself is explained to those who operate it, and nothing
// is that it does not tell.
func TestEverySelfMetricIsExplained(t *testing.T) {
	_, part, found := strings.Cut(read(t, filepath.Join(root, "docs", "operations.md")), "\n## What it tells of itself\n")
	require.True(t, found)
	part, _, _ = strings.Cut(part, "\n## ")
	var explained []string
	for line := range strings.Lines(part) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			continue
		}
		for _, name := range codes(cells[1]) {
			for _, component := range codes(cells[2]) {
				explained = append(explained, component+"_"+name)
			}
		}
	}

	all, err := collect(root)
	require.NoError(t, err)
	kind := regexp.MustCompile(`^otelcol_(processor|connector|receiver)_`)
	var told []string
	for i := range all {
		if all[i].of == itself {
			told = append(told, kind.ReplaceAllString(all[i].name, ""))
		}
	}
	require.NotEmpty(t, told)
	assert.ElementsMatch(t, told, explained)
}
