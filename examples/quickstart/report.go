// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

const legend = `
RATIO            TTFT p95 of the replica over that of its peers: all others with its model and engine, taken together.
                 A slow replica is a peer of all the others, which is why theirs lie below 1. Latencies of two engines
                 are never compared.
[LOW, HIGH]      what the ratio is at least and at most, as far as so many requests can tell. Each is made of two rank
                 bounds, the replica's and its peers', and each of these holds with 95 %% confidence. With LOW above 1
                 the replica is slower, and hardly by chance.
ITL P95 RATIO    the same of the time between two tokens, which TensorRT-LLM does not measure
OBSERVATIONS     first tokens timed in the window of %.0f s
WAITING/RUNNING  requests in the queue and in the batch, mean over the window
`

// printReport says who is slow, then shows all replicas and what the columns
// mean.
func printReport(out io.Writer, fleets []fleet) error {
	printFindings(out, fleets)
	if err := printTable(out, fleets); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, legend, window.Seconds())
	return err
}

// printFindings writes a sentence for each replica that is slow, and what the
// scenario says about it: found, false or missed.
func printFindings(out io.Writer, fleets []fleet) {
	found := false
	for i := range fleets {
		for _, r := range fleets[i].rows {
			if r.clearlySlow() {
				found = true
				fmt.Fprintln(out, finding(&r))
			}
		}
	}
	if !found {
		fmt.Fprintln(out, "No replica is clearly slower than its peers: no LOW is above 1.")
	}
	for i := range fleets {
		for _, r := range fleets[i].rows {
			if r.injected != "" && !r.clearlySlow() {
				fmt.Fprintf(out, "Injected, and not seen in these figures: %s, %s.\n", r.name, r.injected)
			}
		}
	}
}

func finding(r *row) string {
	truth := "Nothing was injected here: this is load or chance."
	if r.injected != "" {
		truth = "Injected: " + r.injected + "."
	}
	return fmt.Sprintf("%s is slow: TTFT p95 %.0f ms, its peers %.0f ms: %.2f times as long (at least %.2f), on %.0f requests in %.0f s. %s",
		r.name, 1000*r.ttft, 1000*r.ttft/r.ratio, r.ratio, r.low, r.observations, window.Seconds(), truth)
}

// printTable shows the replicas fleet by fleet, slowest first.
func printTable(out io.Writer, fleets []fleet) error {
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "REPLICA\tENGINE\tMODEL\tTTFT P95\tRATIO\t[LOW, HIGH]\tITL P95 RATIO\tOBSERVATIONS\tWAITING/RUNNING")
	for i := range fleets {
		f := &fleets[i]
		if i > 0 {
			fmt.Fprintln(table, strings.Repeat("\t", 8)) // a line without cells would end the columns
		}
		for j := range f.rows {
			fmt.Fprintln(table, tableRow(f, &f.rows[j]))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for line := range strings.Lines(text.String()) {
		fmt.Fprintln(out, strings.TrimRight(line, " \n"))
	}
	return nil
}

func tableRow(f *fleet, r *row) string {
	ratio := r.reason
	if ratio == "" {
		ratio = number("%.2f", r.ratio)
	}
	return strings.Join([]string{
		r.name, f.engine, f.model, number("%.0f ms", 1000*r.ttft), ratio,
		fmt.Sprintf("[%s, %s]", number("%.2f", r.low), number("%.2f", r.high)), number("%.2f", r.itlRatio),
		number("%.0f", r.observations), number("%.1f", r.waiting) + "/" + number("%.1f", r.running),
	}, "\t")
}

func number(format string, v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf(format, v)
}
