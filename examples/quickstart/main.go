// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Command quickstart shows llmfleet at work without GPUs: it simulates fleets
// with one slow replica, lets the collector scrape them, and prints the verdict on
// each replica, the evidence and the cause.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/llmfleet/llmfleet/examples/internal/demo"
)

// What config.yaml says too: ports, where events are written, and the judgement's
// window and warm-up.
const (
	firstPort     = 18100
	resultPort    = 9464
	telemetryPort = 18888
	eventsPath    = ".tools/quickstart-events.json"
	window        = 20 * time.Second
	warmup        = 20 * time.Second
)

// verdicts are awaited. The first ratio takes a window, the collector's start, and
// a slow machine; there may never be an outlier.
var verdicts = demo.Wait{First: "latency ratio", Patience: 2 * time.Minute, Suspense: 90 * time.Second}

func main() {
	demo.Main(&demo.Example{
		Name:      "quickstart",
		FirstPort: firstPort, Ports: []int{resultPort, telemetryPort},
		EventsPath: eventsPath,
		Show:       show,
	})
}

// show prints progress, the report once there is one, and then events as they come.
func show(ctx context.Context, d *demo.Demo) error {
	engines, pages := d.Sim.Engines(), len(d.Sim.Targets())
	lastPort := firstPort + pages - 1
	fmt.Fprintf(d.Out, "%d simulated engines (%d pages, at %s:%d to %d), scraped by %s.\n"+
		"Each is watched for %.0f s before it can be flagged; that takes about a minute in all ...\n\n",
		len(engines), pages, demo.Host, firstPort, lastPort, d.Collector, warmup.Seconds())

	replicas := make([]replica, len(engines))
	for i, e := range engines {
		replicas[i] = replica{pod: e.Name(), itl: measuresITL(&d.Scenario, e)}
	}
	url := fmt.Sprintf("http://%s:%d/metrics", demo.Host, resultPort)
	got, ok, err := demo.Await(ctx, d.Ended, verdicts, func() (figures, demo.Progress, error) {
		got, err := look(ctx, d, url)
		return got, got.progress(replicas, d.Told), err
	})
	if err != nil || !ok {
		return err
	}
	fmt.Fprintln(d.Out)
	if err := printReport(d.Out, arrange(&d.Scenario, engines, got, d.Elapsed())); err != nil || d.Once {
		return err
	}
	fmt.Fprintf(d.Out, `
Derived metrics for Prometheus:  %[1]s
The collector about itself:      http://%[2]s:%[3]d/metrics
The simulated engines:           http://%[2]s:%[4]d/metrics to port %[5]d (TensorRT-LLM: /prometheus/metrics)
Onsets and clears as logs:       %[6]s
See for yourself:                curl -s %[1]s | grep 'llmfleet_replica_outlier.* 1$'
Stop with Ctrl-C.
`, url, demo.Host, telemetryPort, firstPort, lastPort, eventsPath)
	return d.Follow(ctx)
}

// look reads what there is, and prints what has come since the last look.
func look(ctx context.Context, d *demo.Demo, url string) (figures, error) {
	page, err := demo.Fetch(ctx, url)
	if err != nil {
		return figures{}, err
	}
	got := readFigures(page)
	if pod, evidence := got.suspect(); evidence > 0 && evidence < 1 {
		d.Tell(fmt.Sprintf("most evidence of an outlier: %.2f, %s", evidence, pod))
	}
	return got, d.TellEvents()
}
