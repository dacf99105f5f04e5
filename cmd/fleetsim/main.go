// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Command fleetsim serves the metrics pages of simulated fleets of LLM engines
// and sends the spans of their requests, so that dashboards, alerts and
// collectors can be tried without GPUs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "fleetsim:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	opts, err := parseFlags(args, stdout)
	if err != nil {
		return err
	}
	scenario, err := opts.load()
	if err != nil {
		return err
	}
	start := time.Now()
	sim, err := fleetsim.New(scenario, start)
	if err != nil {
		return err
	}
	exporter, err := opts.exporter(sim, stderr)
	if err != nil {
		return err
	}
	server, err := opts.open(sim)
	if err != nil {
		return err
	}
	if err := writeAnswerKey(opts.answerKey, sim, stdout); err != nil {
		return err
	}
	// The answer key may go to stdout, so the list is for the person at stderr.
	list(stderr, sim, server)
	var sending sync.WaitGroup
	defer sending.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if exporter != nil {
		sending.Go(func() { exporter.Run(ctx) })
	}
	return server.Serve(ctx, func() time.Duration { return time.Since(start) })
}

func writeAnswerKey(path string, sim *fleetsim.Simulation, stdout io.Writer) error {
	switch path {
	case "":
		return nil
	case "-":
		return sim.WriteAnswerKey(stdout)
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write answer key: %w", err)
	}
	return errors.Join(sim.WriteAnswerKey(file), file.Close())
}

func list(w io.Writer, sim *fleetsim.Simulation, server *fleetsim.Server) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ENGINE\tFLEET\tPAGE")
	for i, url := range server.URLs() {
		target := sim.Targets()[i]
		switch engines := target.Engines(); {
		case len(engines) == 0:
			fmt.Fprintf(table, "%s\t\t%s\n", target.Name(), url)
		case !target.Exists(): // a pod that is still to come
			fmt.Fprintf(table, "%s\t%s\t%s\n", target.Name(), engines[0].Fleet(), url)
		default:
			for _, e := range engines {
				fmt.Fprintf(table, "%s\t%s\t%s\n", e.Name(), e.Fleet(), url)
			}
		}
	}
	table.Flush()
	fmt.Fprintf(w, "Prometheus finds all of them, with their labels, by http_sd: %s\n", server.TargetsURL())
	fmt.Fprintln(w, "Stop with Ctrl-C.")
}
