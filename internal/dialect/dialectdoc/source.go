// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
)

// source is the section of one dialect; known are the signals that any source
// of its component tells.
func (p *page) source(d *dialect.Dialect, known []fleet.Signal) {
	p.about(d)
	p.line("\n%s", arrival(d))
	p.labels(&d.Labels)
	p.signals(d, known)
	if len(d.Versions) > 0 {
		p.folded("What is read in each version", func() { p.versions(d) })
	}
	p.facts(d)
	p.startup(d)
	p.ignored(d)
}

// about heads the section of a dialect.
func (p *page) about(d *dialect.Dialect) {
	p.line("\n### %s", d.Name)
	if d.About != "" {
		p.line("\n%s", escaped.Replace(d.About))
	}
}

// escaped keeps names in prose from being read as Markdown.
var escaped = strings.NewReplacer("*", `\*`, "_", `\_`, "<", `\<`, "`", "\\`", "|", `\|`)

// arrival says how names are spelled on the way.
func arrival(d *dialect.Dialect) string {
	if d.Prefix == "" {
		return "Names are whole; with underscores for dots they are known, too."
	}
	prefixes := []string{d.Prefix + ":", d.Prefix + "_"}
	for _, carrier := range d.Carriers {
		prefixes = append(prefixes, carrier+"_"+d.Prefix+":", carrier+"_"+d.Prefix+"_")
	}
	return fmt.Sprintf("Names arrive behind %s.", codes(prefixes, ", "))
}

// labels is a table of what labels mean.
func (p *page) labels(l *dialect.Labels) {
	rows := [][]string{{"what", "labels, of which the first that is there counts"}}
	for _, row := range []struct {
		what   string
		labels []string
	}{
		{"model", l.Model},
		{"role", l.Role},
		{"replica", l.Replica},
		{"pod", l.Pod},
		{"namespace", l.Namespace},
		{"node", l.Node},
		{"GPU model", l.GPUModel},
		{"tenant", l.Tenants},
		{"reason", l.Reasons},
		{"rank, summed over", l.Ranks},
		{"rank or copy, of which one is read", l.First},
	} {
		if len(row.labels) > 0 {
			rows = append(rows, []string{row.what, codes(row.labels, ", ")})
		}
	}
	if len(l.Reject) > 0 {
		what := "copy, not read"
		if l.Unless != "" {
			what += ", unless " + code(l.Unless) + " is there"
		}
		rows = append(rows, []string{what, codes(l.Reject, ", ")})
	}
	p.table(rows)
}

// signals is a table of what is read, a row a form.
func (p *page) signals(d *dialect.Dialect, known []fleet.Signal) {
	rows := [][]string{{"signal", "read from", "type", "unit", "points"}}
	var lacking []string
	for _, s := range known {
		forms := formsOf(d, s)
		if len(forms) == 0 {
			lacking = append(lacking, s.String())
		}
		for i, f := range forms {
			signal := code(s.String())
			if i > 0 {
				signal = "… else"
			}
			rows = append(rows, []string{signal, names(f) + span(f), kind(f.Entry), unit(f), points(f.Entry)})
		}
	}
	p.table(rows)
	if len(lacking) > 0 {
		p.line("\nNot told: %s.", codes(lacking, ", "))
	}
}

// names are a form's, in order of preference or added up.
func names(f *dialect.Form) string {
	if f.Add {
		return codes(f.Names, " + ")
	}
	return codes(f.Names, ", else ")
}

// span says which versions have a form.
func span(f *dialect.Form) string {
	switch {
	case f.Since != "" && f.Since == f.Until:
		return fmt.Sprintf(" (in %s)", f.Since)
	case f.Since != "" && f.Until != "":
		return fmt.Sprintf(" (%s to %s)", f.Since, f.Until)
	case f.Since != "":
		return fmt.Sprintf(" (since %s)", f.Since)
	case f.Until != "":
		return fmt.Sprintf(" (until %s)", f.Until)
	default:
		return ""
	}
}

func kind(e *dialect.Entry) string {
	if e.Part != dialect.Whole {
		return fmt.Sprintf("%s of a %s", e.Part, e.Kind)
	}
	return e.Kind.String()
}

// unit is the signal's, and how the exposed values become it.
func unit(f *dialect.Form) string {
	canonical := code(f.Entry.Signal.Unit())
	switch {
	case f.Unit != "":
		return canonical + ", exposed in " + f.Unit
	case f.Entry.Scale != 1:
		return fmt.Sprintf("%s, exposed × %s", canonical, decimal(f.Entry.Scale))
	default:
		return canonical
	}
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// points says which points of a metric are read, if not all, and what is
// peculiar to them.
func points(e *dialect.Entry) string {
	var all []string
	for _, f := range e.Only {
		if len(f.Values) == 0 {
			all = append(all, "only with "+code(f.Spellings[0]))
			continue
		}
		all = append(all, fmt.Sprintf("only %s of %s", code(f.Spellings[0]), values(f.Values)))
	}
	for _, f := range e.Keep {
		all = append(all, fmt.Sprintf("%s of %s, or none", code(f.Spellings[0]), values(f.Values)))
	}
	if tokens := e.Signal == fleet.GenerationTokens || e.Signal == fleet.ITL; tokens && !e.Realtime() {
		all = append(all, "counted at a request's end")
	}
	if e.Least != e.Most {
		all = append(all, fmt.Sprintf("from %s to %s", decimal(e.Least), decimal(e.Most)))
	}
	return strings.Join(all, "; ")
}

func values(of []string) string {
	all := slices.Clone(of)
	for i := range all {
		all[i] = `"` + all[i] + `"`
	}
	return codes(all, " or ")
}

// versions is a table of the name that is read in each version.
func (p *page) versions(d *dialect.Dialect) {
	rows := [][]string{append([]string{"signal"}, d.Versions...)}
	for s := range fleet.SignalCount {
		forms := formsOf(d, s)
		if len(forms) == 0 {
			continue
		}
		row := []string{code(s.String())}
		for v := range d.Versions {
			row = append(row, readIn(d, forms, v))
		}
		rows = append(rows, row)
	}
	p.table(rows)
}

// readIn is the preferred of the names that a version has.
func readIn(d *dialect.Dialect, forms []*dialect.Form, version int) string {
	for _, f := range forms {
		from := slices.Index(d.Versions, cmp.Or(f.Since, d.Versions[0]))
		to := slices.Index(d.Versions, cmp.Or(f.Until, d.Versions[len(d.Versions)-1]))
		if from <= version && version <= to {
			return names(f)
		}
	}
	return missing
}

// facts is a table of the series whose labels are facts.
func (p *page) facts(d *dialect.Dialect) {
	if len(d.Infos) == 0 {
		return
	}
	rows := [][]string{{"info series", "`engine_version`", "`model_revision`", "`config_hash`"}}
	for _, info := range d.Infos {
		row := []string{code(info.Name)}
		for _, labels := range [][]string{info.EngineVersion, info.ModelRevision, info.Config} {
			row = append(row, cmp.Or(codes(labels, ", "), missing))
		}
		rows = append(rows, row)
	}
	p.table(rows)
}

// ignored lists what is not read, by the reason why.
func (p *page) ignored(d *dialect.Dialect) {
	n := 0
	for _, ignored := range d.Ignored {
		n += len(ignored.Names)
	}
	if n == 0 {
		return
	}
	p.folded(fmt.Sprintf("Not read, and why (%d)", n), func() {
		p.line("")
		for _, ignored := range d.Ignored {
			p.line("- %s: %s", escaped.Replace(ignored.Why), codes(ignored.Names, ", "))
		}
	})
}
