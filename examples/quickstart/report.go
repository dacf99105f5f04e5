// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"

	"github.com/llmfleet/llmfleet/examples/internal/demo"
)

const legend = `
VERDICT    OUTLIER: slower than its fleet, or failing more of its requests; STUCK: has work, and makes no token
EVIDENCE   0 is none, 1 flags: as it is set here, at most one false alarm a week on average, of all that is watched
CAUSE      where to look first
RATIO      TTFT p95 of the replica over that of its peers: all others with its model and engine, taken together,
           over the window of the last 20 s. A slow replica is a peer of all the others, which is why theirs lie
           below 1. A factor of 1.8 shows as more than that: the replica's queue grows as well
ITL RATIO  the same of the time between two tokens, which TensorRT-LLM does not measure
`

// printReport says who is flagged and whether that is right, then shows all
// replicas and what the columns mean.
func printReport(out io.Writer, fleets []fleet) error {
	printFindings(out, fleets)
	if err := printTable(out, fleets); err != nil {
		return err
	}
	_, err := fmt.Fprint(out, legend)
	return err
}

// printFindings compares what was found with what the scenario says about it.
func printFindings(out io.Writer, fleets []fleet) {
	found := false
	for i := range fleets {
		for _, r := range fleets[i].rows {
			found = found || r.flagged()
			switch {
			case r.flagged() && r.injected != "":
				fmt.Fprintf(out, "Found as injected: %s, %s.\n", r.name, r.injected)
			case r.flagged():
				fmt.Fprintf(out, "A false alarm: %s. Nothing was injected there.\n", r.name)
			case r.injected != "":
				fmt.Fprintf(out, "Injected, and not flagged: %s, %s.\n", r.name, r.injected)
			}
		}
	}
	if !found {
		fmt.Fprintln(out, "No replica is flagged.")
	}
}

var columns = []string{"REPLICA", "ENGINE", "MODEL", "VERDICT", "EVIDENCE", "CAUSE", "TTFT P95", "RATIO", "ITL RATIO"}

// printTable shows the replicas fleet by fleet, slowest first.
func printTable(out io.Writer, fleets []fleet) error {
	table := demo.NewTable(columns...)
	for i := range fleets {
		f := &fleets[i]
		if i > 0 {
			table.Gap()
		}
		for j := range f.rows {
			r := &f.rows[j]
			table.Row(r.name, f.engine, f.model, r.verdict, demo.Number("%.2f", r.evidence), cmp.Or(r.cause, "-"),
				demo.Number("%.0f ms", 1000*r.ttft), demo.Number("%.2f", r.ratio), demo.Number("%.2f", r.itlRatio))
		}
	}
	return table.Print(out)
}
