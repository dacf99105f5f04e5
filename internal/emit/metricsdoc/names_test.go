// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// folder is a folder of lists by the names of their files.
func folder(t *testing.T, lists map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range lists {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

func TestNamesThatWerePromisedStay(t *testing.T) {
	var out bytes.Buffer
	err := printChanges(&out, filepath.Join(root, names))
	require.NoError(t, err, out.String())
}

// Each case is one name in the last release and now.
func TestWhatMayChange(t *testing.T) {
	const a, other = "a | gauge | s | fleet | x | on | ", "a | counter | s | fleet | x | on | "
	for name, c := range map[string]struct {
		was, is string
		broken  bool
	}{
		"development goes":           {a + "development\n", "", false},
		"alpha goes":                 {a + "alpha\n", "", false},
		"beta goes":                  {a + "beta\n", "", true},
		"stable goes":                {a + "stable\n", "", true},
		"deprecated goes":            {a + "deprecated\n", "", false},
		"beta stays":                 {a + "beta\n", a + "beta\n", false},
		"beta becomes stable":        {a + "beta\n", a + "stable\n", false},
		"beta is deprecated":         {a + "beta\n", a + "deprecated\n", false},
		"beta becomes alpha":         {a + "beta\n", a + "alpha\n", true},
		"stable becomes beta":        {a + "stable\n", a + "beta\n", true},
		"alpha has another type":     {a + "alpha\n", other + "alpha\n", false},
		"beta has another type":      {a + "beta\n", other + "beta\n", true},
		"and is said to be stable":   {a + "beta\n", other + "stable\n", true},
		"beta has one label more":    {a + "beta\n", "a | gauge | s | fleet | x,y | on | beta\n", true},
		"beta is off by default now": {a + "beta\n", "a | gauge | s | fleet | x | off | beta\n", true},
		"beta is new":                {"", a + "beta\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := printChanges(&out, folder(t, map[string]string{"v0.1.0.txt": listHead + c.was, "next.txt": listHead + c.is}))
			if c.broken {
				require.ErrorIs(t, err, errPromise)
				require.ErrorContains(t, err, " a")
				return
			}
			require.NoError(t, err)
			if c.was == c.is {
				assert.Equal(t, "since v0.1.0.txt: 0 changes\n", out.String())
			}
		})
	}
}

func TestChangesAreToldByName(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, printChanges(&out, folder(t, map[string]string{
		"v0.9.0.txt":  "z | gauge | s | fleet |  | on | beta\n",
		"v0.10.0.txt": "a | gauge | s | fleet |  | on | alpha\nb | gauge | s | fleet |  | on | alpha\nd | gauge | s | fleet |  | on | beta\n",
		"next.txt":    "b | counter | s | fleet |  | on | beta\nc | gauge | 1 | node | x | off | beta\nd | gauge | s | fleet |  | on | beta\n",
	})))
	assert.Equal(t, `since v0.10.0.txt: 3 changes
gone     a, which was alpha
changed  b | gauge | s | fleet |  | on | alpha
      to b | counter | s | fleet |  | on | beta
new      c | gauge | 1 | node | x | off | beta
`, out.String())
}

func TestBeforeTheFirstRelease(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, printChanges(&out, folder(t, map[string]string{"next.txt": listHead + "a | gauge | s | fleet |  | on | beta\n"})))
	assert.Equal(t, "no release yet: all 1 names are new\n", out.String())
}

func TestFilesThatAreNoLists(t *testing.T) {
	for name, lists := range map[string]map[string]string{
		"is not named for a release": {"next.txt": "", "vNext.txt": ""},
		"is no line of a list":       {"next.txt": "llmfleet_a\n"},
	} {
		require.ErrorContains(t, printChanges(&bytes.Buffer{}, folder(t, lists)), name)
	}
}
