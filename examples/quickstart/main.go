// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Command quickstart shows llmfleet at work without GPUs: it simulates fleets
// with one slow replica, lets the collector scrape them, and prints the verdict on
// each replica, the evidence and the cause.
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

// What config.yaml says too: addresses, where events are written, and the
// judgement's window and warm-up.
const (
	host          = "127.0.0.1"
	firstPort     = 18100
	resultPort    = 9464
	telemetryPort = 18888
	eventsPath    = ".tools/quickstart-events.json"
	window        = 20 * time.Second
	warmup        = 20 * time.Second
)

const (
	// patience is how long the first result may take: a window, the collector's
	// start, and a slow machine.
	patience = 2 * time.Minute
	// suspense is how much longer the first onset may take.
	suspense = 90 * time.Second
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
	events   events
	told     int    // sentences
	progress string // the newest line
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
	d := &demo{options: o, scenario: scenario, events: events{path: eventsPath}, start: time.Now(), out: out}
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
	if err := d.events.forget(); err != nil {
		return err
	}
	collector, err := startCollector(d.collector, d.config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, collector.stop()) }()
	engines := d.sim.Engines()
	lastPort := firstPort + len(d.sim.Targets()) - 1
	fmt.Fprintf(d.out, "%d simulated engines (%d pages, at %s:%d to %d), scraped by %s.\n"+
		"Each is watched for %.0f s before it can be flagged; that takes about a minute in all ...\n\n",
		len(engines), len(d.sim.Targets()), host, firstPort, lastPort, d.collector, warmup.Seconds())

	replicas := make([]replica, len(engines))
	for i, e := range engines {
		replicas[i] = replica{pod: e.Name(), itl: measuresITL(&d.scenario, e)}
	}
	url := fmt.Sprintf("http://%s:%d/metrics", host, resultPort)
	got, err := awaitVerdicts(ctx, collector.ended, replicas, func() (figures, error) { return d.look(ctx, url) })
	if err != nil || got.replicas == nil {
		return err
	}
	fmt.Fprintln(d.out)
	if err := printReport(d.out, arrange(&d.scenario, engines, got, d.elapsed())); err != nil || d.once {
		return err
	}
	fmt.Fprintf(d.out, `
Derived metrics for Prometheus:  %[1]s
The collector about itself:      http://%[2]s:%[3]d/metrics
The simulated engines:           http://%[2]s:%[4]d/metrics to port %[5]d (TensorRT-LLM: /prometheus/metrics)
Onsets and clears as logs:       %[6]s
See for yourself:                curl -s %[1]s | grep 'llmfleet_replica_outlier.* 1$'
Stop with Ctrl-C.
`, url, host, telemetryPort, firstPort, lastPort, eventsPath)
	return d.follow(ctx, collector.ended)
}

// look reads what there is, and prints what has come since the last look.
func (d *demo) look(ctx context.Context, url string) (figures, error) {
	got, err := fetchFigures(ctx, url)
	if err != nil {
		return got, err
	}
	if pod, evidence := got.suspect(); evidence > 0 && evidence < 1 {
		d.tell(fmt.Sprintf("most evidence of an outlier: %.2f, %s", evidence, pod))
	}
	err = d.tellEvents()
	got.told = d.told
	return got, err
}

// tell prints a line of progress, if it is a new one.
func (d *demo) tell(line string) {
	if line != d.progress {
		d.progress = line
		fmt.Fprintf(d.out, "%3.0f s  %s\n", d.elapsed().Seconds(), line)
	}
}

func (d *demo) tellEvents() error {
	sentences, err := d.events.next()
	for _, sentence := range sentences {
		d.told++
		d.tell(sentence)
	}
	return err
}

// follow prints events as they come.
func (d *demo) follow(ctx context.Context, ended <-chan struct{}) error {
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
			return nil
		case <-poll.C:
			if err := d.tellEvents(); err != nil {
				return err
			}
		}
	}
}
