// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package scenariotest

import (
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"golang.org/x/tools/txtar"
)

// Archives are the stories of testdata/scenarios, each with its name. There is at
// least one.
func Archives(t T) iter.Seq2[string, *txtar.Archive] {
	t.Helper()
	files, err := filepath.Glob("testdata/scenarios/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return func(yield func(string, *txtar.Archive) bool) {
		for _, file := range files {
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			if !yield(strings.TrimSuffix(filepath.Base(file), ".txtar"), archive) {
				return
			}
		}
	}
}

// Run runs every story in simulated time. read makes of one what is to be run.
func Run(t *testing.T, read func(T, *txtar.Archive) func(*testing.T)) {
	t.Helper()
	for name, archive := range Archives(t) {
		t.Run(name, func(t *testing.T) { synctest.Test(t, read(t, archive)) })
	}
}

// Sections has each section of a story read by the function of its name. A story
// says what it shows, and has no section that nobody reads.
func Sections(t T, archive *txtar.Archive, read map[string]func(text string)) {
	t.Helper()
	require.NotEmpty(t, strings.TrimSpace(string(archive.Comment)), "a scenario says what it shows")
	for _, section := range archive.Files {
		require.Contains(t, slices.Collect(maps.Keys(read)), section.Name, "unknown section")
		read[section.Name](string(section.Data))
	}
}

// Config is the configuration of a component.
type Config interface{ Validate() error }

// Configure reads the YAML body of a component into its configuration.
func Configure(t T, yaml string, into Config) {
	t.Helper()
	retrieved, err := confmap.NewRetrievedFromYAML([]byte(yaml))
	require.NoError(t, err)
	conf, err := retrieved.AsConf()
	require.NoError(t, err)
	require.NoError(t, conf.Unmarshal(into))
	require.NoError(t, into.Validate())
}
