// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Command fleetsim serves the metrics pages of simulated fleets of LLM engines,
// so that dashboards, alerts and collectors can be tried without GPUs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

const usage = `fleetsim serves the metrics pages of simulated LLM engines: requests arrive,
wait and run in batches, latency follows load, and faults strike as asked.
Engine i listens at port+i, path /metrics.

Usage:
  fleetsim [flags]

Examples:
  Eight vLLM replicas, number 3 of them 1.8 times as slow, and four of SGLang:
    fleetsim --vllm 8 --slow 3=1.8 --sglang 4
  Fleets and faults from a file, and what was injected into another:
    fleetsim --scenario fleet.yaml --answer-key faults.jsonl

Flags:
`

// options are the command's flags.
type options struct {
	scenario  string
	listen    string
	port      int
	seed      uint64
	seedGiven bool
	answerKey string
	quick     quickFleets
}

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
	opts, err := parseFlags(args, stderr)
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
	server, err := fleetsim.Listen(sim, opts.listen, opts.port)
	if err != nil {
		return err
	}
	if err := writeAnswerKey(opts.answerKey, sim, stdout); err != nil {
		return err
	}
	// The answer key may go to stdout, so the list is for the person at stderr.
	list(stderr, sim, server)
	return server.Serve(ctx, func() time.Duration { return time.Since(start) })
}

func parseFlags(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("fleetsim", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.scenario, "scenario", "", "read fleets and faults from this `file` instead of from flags")
	flags.StringVar(&o.listen, "listen", "127.0.0.1", "`address` to listen at")
	flags.IntVar(&o.port, "port", 18100, "first port; engine i listens at port+i")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of every random choice; overrides the scenario's")
	flags.StringVar(&o.answerKey, "answer-key", "", "write the injected faults as JSON lines to this `file`, or to stdout with -")
	flags.IntVar(&o.quick.vllm, "vllm", 4, "number of vLLM replicas")
	flags.IntVar(&o.quick.sglang, "sglang", 0, "number of SGLang replicas")
	flags.Float64Var(&o.quick.rate, "rate", 4, "requests a second for each replica")
	flags.Var(&o.quick.slow, "slow", "make engine I take F times as long, as `I=F`; may be repeated")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is no flag: see fleetsim --help", flags.Arg(0))
	}
	var mixed []string
	flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "seed":
			o.seedGiven = true
		case "vllm", "sglang", "rate", "slow":
			mixed = append(mixed, "--"+f.Name)
		}
	})
	if o.scenario != "" && len(mixed) > 0 {
		return o, fmt.Errorf("--scenario says which fleets there are: leave out %s, or write it into the file", strings.Join(mixed, ", "))
	}
	return o, nil
}

func (o *options) load() (fleetsim.Scenario, error) {
	if o.scenario == "" {
		s, err := o.quick.scenario()
		s.Seed = o.seed
		return s, err
	}
	s, err := fleetsim.Load(o.scenario)
	if o.seedGiven {
		s.Seed = o.seed
	}
	return s, err
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
		e := sim.Engines()[i]
		fmt.Fprintf(table, "%s\t%s\t%s\n", e.Name(), e.Fleet(), url)
	}
	table.Flush()
	fmt.Fprintln(w, "Stop with Ctrl-C.")
}
