// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/llmfleet/llmfleet/examples/internal/demo"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

const legend = `
VERDICT     NOISY: what it sends beyond its usual share makes the tokens of all tenants slower
UNCACHED    its share of the input that has to be computed, over the last 15 s; all tenants' sum to 100 %, so
            that everybody's falls when one sends far more
USUALLY     the same before: the mean of the last minutes, which stands still while the tenant is noisy
OUTPUT      its share of the tokens that were made
ITL EXCESS  by how much its surplus makes everyone's inter-token latency longer than usual, mean of 15 s or
            less; below 0, how much shorter it is for what the tenant sends less: an attribution by a fitted
            line, no proof
SCORE       how well surplus and latency move together, as a t statistic; a verdict needs 5; below 0, latency
            rises as the tenant's share falls
`

const clock = time.TimeOnly + " MST"

// printReport says who makes everyone slower and whether that is right, then
// shows the tenants and what the columns mean.
func printReport(out io.Writer, scenario *fleetsim.Scenario, got *figures, now time.Time, elapsed time.Duration) error {
	printFindings(out, scenario, got, now, elapsed)
	if err := printTable(out, got); err != nil {
		return err
	}
	_, err := fmt.Fprint(out, legend)
	return err
}

// printFindings compares what was found with what the scenario does.
func printFindings(out io.Writer, scenario *fleetsim.Scenario, got *figures, now time.Time, elapsed time.Duration) {
	found := map[string]bool{}
	for _, t := range got.tenants {
		if !t.isNoisy() {
			continue
		}
		found[t.name] = true
		fmt.Fprintf(out, "Who makes everyone slower:  %s\n", t.name)
		since := t.since(now)
		fmt.Fprintf(out, "Since when:                 %s, %.0f s ago\n", since.Format(clock), now.Sub(since).Seconds())
		fmt.Fprintf(out, "By what:                    %s of the uncached input is its own, usually %s\n", percent(t.uncached), percent(t.usual))
		fmt.Fprintf(out, "By how much:                a token takes everyone %s; usually %s; without its surplus %s\n",
			milliseconds(got.itl), milliseconds(got.usualITL), milliseconds(got.without(t)))
	}
	if len(found) == 0 {
		fmt.Fprintln(out, "No tenant is noisy.")
	}
	for i := range scenario.Faults {
		f := &scenario.Faults[i]
		if f.Tenant == "" || f.From >= elapsed || f.To != 0 && f.To <= elapsed {
			continue
		}
		verdict := "Injected, and not found"
		if found[f.Tenant] {
			verdict = "Found as injected"
		}
		delete(found, f.Tenant)
		until := "on"
		if f.To != 0 {
			until = "to " + now.Add(f.To-elapsed).Format(clock)
		}
		fmt.Fprintf(out, "%s: from %s %s, %s sends %v times as many requests, %v times as long.\n",
			verdict, now.Add(f.From-elapsed).Format(clock), until, f.Tenant, f.Factor, f.PromptFactor)
	}
	for _, t := range got.tenants {
		if found[t.name] {
			fmt.Fprintf(out, "A false accusation: %s sends as usual.\n", t.name)
		}
	}
}

var columns = []string{"TENANT", "VERDICT", "UNCACHED", "USUALLY", "OUTPUT", "ITL EXCESS", "SCORE"}

// shownTenants is how many of the largest tenants the table has.
const shownTenants = 8

// printTable shows the largest tenants, and those that are noisy.
func printTable(out io.Writer, got *figures) error {
	table := demo.NewTable(columns...)
	for i, t := range got.tenants {
		if i < shownTenants || t.isNoisy() {
			table.Row(t.name, verdict(t), percent(t.uncached), percent(t.usual), percent(t.output),
				percent(t.excess), demo.Number("%.1f", t.score))
		}
	}
	return table.Print(out)
}

func verdict(t *tenant) string {
	switch t.noisy {
	case 1:
		return "NOISY"
	case 0:
		return "ok"
	}
	return "-"
}

// percent rounds, and adds zero to have no -0.
func percent(v float64) string { return demo.Number("%.0f %%", math.Round(100*v)+0) }

func milliseconds(seconds float64) string { return demo.Number("%.1f ms", 1000*seconds) }
