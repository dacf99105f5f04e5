// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package scenariotest reads the stories that tests of components play: what
// targets say and when, and what is told of them. Each component has its own
// sections and words; what is common to all is read here. Processors that derive
// metrics have more in common: a Deriver plays their stories, and holds them to
// what is true of each.
package scenariotest

import (
	"cmp"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// T is what a check needs of a test.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	FailNow()
}

// Epoch is when simulated time begins.
var Epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Wait lets simulated time pass, and everything that happens meanwhile.
func Wait(until time.Time) {
	time.Sleep(time.Until(until))
	synctest.Wait()
}

// Step is one thing that happens at one time.
type Step struct {
	At     time.Duration // since simulated time began
	Action string        // one of the component's own words; "" for a page
	Words  []string      // of an action: the rest of its heading
	Body   string        // of an action: what stands under it
	Page   Page
}

// Steps reads a section of steps, in the order of their times. A block whose
// heading has one of the words for actions first is an action, any other is pages.
func Steps(t T, text string, actions ...string) []Step {
	t.Helper()
	var steps []Step
	for _, block := range Blocks(t, text) {
		if len(block.Words) > 0 && slices.Contains(actions, block.Words[0]) {
			for _, at := range block.Times {
				steps = append(steps, Step{At: at, Action: block.Words[0], Words: block.Words[1:], Body: block.Body})
			}
			continue
		}
		for _, page := range Pages(t, &block) {
			steps = append(steps, Step{At: page.At, Page: page})
		}
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	return steps
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
