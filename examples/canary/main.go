// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Command canary shows how llmfleet judges a rollout, without GPUs: it simulates a
// fleet of which some replicas are replaced by a new revision of the model, lets
// the collector scrape it, and prints the verdict on the new revision as it comes:
// which measure drives it, by how much it differs, and on how many requests that
// stands.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/llmfleet/llmfleet/examples/internal/demo"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// What config.yaml says too: ports, where events are written, and the judgement's
// panes.
const (
	firstPort     = 18100
	resultPort    = 9464
	telemetryPort = 18888
	eventsPath    = ".tools/canary-events.json"
	pane          = 5 * time.Second
)

// outcome is awaited. The rollout comes after a minute, the collector's start and a
// slow machine take more; a verdict may never come.
var outcome = demo.Wait{First: "canary", Patience: 4 * time.Minute, Suspense: 5 * time.Minute}

func main() {
	demo.Main(&demo.Example{
		Name:      "canary",
		FirstPort: firstPort, Ports: []int{resultPort, telemetryPort},
		EventsPath: eventsPath,
		Show:       show,
	})
}

// show prints progress, the report once there is one, and then events as they come.
func show(ctx context.Context, d *demo.Demo) error {
	lastPort := firstPort + len(d.Sim.Targets()) - 1
	fmt.Fprintf(d.Out, "%d simulated engines at %s:%d to %d, scraped by %s.\n%s ...\n\n",
		len(d.Sim.Engines()), demo.Host, firstPort, lastPort, d.Collector, plot(&d.Scenario))

	url := fmt.Sprintf("http://%s:%d/metrics", demo.Host, resultPort)
	told := ""
	got, ok, err := demo.Await(ctx, d.Ended, outcome, func() (comparison, demo.Progress, error) {
		got, err := look(ctx, d, url, &told)
		return got, got.progress(d.Told), err
	})
	if err != nil || !ok {
		return err
	}
	fmt.Fprintln(d.Out)
	if err := printReport(d.Out, &d.Scenario, &got, time.Now().UTC(), d.Elapsed()); err != nil || d.Once {
		return err
	}
	fmt.Fprintf(d.Out, `
Derived metrics for Prometheus:  %[1]s
The collector about itself:      http://%[2]s:%[3]d/metrics
The simulated engines:           http://%[2]s:%[4]d/metrics to port %[5]d
Changes of the verdict as logs:  %[6]s
See for yourself:                curl -s %[1]s | grep 'llmfleet_canary_verdict{.* 1$'
Changes of the verdict are told here until you stop it with Ctrl-C.
`, url, demo.Host, telemetryPort, firstPort, lastPort, eventsPath)
	return d.Follow(ctx)
}

// look reads what there is, and prints it if it is not what was told last, and the
// events that have come since.
func look(ctx context.Context, d *demo.Demo, url string, told *string) (comparison, error) {
	page, err := demo.Fetch(ctx, url)
	if err != nil {
		return comparison{}, err
	}
	got := readComparison(page)
	if line := got.line(); got.begun() && line != *told {
		d.Tell(line)
		*told = line
	}
	return got, d.TellEvents()
}

// plot says what will happen.
func plot(s *fleetsim.Scenario) string {
	f := rolloutOf(s)
	if f == nil {
		return "Nothing is rolled out, and there should be no canary"
	}
	return fmt.Sprintf("%v after the start, %d of %d replicas are replaced by revision %s", f.From, struck(f), s.Fleets[0].Replicas, f.Revision)
}
