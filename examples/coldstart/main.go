// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Command coldstart shows how llmfleet explains the start of a pod, without GPUs
// and without Kubernetes: it sends the collector what was recorded of one start,
// as if all of it had just happened, and prints the trace that comes of it as a
// waterfall: what took how long, what of it the replica waited for, and what
// nothing told explains.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/llmfleet/llmfleet/examples/internal/demo"
)

// Where config.yaml has the collector take logs and send traces.
const (
	logsPort   = 18418
	tracesPort = 18419
)

const (
	// patience is how long the collector may take to start, and a trace to come.
	patience = time.Minute
	// retryEvery is how often a collector that is not up yet is tried again.
	retryEvery = 250 * time.Millisecond
)

// options are the flags.
type options struct{ collector, config, recording string }

func main() {
	var o options
	flag.StringVar(&o.collector, "collector", "dist/llmfleet", "the collector's `binary`")
	flag.StringVar(&o.config, "config", "examples/coldstart/config.yaml", "the collector's configuration `file`")
	flag.StringVar(&o.recording, "recording", "examples/coldstart/cold.json", "what was told of a start: a `file` of logs as OTLP in JSON")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, &o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "coldstart:", err)
		os.Exit(1)
	}
}

// run plays the recording and prints the trace that comes of it.
func run(ctx context.Context, o *options, out io.Writer) error {
	played, err := readRecording(o.recording)
	if err != nil {
		return err
	}
	if err := demo.CheckPorts([]int{logsPort, tracesPort}); err != nil {
		return err
	}
	arrivals, err := listen(fmt.Sprintf("%s:%d", demo.Host, tracesPort))
	if err != nil {
		return err
	}
	if err := errors.Join(collect(ctx, o, &played, arrivals), arrivals.close()); err != nil {
		return err
	}
	told, err := readStart(arrivals.all())
	if err != nil {
		return err
	}
	return told.print(out)
}

// collect runs the collector until it has told the start.
func collect(ctx context.Context, o *options, played *recording, arrivals *sink) (err error) {
	collector, err := demo.StartCollector(o.collector, o.config)
	if err != nil {
		return err
	}
	// What is not told yet is told when it stops: the first token has a place in the
	// trace of its own.
	defer func() { err = errors.Join(err, collector.Stop()) }()
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("there is no trace after %v: is the machine too busy?", patience))
	defer cancel()
	if err := play(ctx, collector.Ended, played); err != nil {
		return err
	}
	select {
	case <-arrivals.rooted:
	case <-collector.Ended:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// play sends the recording, as soon as the collector takes it.
func play(ctx context.Context, ended <-chan struct{}, played *recording) error {
	retry := time.NewTicker(retryEvery)
	defer retry.Stop()
	for {
		played.moveTo(time.Now())
		err := post(ctx, played)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-ended:
			return nil // Stop says why
		case <-retry.C:
		}
	}
}

// post sends the recording once.
func post(ctx context.Context, played *recording) error {
	body, err := plogotlp.NewExportRequestFromLogs(played.logs).MarshalProto()
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://%s:%d/v1/logs", demo.Host, logsPort), bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", protobuf)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the collector did not take the recording: %s", response.Status)
	}
	return nil
}
