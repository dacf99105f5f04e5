// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package demo is what the examples' programs have in common: a simulated fleet
// served in real time, the collector as a child process, its results and events
// read as they come, and one way to end all of it.
package demo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path"
	"syscall"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/fleetsim/gateway"
)

// Host is where everything of a demo listens.
const Host = "127.0.0.1"

// Example is what one program has of its own.
type Example struct {
	// Name of its folder in examples/, where config.yaml and fleet.yaml are.
	Name string
	// FirstPort is that of the first simulated page; the others follow. Ports are
	// those that the collector listens at.
	FirstPort int
	Ports     []int
	// SpansURL is where the collector takes the spans of a gateway before the
	// fleet; "" if there is none.
	SpansURL string
	// EventsPath is where the collector writes events.
	EventsPath string
	// Show tells what the collector finds, until ctx is done or d.Ended is closed.
	Show func(ctx context.Context, d *Demo) error
}

// Options are the flags of a demo.
type Options struct {
	Collector, Config, Fleet string
	Once                     bool
}

// Demo is a simulated fleet in motion and the collector beside it.
type Demo struct {
	Options
	Scenario fleetsim.Scenario
	Sim      *fleetsim.Simulation
	Out      io.Writer
	// Ended is closed when the collector is gone.
	Ended <-chan struct{}
	// Told counts the onsets and clears that were printed.
	Told int

	start    time.Time
	gateway  *gateway.Exporter // nil if there is none
	events   events
	progress string // the newest line
}

// Main runs an example until its end or Ctrl-C, and exits.
func Main(x *Example) {
	var o Options
	folder := path.Join("examples", x.Name)
	flag.StringVar(&o.Collector, "collector", "dist/llmfleet", "the collector's `binary`")
	flag.StringVar(&o.Config, "config", path.Join(folder, "config.yaml"), "the collector's configuration `file`")
	flag.StringVar(&o.Fleet, "fleet", path.Join(folder, "fleet.yaml"), "the scenario `file` of the simulated fleet")
	flag.BoolVar(&o.Once, "once", false, "print the report and exit")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := x.run(ctx, &o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", x.Name, err)
		os.Exit(1)
	}
}

// run returns when Show has or ctx is done, after the collector and the
// simulation have ended.
func (x *Example) run(ctx context.Context, o *Options, out io.Writer) error {
	scenario, err := fleetsim.Load(o.Fleet)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: run it from the repository's root, or name the file with -fleet", err)
	}
	if err != nil {
		return err
	}
	d := &Demo{Options: *o, Scenario: scenario, Out: out, events: events{path: x.EventsPath}, start: time.Now()}
	if d.Sim, err = fleetsim.New(scenario, d.start); err != nil {
		return err
	}
	if x.SpansURL != "" {
		if d.gateway, err = gateway.New(gateway.Options{Endpoint: x.SpansURL}); err != nil {
			return err
		}
		d.Sim.Watch(d.gateway.Add)
	}
	if err := CheckPorts(x.usedPorts(len(d.Sim.Targets()))); err != nil {
		return err
	}
	server, err := fleetsim.Listen(d.Sim, Host, x.FirstPort)
	if err != nil {
		return err
	}

	serving, cancel := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving, d.Elapsed) }()
	err = x.collect(serving, d)
	cancel()
	err = errors.Join(err, <-served)
	if err == nil && ctx.Err() != nil {
		// The terminal has put ^C at the beginning of a line.
		fmt.Fprint(out, "\nstopped\n")
	}
	return err
}

// collect runs the collector beside the simulation while Show shows.
func (x *Example) collect(ctx context.Context, d *Demo) (err error) {
	if err := d.events.forget(); err != nil {
		return err
	}
	collector, err := StartCollector(d.Collector, d.Config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, collector.Stop()) }()
	d.Ended = collector.Ended
	defer d.sendSpans(ctx)()
	return x.Show(ctx, d)
}

// sendSpans sends what the gateway tells until stop is called.
func (d *Demo) sendSpans(ctx context.Context) (stop func()) {
	if d.gateway == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		d.gateway.Run(ctx)
	}()
	return func() {
		cancel()
		<-sent
		if _, dropped := d.gateway.Counts(); dropped > 0 {
			fmt.Fprintf(d.Out, "%d spans of the gateway were not taken by the collector\n", dropped)
		}
	}
}

func (x *Example) usedPorts(pages int) []int {
	ports := append([]int(nil), x.Ports...)
	for i := range pages {
		ports = append(ports, x.FirstPort+i)
	}
	return ports
}

// Elapsed is how long the fleet has run.
func (d *Demo) Elapsed() time.Duration { return time.Since(d.start) }

// Tell prints a line of progress, if it is a new one.
func (d *Demo) Tell(line string) {
	if line != d.progress {
		d.progress = line
		fmt.Fprintf(d.Out, "%3.0f s  %s\n", d.Elapsed().Seconds(), line)
	}
}

// TellEvents prints the events that have come since it was called last.
func (d *Demo) TellEvents() error {
	sentences, err := d.events.next()
	for _, sentence := range sentences {
		d.Told++
		d.Tell(sentence)
	}
	return err
}

// Follow prints events as they come.
func (d *Demo) Follow(ctx context.Context) error {
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.Ended:
			return nil
		case <-poll.C:
			if err := d.TellEvents(); err != nil {
				return err
			}
		}
	}
}
