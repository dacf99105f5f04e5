// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Command dialectdoc writes docs/dialects.md: for an operator, what of each
// source is read, in which version, and what is not. It is made from the
// dialect files and their schema.
package main

import (
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
)

func main() {
	out := flag.String("o", "docs/dialects.md", "file to write")
	flag.Parse()
	if err := write(*out); err != nil {
		fmt.Fprintln(os.Stderr, "dialectdoc:", err)
		os.Exit(1)
	}
}

func write(path string) error {
	meanings, err := meaningsOf(dialect.Schema)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(render(dialect.Builtin(), meanings)), 0o644) //nolint:gosec // documentation is for everyone to read
}

// meaningsOf reads from the schema what each signal is.
func meaningsOf(schema []byte) (map[string]string, error) {
	var document struct {
		Properties struct {
			Signals struct {
				Properties map[string]struct{ Description string }
			}
		}
	}
	if err := json.Unmarshal(schema, &document); err != nil {
		return nil, err
	}
	meanings := make(map[string]string)
	for signal, property := range document.Properties.Signals.Properties {
		meanings[signal] = property.Description
	}
	return meanings, nil
}

//go:embed head.md
var head string

// titles head the chapter of each component.
var titles = [dialect.ComponentCount]string{
	dialect.Engine: "Engines", dialect.Router: "Routers", dialect.Gateway: "Gateways", dialect.GPU: "Accelerators and links",
	dialect.Autoscaler: "Autoscalers", dialect.Kubernetes: "Kubernetes",
}

// chapter is one component's dialects, and the signals that any of them tells.
type chapter struct {
	title    string
	dialects []*dialect.Dialect
	signals  []fleet.Signal
}

// chapters are those of the components that have dialects.
func chapters(set *dialect.Set) (all []chapter) {
	for c, title := range titles {
		chapter := chapter{title: title}
		for _, d := range set.Dialects() {
			if len(d.Forms) > 0 && d.Component == dialect.Component(c) {
				chapter.dialects = append(chapter.dialects, d)
			}
		}
		for s := range fleet.SignalCount {
			if slices.ContainsFunc(chapter.dialects, func(d *dialect.Dialect) bool { return len(formsOf(d, s)) > 0 }) {
				chapter.signals = append(chapter.signals, s)
			}
		}
		if len(chapter.dialects) > 0 {
			all = append(all, chapter)
		}
	}
	return all
}

// formsOf are the forms of a signal, in order of preference.
func formsOf(d *dialect.Dialect, s fleet.Signal) []*dialect.Form {
	return slices.DeleteFunc(slices.Clone(d.Forms), func(f *dialect.Form) bool { return f.Entry.Signal != s })
}

// render is the whole page: the introduction, all signals by source, and then
// a section a source.
func render(set *dialect.Set, meanings map[string]string) string {
	page := &page{}
	page.WriteString(head)
	for _, c := range chapters(set) {
		page.summary(&c, meanings)
	}
	for _, c := range chapters(set) {
		page.line("\n## %s", c.title)
		for _, d := range c.dialects {
			page.source(d, c.signals)
		}
	}
	page.silent(set)
	return page.String()
}

// silent are the dialects that tell no signal: they say what is not read.
func (p *page) silent(set *dialect.Set) {
	dialects := slices.DeleteFunc(slices.Clone(set.Dialects()), func(d *dialect.Dialect) bool { return len(d.Forms) > 0 })
	if len(dialects) > 0 {
		p.line("\n## Beside the signals")
	}
	for _, d := range dialects {
		p.about(d)
		p.ignored(d)
	}
}

// page is a page of Markdown.
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// table writes rows, of which the first is the head.
func (p *page) table(rows [][]string) {
	p.line("")
	for i, row := range rows {
		p.line("| %s |", strings.Join(row, " | "))
		if i == 0 {
			p.line("|%s", strings.Repeat("---|", len(row)))
		}
	}
}

// folded writes what only some look for.
func (p *page) folded(summary string, write func()) {
	p.line("\n<details><summary>%s</summary>", summary)
	write()
	p.line("\n</details>")
}

// missing stands where a signal is not told.
const missing = "–"

// summary is one component's signals by source.
func (p *page) summary(c *chapter, meanings map[string]string) {
	header := []string{"signal", "unit"}
	for _, d := range c.dialects {
		header = append(header, fmt.Sprintf("[%s](#%s)", d.Name, d.Name))
	}
	rows := [][]string{append(header, "meaning")}
	for _, s := range c.signals {
		row := []string{code(s.String()), code(s.Unit())}
		for _, d := range c.dialects {
			mark := missing
			if len(formsOf(d, s)) > 0 {
				mark = "✓"
			}
			row = append(row, mark)
		}
		rows = append(rows, append(row, meanings[s.String()]))
	}
	p.line("\n**%s**", c.title)
	p.table(rows)
}

// code is a text that Markdown leaves as it is.
func code(text string) string { return "`" + text + "`" }

// codes are several, in a list.
func codes(texts []string, separator string) string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = code(text)
	}
	return strings.Join(all, separator)
}
