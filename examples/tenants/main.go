// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Command tenants shows how llmfleet finds a noisy neighbour, without GPUs: it
// simulates engines that many tenants share behind a gateway, lets the collector
// scrape the engines and take the gateway's spans, and prints which tenant makes
// everyone's tokens slower, since when, and by how much.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/llmfleet/llmfleet/examples/internal/demo"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// What config.yaml says too: ports, where events and records are written, and the
// judgement's panes and lateness.
const (
	firstPort     = 18100
	resultPort    = 9464
	telemetryPort = 18888
	spansPort     = 18318
	eventsPath    = ".tools/tenants-events.json"
	usagePath     = ".tools/tenants-usage.json"
	pane          = 5 * time.Second
	lateness      = 2 * time.Second
)

// culprit is awaited. What is usual takes a minute to learn, the collector's start
// and a slow machine more; there may never be a culprit.
var culprit = demo.Wait{First: "usual inter-token latency", Patience: 3 * time.Minute, Suspense: 3 * time.Minute}

func main() {
	demo.Main(&demo.Example{
		Name:      "tenants",
		FirstPort: firstPort, Ports: []int{resultPort, telemetryPort, spansPort},
		SpansURL:   fmt.Sprintf("http://%s:%d", demo.Host, spansPort),
		EventsPath: eventsPath,
		Show:       show,
	})
}

// show prints progress, the report once there is one, and then events as they come.
func show(ctx context.Context, d *demo.Demo) error {
	lastPort := firstPort + len(d.Sim.Targets()) - 1
	fmt.Fprintf(d.Out, "%d simulated engines at %s:%d to %d, scraped by %s, and a gateway that sends it spans.\n%s ...\n\n",
		len(d.Sim.Engines()), demo.Host, firstPort, lastPort, d.Collector, plot(&d.Scenario))

	url := fmt.Sprintf("http://%s:%d/metrics", demo.Host, resultPort)
	var told figures
	got, ok, err := demo.Await(ctx, d.Ended, culprit, func() (figures, demo.Progress, error) {
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
Onset and clear as logs:         %[6]s
What each tenant used, as logs:  %[7]s
See for yourself:                curl -s %[1]s | grep 'llmfleet_tenant_noisy{.* 1$'
Onsets and clears are told here until you stop it with Ctrl-C.
`, url, demo.Host, telemetryPort, firstPort, lastPort, eventsPath, usagePath)
	return d.Follow(ctx)
}

// plot says what will happen.
func plot(s *fleetsim.Scenario) string {
	const learns = "The collector learns what is usual; "
	for i := range s.Faults {
		if f := &s.Faults[i]; f.Tenant != "" {
			return fmt.Sprintf(learns+"%v after the start, %s begins to send more", f.From, f.Tenant)
		}
	}
	return learns + "no tenant will send more than that, and none should be named"
}

// look reads what there is, and prints how it differs from what was told last, and
// the events that have come since.
func look(ctx context.Context, d *demo.Demo, url string, told *figures) (figures, error) {
	page, err := demo.Fetch(ctx, url)
	if err != nil {
		return figures{}, err
	}
	got := readFigures(page)
	if got.differs(told) {
		d.Tell(got.line())
		*told = got
	}
	return got, d.TellEvents()
}
