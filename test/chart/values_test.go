// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// installation is one way to install the chart: the values that helm is given, as its flags.
type installation struct {
	name  string
	flags []string
}

// installations returns every way that is shipped or shown: the values of ci/ and of examples/, and what the pages tell.
func installations(t *testing.T) []installation {
	t.Helper()
	shown, err := shownInstallations()
	require.NoError(t, err)
	return slices.Concat(ciInstallations(t), exampleInstallations(t), shown)
}

func ciInstallations(t *testing.T) []installation {
	t.Helper()
	var all []installation
	for _, file := range glob(t, "ci/*-values.yaml") {
		name := strings.TrimSuffix(filepath.Base(file), "-values.yaml")
		all = append(all, installation{"ci " + name, []string{"--values=" + file}})
	}
	return all
}

func exampleInstallations(t *testing.T) []installation {
	t.Helper()
	var all []installation
	for _, file := range glob(t, "examples/*/values.yaml") {
		all = append(all, installation{"example " + filepath.Base(filepath.Dir(file)), []string{"--values=" + file}})
	}
	return all
}

// glob returns the files of the chart that a pattern matches; there are some.
func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chartFolder, pattern))
	require.NoError(t, err)
	require.NotEmpty(t, files, "the chart has no %s", pattern)
	return files
}

// namespace is where the tests render the chart to.
const namespace = "monitoring"

// render returns what helm makes of the chart for the newest Kubernetes.
func (i installation) render(t *testing.T, more ...string) manifests {
	t.Helper()
	return decode(t, i.text(t, more...))
}

func (i installation) text(t *testing.T, more ...string) string {
	t.Helper()
	args := slices.Concat([]string{"template", "llmfleet", chartFolder, "--namespace=" + namespace}, i.flags, more)
	render, _ := renders.LoadOrStore(strings.Join(args, "\n"), sync.OnceValues(func() (string, error) {
		written, complaint, err := run(tool(t, "helm"), args...)
		if err != nil {
			err = fmt.Errorf("helm %q: %w: %s", args, err, complaint)
		}
		return written, err
	}))
	text, err := render.(func() (string, error))()
	require.NoError(t, err)
	return text
}

// renders remembers what helm rendered: many tests look at the same.
var renders sync.Map
