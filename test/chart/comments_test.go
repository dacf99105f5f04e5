// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// TestValuesAreExplained: whoever reads values.yaml finds at each key what it does: in a comment above it or above its
// paragraph, or at what it is a part of. A key that holds others may leave it to them.
func TestValuesAreExplained(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(chartFolder, "values.yaml"))
	require.NoError(t, err)
	var document yaml.Node
	require.NoError(t, yaml.Unmarshal(text, &document))
	blank := []int{0}
	for i, line := range strings.Split(string(text), "\n") {
		if strings.TrimSpace(line) == "" {
			blank = append(blank, i+1)
		}
	}
	assert.Empty(t, unexplained(document.Content[0], nil, blank))
}

// unexplained returns the keys of a map that nothing explains. Blank lines end a paragraph.
func unexplained(node *yaml.Node, above key, blank []int) []string {
	var found []string
	paragraph := false
	line := node.Line - 1
	for i := 0; i < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		if slices.ContainsFunc(blank, func(b int) bool { return line < b && b < name.Line }) {
			paragraph = false
		}
		line = name.Line
		paragraph = paragraph || isComment(name.HeadComment) || name.LineComment != "" || value.LineComment != ""
		k := append(slices.Clone(above), name.Value)
		switch {
		case paragraph:
		case value.Kind == yaml.MappingNode && value.Style&yaml.FlowStyle == 0:
			found = append(found, unexplained(value, k, blank)...)
		default:
			found = append(found, k.String())
		}
	}
	return found
}

// isComment reports whether a comment is more than a heading.
func isComment(comment string) bool {
	last := comment[strings.LastIndex(comment, "\n")+1:]
	return last != "" && !strings.HasPrefix(last, "# -----")
}
