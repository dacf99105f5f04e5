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

// window is fleet_outlier's in config.yaml.
const window = 20 * time.Second

const (
	// patience is how long the first result may take: a window, the collector's
	// start, and a slow machine.
	patience = 2 * time.Minute
	// stragglers is how much longer the last of the replicas may take.
	stragglers = 30 * time.Second
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
	flag.BoolVar(&o.once, "once", false, "print the report and exit")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, &o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// demo is a simulated fleet in motion.
type demo struct {
	*options
	scenario fleetsim.Scenario
	sim      *fleetsim.Simulation
	start    time.Time
	out      io.Writer
}

func (d *demo) elapsed() time.Duration { return time.Since(d.start) }

// run returns when the report was printed (once) or ctx is done, after the
// collector and the simulation have ended.
func run(ctx context.Context, o *options, out io.Writer) error {
	scenario, err := fleetsim.Load(o.fleet)
	if err != nil {
		return err
	}
	d := &demo{options: o, scenario: scenario, start: time.Now(), out: out}
	if d.sim, err = fleetsim.New(scenario, d.start); err != nil {
		return err
	}
	if err := checkPorts(usedPorts(len(d.sim.Targets()))); err != nil {
		return err
	}
	server, err := fleetsim.Listen(d.sim, host, firstPort)
	if err != nil {
		return err
	}

	serving, cancel := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving, d.elapsed) }()
	err = d.show(serving)
	cancel()
	err = errors.Join(err, <-served)
	if err == nil && ctx.Err() != nil {
		// The terminal has put ^C at the beginning of a line.
		fmt.Fprint(out, "\nstopped\n")
	}
	return err
}

// show runs the collector beside the simulation until ctx is done.
func (d *demo) show(ctx context.Context) (err error) {
	collector, err := startCollector(d.collector, d.config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, collector.stop()) }()
	engines := d.sim.Engines()
	lastPort := firstPort + len(d.sim.Targets()) - 1
	fmt.Fprintf(d.out, "%d simulated engines at %s:%d to %d, scraped by %s.\nThe first result needs a full window of %.0f s ...\n\n",
		len(engines), host, firstPort, lastPort, d.collector, window.Seconds())

	replicas := make([]replica, len(engines))
	for i, e := range engines {
		replicas[i] = replica{pod: e.Name(), itl: measuresITL(&d.scenario, e)}
	}
	url := fmt.Sprintf("http://%s:%d/metrics", host, resultPort)
	got, err := awaitFigures(ctx, collector.ended, replicas, func() (figures, error) { return fetchFigures(ctx, url) })
	if err != nil || got.replicas == nil {
		return err
	}
	if err := printReport(d.out, arrange(&d.scenario, engines, got, d.elapsed())); err != nil || d.once {
		return err
	}
	fmt.Fprintf(d.out, `
Derived metrics for Prometheus:  %[1]s
The collector about itself:      http://%[2]s:%[3]d/metrics
The simulated engines:           http://%[2]s:%[4]d/metrics to port %[5]d (TensorRT-LLM: /prometheus/metrics)
See for yourself:                curl -s %[1]s | grep llmfleet_replica_latency_ratio
Stop with Ctrl-C.
`, url, host, telemetryPort, firstPort, lastPort)
	select {
	case <-ctx.Done():
	case <-collector.ended:
	}
	return nil
}
