// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/llmfleet/llmfleet/examples/internal/demo"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

const legend = `
VERDICT       of each measure by itself; overall, one of those that are watched (*) fails the canary, and all
              of them have to pass
EVIDENCE      of a fail: 0 is none, 1 and more fails the canary; one that is no worse gets there in one
              rollout of 20 at most, however often it is looked at
RATIO         the canary's value over the baseline's
BETWEEN       what bounds the ratio with 95 % confidence, at all times at once; - where a bucket has no bound
OBSERVATIONS  of the canary and of its baseline
`

const clock = time.TimeOnly + " MST"

// printReport says what the verdict is, what drives it and whether it is right,
// then shows all measures and what the columns mean.
func printReport(out io.Writer, scenario *fleetsim.Scenario, got *comparison, now time.Time, elapsed time.Duration) error {
	printVerdict(out, got)
	printTruth(out, scenario, got, now, elapsed)
	if err := printTable(out, got); err != nil {
		return err
	}
	_, err := fmt.Fprint(out, legend)
	return err
}

func printVerdict(out io.Writer, got *comparison) {
	verdict := strings.ToUpper(got.verdict)
	if len(got.reasons) > 0 {
		verdict += " (" + strings.Join(got.reasons, ", ") + ")"
	}
	fmt.Fprintf(out, "Verdict:      %s, of revision %s of %s after %.0f s beside %s\n", verdict, got.of.canary, got.model, got.lasted, got.of.baseline)
	m := got.driver()
	if m == nil {
		return
	}
	fmt.Fprintf(out, "Driver:       %s\n", m.name)
	for _, name := range m.names() {
		s := m.statistics[name]
		fmt.Fprintf(out, "By how much:  %s %s, baseline %s: a ratio of %s%s\n",
			name, s.unit(s.values.canary), s.unit(s.values.baseline), demo.Number("%.2f", s.ratio), s.bounded())
	}
	fmt.Fprintf(out, "Standing on:  %.0f observations of %v replicas, beside %.0f of %v\n",
		m.observations.canary, got.replicas.canary, m.observations.baseline, got.replicas.baseline)
}

// bounded is between what the ratio lies, where anything bounds it.
func (s *statistic) bounded() string {
	if math.IsNaN(s.low) && math.IsNaN(s.high) {
		return ""
	}
	return ", between " + s.between()
}

// between is what bounds the ratio.
func (s *statistic) between() string {
	if math.IsNaN(s.low) && math.IsNaN(s.high) {
		return "-"
	}
	return demo.Number("%.2f", s.low) + " and " + demo.Number("%.2f", s.high)
}

// printTruth compares the verdict with what the scenario does.
func printTruth(out io.Writer, scenario *fleetsim.Scenario, got *comparison, now time.Time, elapsed time.Duration) {
	f := rolloutOf(scenario)
	if f == nil || f.From >= elapsed {
		fmt.Fprintln(out, "Nothing was rolled out.")
		return
	}
	if m := got.driver(); m != nil && m.scores && got.verdict == "fail" {
		fmt.Fprintf(out, "Nobody simulates %s: whoever sends the scores knows whether that is right.\n", m.name)
		return
	}
	said := map[string]string{"fail": "Failed rightly", "pass": "Passed, although it is worse"}
	if !worse(f) {
		said = map[string]string{"fail": "A false fail", "pass": "Passed rightly"}
	}
	judged, ok := said[got.verdict]
	if !ok {
		judged = "Not yet judged"
	}
	fmt.Fprintf(out, "%s: from %s on, %d of %d replicas serve %s.\nIt %s.\n",
		judged, now.Add(f.From-elapsed).Format(clock), struck(f), scenario.Fleets[0].Replicas, f.Revision, differences(f))
}

// rolloutOf is the scenario's first rollout; nil if there is none.
func rolloutOf(s *fleetsim.Scenario) *fleetsim.Fault {
	for i := range s.Faults {
		if s.Faults[i].Kind == fleetsim.NewRevision {
			return &s.Faults[i]
		}
	}
	return nil
}

// struck is how many replicas a rollout replaces.
func struck(f *fleetsim.Fault) int {
	if f.Pick > 0 {
		return f.Pick
	}
	return len(f.Replicas)
}

// worse tells whether a revision is, in what is watched.
func worse(f *fleetsim.Fault) bool {
	return f.Factor > 1 || f.PrefillFactor > 1 || f.OutputFactor > 1 || f.ErrorShare > 0
}

// differences says what a revision does otherwise than the one before it.
func differences(f *fleetsim.Fault) string {
	var all []string
	for _, d := range []struct {
		factor float64
		what   string
	}{
		{f.Factor, "takes %v times as long for a step"},
		{f.PrefillFactor, "takes %v times as long for a prompt token"},
		{f.OutputFactor, "answers in %v times as many tokens"},
		{f.PromptFactor, "gets prompts %v times as long"},
	} {
		if d.factor != 1 {
			all = append(all, fmt.Sprintf(d.what, d.factor))
		}
	}
	if f.ErrorShare > 0 {
		all = append(all, "fails "+percent(f.ErrorShare)+" of its requests")
	}
	if len(all) == 0 {
		return "does the same as the one before"
	}
	return strings.Join(all, ", and ")
}

var columns = []string{"MEASURE", "VERDICT", "EVIDENCE", "STATISTIC", "CANARY", "BASELINE", "RATIO", "BETWEEN", "OBSERVATIONS"}

// printTable shows the measures, each with its first statistic.
func printTable(out io.Writer, got *comparison) error {
	table := demo.NewTable(columns...)
	for _, m := range got.measures {
		name := m.name
		if m.watched {
			name += " *"
		}
		observations := fmt.Sprintf("%.0f and %.0f", m.observations.canary, m.observations.baseline)
		names := m.names()
		if len(names) == 0 {
			table.Row(name, m.verdict, demo.Number("%.2f", m.fail), "-", "-", "-", "-", "-", observations)
			continue
		}
		s := m.statistics[names[0]]
		table.Row(name, m.verdict, demo.Number("%.2f", m.fail), names[0], s.unit(s.values.canary), s.unit(s.values.baseline),
			demo.Number("%.2f", s.ratio), s.between(), observations)
	}
	return table.Print(out)
}
