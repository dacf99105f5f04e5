// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	scrapeTargets  = 200
	scrapeInterval = 2 * time.Second
	// Shorter than the defaults (30s, 5m), so that each measurement holds
	// several evaluations and the run does not take half an hour. It makes
	// the figure stricter: evaluations are three times as frequent.
	evaluationInterval = 10 * time.Second
	evaluationWindow   = time.Minute

	scrapePairs = 5
	pairLength  = 30 * time.Second
)

// scrapeOverhead is the processor time of the collector that scrapes a fleet
// with fleet_outlier, over that of one that only scrapes it: both run at the
// same time, and the median of several stretches counts. Nothing is exported,
// so that only scraping stands beside fleet_outlier.
type scrapeOverhead struct {
	collectorPath string
}

func (s scrapeOverhead) measure(ctx context.Context) (ratio float64, err error) {
	folder, err := os.MkdirTemp("", "llmfleet-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)

	pages, err := newPageServer(scrapeInterval)
	if err != nil {
		return 0, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	server := &http.Server{Handler: pages, ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }() // until the Close below
	defer server.Close()

	address := listener.Addr().String()
	without, err := startCollector(ctx, s.collectorPath, folder, scrapeConfig(address, ""))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, without.stop()) }()
	with, err := startCollector(ctx, s.collectorPath, folder, scrapeConfig(address, "fleet_outlier"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, with.stop()) }()

	if err := wait(ctx, evaluationWindow+evaluationInterval); err != nil {
		return 0, err
	}
	ratios, err := compare(ctx, with, without)
	if err != nil {
		return 0, err
	}
	return median(ratios), didTheWork(ctx, with, without, pages.page.families())
}

// compare takes the ratio of processor time, stretch by stretch.
func compare(ctx context.Context, with, without *collector) ([]float64, error) {
	var ratios []float64
	for range scrapePairs {
		beginWith, errWith := with.cpu(ctx)
		beginWithout, errWithout := without.cpu(ctx)
		if err := errors.Join(errWith, errWithout, wait(ctx, pairLength)); err != nil {
			return nil, err
		}
		endWith, errWith := with.cpu(ctx)
		endWithout, errWithout := without.cpu(ctx)
		if err := errors.Join(errWith, errWithout); err != nil {
			return nil, err
		}
		ratios = append(ratios, (endWith-beginWith)/(endWithout-beginWithout))
	}
	return ratios, nil
}

// didTheWork guards against a comparison of two collectors that do nothing:
// both have taken at least one point of every family on every page, and one has
// read observations from every page.
func didTheWork(ctx context.Context, with, without *collector, families int) error {
	const (
		accepted     = "otelcol_receiver_accepted_metric_points"
		observations = "otelcol_processor_fleet_outlier_observations"
	)
	scrapes := float64(scrapePairs*pairLength/scrapeInterval) * scrapeTargets
	acceptedWith, errWith := with.total(ctx, accepted)
	acceptedWithout, errWithout := without.total(ctx, accepted)
	observed, errObserved := with.total(ctx, observations)
	if err := errors.Join(errWith, errWithout, errObserved); err != nil {
		return err
	}
	if least := scrapes * float64(families); min(acceptedWith, acceptedWithout) < least || observed < scrapes {
		return fmt.Errorf("of %g pages the collectors took %g and %g points, and fleet_outlier made %g observations: too few",
			scrapes, acceptedWith, acceptedWithout, observed)
	}
	return nil
}

// scrapeConfig configures a collector that scrapes the page server once for
// each target. processor is the one in between, or empty.
func scrapeConfig(address, processor string) func(metricsPort int) string {
	var targets strings.Builder
	for i := range scrapeTargets {
		fmt.Fprintf(&targets, `
            - targets: ["%s"]
              labels: {instance: "engine-%d", namespace: bench, pod: "engine-%d"}`, address, i, i)
	}
	return func(metricsPort int) string {
		return fmt.Sprintf(`
receivers:
  prometheus:
    config:
      scrape_configs:
        - job_name: engines
          scrape_interval: %s
          scrape_timeout: %s
          static_configs:%s
processors:
  fleet_outlier: {interval: %s, window: %s}
exporters:
  nop:
service:
  telemetry:
    logs: {level: error}
    metrics:
      readers:
        - pull: {exporter: {prometheus: {host: 127.0.0.1, port: %d}}}
  pipelines:
    metrics:
      receivers: [prometheus]
      processors: [%s]
      exporters: [nop]
`, scrapeInterval, scrapeInterval, &targets, evaluationInterval, evaluationWindow, metricsPort, processor)
	}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}
