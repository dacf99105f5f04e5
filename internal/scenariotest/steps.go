// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package scenariotest reads the stories that tests of components play: what
// targets say and when, and what is told of them. Each component has its own
// sections and words; what is common to all is read here.
package scenariotest

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

// T is what a check needs of a test.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	FailNow()
}

// Run runs every story of testdata/scenarios in simulated time. read makes of one
// what is to be run.
func Run(t *testing.T, read func(T, *txtar.Archive) func(*testing.T)) {
	t.Helper()
	files, err := filepath.Glob("testdata/scenarios/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			require.NoError(t, err)
			synctest.Test(t, read(t, archive))
		})
	}
}

// Block is one part of a section: a heading that begins with @ and a time, or a
// range of times, and what stands under it.
type Block struct {
	Times []time.Duration // since the simulated clock began
	Words []string        // the rest of the heading
	Body  string
}

// Blocks reads a section.
func Blocks(t T, text string) []Block {
	t.Helper()
	var blocks []Block
	for part := range strings.SplitSeq("\n"+text, "\n@") {
		heading, body, _ := strings.Cut(part, "\n")
		if strings.TrimSpace(heading) == "" {
			continue
		}
		times, words := readTimes(t, strings.Fields(heading))
		blocks = append(blocks, Block{times, words, body})
	}
	return blocks
}

// readTimes reads "30s", or "0s..60s every 10s".
func readTimes(t T, heading []string) (times []time.Duration, rest []string) {
	t.Helper()
	first, last, isRange := strings.Cut(heading[0], "..")
	from := readDuration(t, first)
	if !isRange {
		return []time.Duration{from}, heading[1:]
	}
	require.GreaterOrEqual(t, len(heading), 3)
	require.Equal(t, "every", heading[1])
	pace := readDuration(t, heading[2])
	for at := from; at <= readDuration(t, last); at += pace {
		times = append(times, at)
	}
	return times, heading[3:]
}

func readDuration(t T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}
