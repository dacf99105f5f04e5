// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// manifest is one rendered object.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	source   string // the template
	text     string
}

type manifests []manifest

// documentStart begins each object that helm renders, and names the template.
var documentStart = regexp.MustCompile(`(?m)^---\n# Source: (\S+)\n`)

// decode splits what helm rendered into objects.
func decode(t *testing.T, rendered string) manifests {
	t.Helper()
	starts := documentStart.FindAllStringSubmatchIndex(rendered, -1)
	require.NotEmpty(t, starts, "nothing is rendered")
	var all manifests
	for i, start := range starts {
		end := len(rendered)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		m := manifest{source: rendered[start[2]:start[3]], text: rendered[start[1]:end]}
		require.NoError(t, yaml.Unmarshal([]byte(m.text), &m), m.source)
		require.NotEmpty(t, m.Kind, "%s renders something without a kind:\n%s", m.source, m.text)
		all = append(all, m)
	}
	return all
}

// of returns the objects of a kind, as the type of Kubernetes that T is.
func of[T any](t *testing.T, all manifests, kind string) []T {
	t.Helper()
	var found []T
	for _, m := range all {
		if m.Kind != kind {
			continue
		}
		var object T
		require.NoError(t, yaml.UnmarshalStrict([]byte(m.text), &object), m.Metadata.Name)
		found = append(found, object)
	}
	return found
}

// decodeInto reads a part of an object.
func decodeInto(t *testing.T, text string, into any) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal([]byte(text), into), text)
}
