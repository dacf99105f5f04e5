// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/internal/window"
)

// fleet_outlier's defaults, for what is measured below the processor.
const (
	paneLength   = 30 * time.Second
	windowLength = 5 * time.Minute
	lateness     = 5 * time.Second
	panes        = int(windowLength / paneLength)
)

// trackedFleet is a fleet of vLLM replicas in a registry, in event time: one page
// of every replica in each pane.
type trackedFleet struct {
	registry *fleet.Registry
	reader   *intake.Reader
	replicas int
	pane     time.Duration
	signals  []fleet.Signal
	page     func(round int) (pmetric.Metrics, error)
	round    int // panes that were filled
	// pass lets a pane pass, and tell writes on its page what a replica counted
	// so far; where they are nil, all replicas are alike.
	pass func()
	tell func(replica int, page pmetric.Metrics)
}

// epoch is when event time begins: a multiple of the pane length.
var epoch = time.Unix(1_800_000_000, 0)

// newTrackedFleet is one that fleet_outlier follows.
func newTrackedFleet(replicas int, signals []fleet.Signal, page func(round int) (pmetric.Metrics, error)) *trackedFleet {
	load := []fleet.Signal{fleet.Waiting, fleet.Running, fleet.KVUsage}
	t := newTrackedFleetOn(window.NewGrid(paneLength, windowLength, lateness), replicas, append(load, signals...), page)
	t.signals = signals
	return t
}

// newTrackedFleetOn is one of which these signals are read, and nothing else, into
// windows of that geometry.
func newTrackedFleetOn(
	grid window.Grid, replicas int, signals []fleet.Signal, page func(round int) (pmetric.Metrics, error),
) *trackedFleet {
	t := &trackedFleet{replicas: replicas, pane: grid.Interval(), signals: signals, page: page}
	t.registry = fleet.NewRegistry(fleet.Options{Grids: []window.Grid{grid}, Lateness: lateness, MaxReplicas: replicas})
	t.registry.Open(window.Instant(epoch.UnixNano()))
	t.reader = intake.NewReader(intake.Options{
		Dialects: dialect.Builtin(),
		Signals:  signals,
		GroupBy:  []string{"cluster", "namespace", "model_name", "role", "engine_name", "gpu_model"},
	}, t.registry)
	return t
}

// fillPane reads one page of every replica and returns the end of their pane.
func (t *trackedFleet) fillPane() (end window.Instant, err error) {
	template, err := t.page(t.round)
	if err != nil {
		return 0, err
	}
	t.round++
	if t.pass != nil {
		t.pass()
	}
	at := epoch.Add(time.Duration(t.round) * t.pane)
	md := pmetric.NewMetrics()
	for replica := range t.replicas {
		template.CopyTo(md)
		address(md, replica, at)
		if t.tell != nil {
			t.tell(replica, md)
		}
		t.reader.Read(md)
	}
	return window.Instant(at.UnixNano()), nil
}

// fillWindow fills and closes as many panes as it takes until nobody is warming.
func (t *trackedFleet) fillWindow() error {
	for range panes + 1 {
		end, err := t.fillPane()
		if err != nil {
			return err
		}
		t.registry.Close(end, fleet.Ask{Signals: t.signals}, func(*fleet.Frame) {})
	}
	return nil
}

// The names of what fleet_outlier reads from a vLLM page by default.
const (
	vllmTTFT    = "vllm:time_to_first_token_seconds"
	vllmITL     = "vllm:inter_token_latency_seconds"
	vllmWaiting = "vllm:num_requests_waiting"
	vllmRunning = "vllm:num_requests_running"
	vllmKVUsage = "vllm:kv_cache_usage_perc"
)

// readPart makes the points of a page that are read without the alarm, and some
// more: what is passed over costs nothing once it has been read.
func readPart(page *vllmPage, more ...string) func(round int) (pmetric.Metrics, error) {
	return func(round int) (pmetric.Metrics, error) {
		md, err := pointsOf(page.at(round))
		if err != nil {
			return md, err
		}
		keep(md, append(more, "up", vllmTTFT, vllmITL, vllmWaiting, vllmRunning, vllmKVUsage)...)
		return md, nil
	}
}
