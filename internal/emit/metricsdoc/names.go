// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmfleet/llmfleet/internal/emit"
)

// promise is what is told of a name in a list: what holds for it, and how
// firmly.
type promise struct {
	metric    string // type, unit, whose labels, more labels and by default
	stability emit.Stability
}

// list is every metric by its name in Prometheus, in one release.
type list map[string]promise

const listHead = `# Every metric by its name in Prometheus, under the default translation. What each stability promises: ../metrics.md.
# name | type | unit | of | more labels | by default | stability
`

const between = " | "

func listOf(all []metric) list {
	l := list{}
	for i := range all {
		m := &all[i]
		l[m.prometheus] = promise{
			strings.Join([]string{m.kind, m.unit, m.of, strings.Join(m.labels, ","), m.byDefault()}, between), m.stability,
		}
	}
	return l
}

// String is the list as it is written to a file, in the order of names.
func (l list) String() string {
	var text strings.Builder
	text.WriteString(listHead)
	for _, name := range slices.Sorted(maps.Keys(l)) {
		text.WriteString(strings.Join([]string{name, l[name].metric, string(l[name].stability)}, between) + "\n")
	}
	return text.String()
}

func readList(file string) (list, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	l := list{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, rest, _ := strings.Cut(line, between)
		last := strings.LastIndex(rest, between)
		if last < 0 {
			return nil, fmt.Errorf("%s: %q is no line of a list of names", file, line)
		}
		l[name] = promise{rest[:last], emit.Stability(rest[last+len(between):])}
	}
	return l, nil
}

// lastRelease is the list of the newest release; none if there is no release.
func lastRelease(folder string) (string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "v*.txt"))
	if err != nil || len(files) == 0 {
		return "", err
	}
	version := func(file string) (v [3]int, err error) {
		if _, err = fmt.Sscanf(filepath.Base(file), "v%d.%d.%d.txt", &v[0], &v[1], &v[2]); err != nil {
			return v, fmt.Errorf("%s is not named for a release, as v1.2.3.txt: %w", file, err)
		}
		return v, nil
	}
	var last string
	var newest [3]int
	for _, file := range files {
		v, err := version(file)
		if err != nil {
			return "", err
		}
		if last == "" || slices.Compare(v[:], newest[:]) > 0 {
			last, newest = filepath.Base(file), v
		}
	}
	return last, nil
}

// compare tells what changed in between two lists, a line a name, and which of
// it was promised not to.
func compare(before, now list) (changes, broken []string) {
	all := maps.Clone(before)
	maps.Copy(all, now)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, known := before[name]
		is, kept := now[name]
		var change string
		switch {
		case was == is:
			continue
		case !known:
			change = "new      " + name + between + is.metric + between + string(is.stability)
		case !kept:
			change = "gone     " + name + ", which was " + string(was.stability)
		default:
			change = "changed  " + name + between + was.metric + between + string(was.stability) +
				"\n      to " + name + between + is.metric + between + string(is.stability)
		}
		changes = append(changes, change)
		if known && was.stability.Promised() && !keeps(was, is) {
			broken = append(broken, change)
		}
	}
	return changes, broken
}

// keeps tells whether a name is what it was, as firmly as before or as
// deprecated.
func keeps(was, is promise) bool {
	firm := is.stability == was.stability || is.stability == emit.Stable || is.stability == emit.Deprecated
	return was.metric == is.metric && firm
}

func lines(text []string) string {
	var all strings.Builder
	for _, line := range text {
		all.WriteString(line + "\n")
	}
	return all.String()
}
