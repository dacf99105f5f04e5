// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package scenariotest

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// Page is what happens to one target at one time.
type Page struct {
	At     time.Duration // when the metrics arrive, and what they are stamped with, …
	Stamp  time.Duration // … moved by this
	Target map[string]string
	Lines  []Line // of this page: one value each
	// Failed: the scrape did, and up is 0. Gone: the target is not scraped any
	// more, and up is marked, too. Twice: the metrics have the resource twice.
	// Unmarked: no marks for missing series. Delta: of histograms' temporality.
	Failed, Gone, Twice, Unmarked, Delta bool
}

// Line is one sample of a page in the exposition format, or its type.
type Line struct {
	Typed  string // what a # TYPE line says of Name; "" for a sample
	Name   string
	Labels string // as written
	Value  float64
}

// Pages reads the pages of a block: one for each time and pod.
func Pages(t T, b *Block) []Page {
	t.Helper()
	page, pods := Page{Target: map[string]string{}}, []string{""}
	flags := map[string]*bool{
		"failed": &page.Failed, "gone": &page.Gone, "twice": &page.Twice, "unmarked": &page.Unmarked, "delta": &page.Delta,
	}
	for _, word := range b.Words {
		key, value, isPair := strings.Cut(word, "=")
		switch {
		case key == "pod":
			pods = strings.Split(value, ",")
		case key == "stamped":
			page.Stamp = readDuration(t, value)
		case isPair:
			page.Target[key] = value
		default:
			require.Contains(t, slices.Collect(maps.Keys(flags)), word)
			*flags[word] = true
		}
	}
	lines := Lines(t, b.Body, len(b.Times))
	var pages []Page
	for i, at := range b.Times {
		for _, pod := range pods {
			page := page
			page.At, page.Lines, page.Target = at, lines[i], maps.Clone(page.Target)
			page.Target["pod"] = pod
			pages = append(pages, page)
		}
	}
	return pages
}

var sampleLine = regexp.MustCompile(`^([a-zA-Z_:][\w:.]*)(?:\{(.*)\})?\s+(.+)$`)

// Lines reads exposition text whose lines have one value for all pages or one
// for each.
func Lines(t T, body string, pages int) [][]Line {
	t.Helper()
	all := make([][]Line, pages)
	for text := range strings.Lines(body) {
		text = strings.TrimSpace(text)
		typed, isType := strings.CutPrefix(text, "# TYPE ")
		switch {
		case isType:
			name, kind, _ := strings.Cut(typed, " ")
			for i := range all {
				all[i] = append(all[i], Line{Name: name, Typed: kind})
			}
		case text == "" || strings.HasPrefix(text, "#"):
		default:
			parts := sampleLine.FindStringSubmatch(text)
			require.NotNil(t, parts, "no line of a page: %s", text)
			values := readSequence(t, parts[3])
			require.Contains(t, []int{1, pages}, len(values), "values of %s", text)
			for i := range all {
				if v := values[min(i, len(values)-1)]; v != nil {
					all[i] = append(all[i], Line{Name: parts[1], Labels: parts[2], Value: *v})
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
func readSequence(t T, text string) []*float64 {
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
