// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Command quickstart shows llmfleet at work without GPUs: it simulates a fleet
// with one slow replica, lets the collector scrape it, and prints how each
// replica compares with its fleet.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// Addresses that config.yaml names too.
const (
	host          = "127.0.0.1"
	firstPort     = 18100
	resultPort    = 9464
	telemetryPort = 18888
)

const (
	// patience is how long the first result may take: a window of 20 s, the
	// collector's start, and a slow machine.
	patience = 2 * time.Minute
	// pollEvery is how often the result is looked for.
	pollEvery = 500 * time.Millisecond
)

type options struct {
	collector, config, fleet string
	once                     bool
}

func main() {
	var o options
	flag.StringVar(&o.collector, "collector", "dist/llmfleet", "the collector's `binary`")
	flag.StringVar(&o.config, "config", "examples/quickstart/config.yaml", "the collector's configuration `file`")
	flag.StringVar(&o.fleet, "fleet", "examples/quickstart/fleet.yaml", "the scenario `file` of the simulated fleet")
	flag.BoolVar(&o.once, "once", false, "print the table and exit")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, &o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// run returns when the table was printed (once) or ctx is done, after the
// collector and the simulation have ended.
func run(ctx context.Context, o *options, out io.Writer) error {
	scenario, err := fleetsim.Load(o.fleet)
	if err != nil {
		return err
	}
	start := time.Now()
	sim, err := fleetsim.New(scenario, start)
	if err != nil {
		return err
	}
	if err := checkPorts(usedPorts(sim.Engines())); err != nil {
		return err
	}
	server, err := fleetsim.Listen(sim, host, firstPort)
	if err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, func() time.Duration { return time.Since(start) }) }()
	err = demonstrate(ctx, o, out, len(sim.Engines()))
	cancel()
	return errors.Join(err, <-served)
}

// demonstrate runs the collector beside the simulation until ctx is done.
func demonstrate(ctx context.Context, o *options, out io.Writer, engines int) (err error) {
	collector, err := startCollector(o.collector, o.config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, collector.stop()) }()
	fmt.Fprintf(out, "%d simulated engines at %s:%d and up, scraped by %s.\nThe first result needs a full window of 20 s ...\n\n", engines, host, firstPort, o.collector)

	url := fmt.Sprintf("http://%s:%d/metrics", host, resultPort)
	rows, err := awaitRows(ctx, collector.ended, func() ([]row, error) { return fetchRows(ctx, url) })
	if err != nil || len(rows) == 0 {
		return err
	}
	if err := printTable(out, rows); err != nil || o.once {
		return err
	}
	fmt.Fprintf(out, `
Derived metrics for Prometheus:  http://%[1]s:%[2]d/metrics
The collector about itself:      http://%[1]s:%[3]d/metrics
The simulated engines:           http://%[1]s:%[4]d/metrics to http://%[1]s:%[5]d/metrics
Stop with Ctrl-C.
`, host, resultPort, telemetryPort, firstPort, firstPort+engines-1)
	select {
	case <-ctx.Done():
	case <-collector.ended:
	}
	return nil
}
