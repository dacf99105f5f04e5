// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
	"cmp"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// page is what happens to one target at one time.
type page struct {
	at     time.Duration // when the metrics arrive, and what they are stamped with, …
	stamp  time.Duration // … moved by this
	target map[string]string
	flags  map[string]bool
	lines  []line // of this page: one value each
}

// line is one sample of a page in the exposition format, or its type.
type line struct {
	typed  string // what a # TYPE line says of name; "" for a sample
	name   string
	labels string // as written
	value  float64
}

// blockFlags are the bare words of a block's heading.
var blockFlags = []string{"failed", "gone", "twice", "unmarked", "delta"}

// readSteps reads the blocks of a section of steps.
func readSteps(t tester, text string) []step {
	t.Helper()
	var steps []step
	for block := range strings.SplitSeq("\n"+text, "\n@") {
		heading, body, _ := strings.Cut(block, "\n")
		if strings.TrimSpace(heading) == "" {
			continue
		}
		steps = append(steps, readBlock(t, strings.Fields(heading), body)...)
	}
	return steps
}

func readBlock(t tester, heading []string, body string) []step {
	t.Helper()
	times, rest := readTimes(t, heading)
	target, flags, pods := map[string]string{}, map[string]bool{}, []string{""}
	var stamp time.Duration
	for _, word := range rest {
		key, value, isPair := strings.Cut(word, "=")
		switch {
		case word == "shutdown" || word == "restart":
			return []step{{at: times[0], action: word}}
		case key == "pod":
			pods = strings.Split(value, ",")
		case key == "stamped":
			stamp = readDuration(t, value)
		case isPair:
			target[key] = value
		default:
			require.Contains(t, blockFlags, word)
			flags[word] = true
		}
	}
	pages := readLines(t, body, len(times))
	var steps []step
	for i, at := range times {
		for _, pod := range pods {
			steps = append(steps, step{at: at, page: page{
				at: at, stamp: stamp, target: withPod(target, pod), flags: flags, lines: pages[i],
			}})
		}
	}
	return steps
}

// withPod adds the pod to a target.
func withPod(target map[string]string, pod string) map[string]string {
	full := maps.Clone(target)
	full["pod"] = pod
	return full
}

// readTimes reads "30s", or "0s..60s every 10s".
func readTimes(t tester, heading []string) (times []time.Duration, rest []string) {
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

func readDuration(t tester, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}

var sampleLine = regexp.MustCompile(`^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(.+)$`)

// readLines reads exposition text whose lines have one value for all pages or
// one for each.
func readLines(t tester, body string, pages int) [][]line {
	t.Helper()
	all := make([][]line, pages)
	for text := range strings.Lines(body) {
		text = strings.TrimSpace(text)
		typed, isType := strings.CutPrefix(text, "# TYPE ")
		switch {
		case isType:
			name, kind, _ := strings.Cut(typed, " ")
			for i := range all {
				all[i] = append(all[i], line{name: name, typed: kind})
			}
		case text == "" || strings.HasPrefix(text, "#"):
		default:
			parts := sampleLine.FindStringSubmatch(text)
			require.NotNil(t, parts, "no line of a page: %s", text)
			values := readSequence(t, parts[3])
			require.Contains(t, []int{1, pages}, len(values), "values of %s", text)
			for i := range all {
				if v := values[min(i, len(values)-1)]; v != nil {
					all[i] = append(all[i], line{name: parts[1], labels: parts[2], value: *v})
				}
			}
		}
	}
	return all
}

var run = regexp.MustCompile(`^([^x]+?)(?:([+-][\d.]+))?x(\d+)$`)

// readSequence reads values in the notation of promtool's unit tests: "1 2 NaN",
// "_" for none, "0+10x3" for 0 10 20 30, "5x2" for 5 5 5, "_x2" for two times
// none.
func readSequence(t tester, text string) []*float64 {
	t.Helper()
	var values []*float64
	for item := range strings.FieldsSeq(text) {
		first, pace, steps := item, "0", 0
		if parts := run.FindStringSubmatch(item); parts != nil {
			first, pace = parts[1], cmp.Or(parts[2], "0")
			steps, _ = strconv.Atoi(parts[3])
		}
		if first == "_" {
			values = append(values, make([]*float64, max(1, steps))...)
			continue
		}
		from, err := strconv.ParseFloat(first, 64)
		require.NoError(t, err)
		by, err := strconv.ParseFloat(pace, 64)
		require.NoError(t, err)
		for i := range steps + 1 {
			v := from + by*float64(i)
			values = append(values, &v)
		}
	}
	return values
}
