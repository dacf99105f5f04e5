// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/lifecycle"
)

// startup is a table of what is read of the engine's start.
func (p *page) startup(d *dialect.Dialect) {
	rows := [][]string{{"fact", "told by", "told besides"}}
	add := func(name lifecycle.Name, by, besides string) {
		if name != lifecycle.Unknown {
			rows = append(rows, []string{code(strings.TrimPrefix(name.String(), "llmfleet.")), by, cmp.Or(besides, missing)})
		}
	}
	for _, l := range d.Lines {
		add(l.Tells, toldBy(l), toldBesides(l))
	}
	for _, s := range d.Spans {
		add(s.Begins, "begin of span "+code(s.Name), "")
		add(s.Ends, "end of span "+code(s.Name), "took")
	}
	for _, ph := range d.Phases {
		by := []string{"metric " + codes(ph.Names, ", else ")}
		for _, f := range ph.Only {
			by = append(by, fmt.Sprintf("only %s of %s", code(f.Spellings[0]), values(f.Values)))
		}
		add(ph.Tells, strings.Join(by, ", "), "took, and no time")
	}
	if len(rows) > 1 {
		p.folded("What is read of a start", func() { p.table(rows) })
	}
}

func toldBy(l *dialect.Line) string {
	by := "line " + code(strings.ReplaceAll(l.Says, "|", `\|`))
	if l.With != "" {
		by += ", with " + code(l.With)
	}
	if l.Anyone {
		by += ", if the engine is known"
	}
	return by
}

func toldBesides(l *dialect.Line) string {
	var all []string
	for _, group := range []string{"took", "model", "copy"} {
		if strings.Contains(l.Says, "(?P<"+group+">") {
			all = append(all, group)
		}
	}
	if l.Cached {
		all = append(all, "cached")
	}
	return strings.Join(all, ", ")
}
