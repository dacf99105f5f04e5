// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

const (
	emitReplicas = 10_000
	emitRounds   = 7
)

// emit10k measures how long it takes to write the report of 10,000 replicas with
// the metrics that are on by default, and to hand it on; in a process that
// follows as many replicas, whose heap decides how often garbage is collected.
func emit10k(ctx context.Context) (ms float64, err error) {
	var durations []float64
	followed, err := judgedFleet()
	if err != nil {
		return 0, err
	}
	err = emitReports(ctx, func() {}, func(write func() error) error {
		began := time.Now()
		err := write()
		durations = append(durations, milliseconds(time.Since(began)))
		return err
	})
	runtime.KeepAlive(followed)
	return median(durations), err
}

// emitPeak measures how much the heap grows while that report is written, at
// most and with what is not yet collected.
func emitPeak(ctx context.Context) (megabytes float64, err error) {
	var peaks []float64
	var before, peak uint64
	sample := func() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapAlloc)
	}
	err = emitReports(ctx, sample, func(write func() error) error {
		before, peak = heap(), 0
		err := write()
		peaks = append(peaks, float64(peak-min(peak, before))/1e6)
		return err
	})
	return median(peaks), err
}

// emitReports lets a writer write the report of a large fleet several times;
// next is called with each batch that it hands on.
func emitReports(ctx context.Context, next func(), measure func(write func() error) error) error {
	points := 0
	w := emit.NewWriter(emit.Options{
		Component: "fleet_outlier",
		ScopeName: "bench",
		Instance:  "bench",
		Next: func(_ context.Context, md pmetric.Metrics) error {
			points += md.DataPointCount()
			next()
			return nil
		},
	})
	slots := replicaSlots(w, true)
	replicas := make([][]fleet.Label, emitReplicas)
	for i := range replicas {
		replicas[i] = replicaLabels(i)
	}
	at := window.Instant(epoch.UnixNano())
	write := func() error {
		at = at.Add(paneLength)
		w.Begin(at)
		for i, labels := range replicas {
			w.About(ctx, labels)
			for _, slot := range slots {
				w.Set(slot, float64(i))
			}
		}
		return w.End(ctx)
	}
	if err := write(); err != nil { // the first report makes the series
		return err
	}
	for range emitRounds {
		points = 0
		if err := measure(write); err != nil {
			return err
		}
		if points != emitReplicas*len(slots) {
			return fmt.Errorf("emitted %d points, not %d", points, emitReplicas*len(slots))
		}
	}
	return nil
}

// ofAlarm are the metrics of a replica that the alarm tells, and ofFlagged those
// of them that only a replica has that was flagged.
var (
	ofAlarm   = []string{emit.ReplicaOutlier, emit.ReplicaOutlierEvidence}
	ofFlagged = []string{emit.ReplicaOutlierCause, emit.ReplicaOutlierSignal}
)

// replicaSlots declares the series that every replica has by default, those of
// the alarm too or without them.
func replicaSlots(w *emit.Writer, alarm bool) []emit.Slot {
	values := map[string][]string{
		emit.AttributeSignal:   {"ttft", "itl"},
		emit.AttributeQuantile: {"0.5", "0.95"},
		emit.AttributeState:    {"waiting", "running"},
	}
	var slots []emit.Slot
	for _, metric := range emit.Of("fleet_outlier") {
		switch {
		case metric.Of != emit.Replica, !metric.Enabled,
			slices.Contains(ofFlagged, metric.Name),
			!alarm && slices.Contains(ofAlarm, metric.Name):
			continue
		}
		series := [][]fleet.Label{nil}
		for _, attribute := range metric.Attributes {
			var longer [][]fleet.Label
			for _, labels := range series {
				for _, value := range values[attribute] {
					longer = append(longer, append(slices.Clip(labels), fleet.Label{Name: attribute, Value: value}))
				}
			}
			series = longer
		}
		for _, labels := range series {
			slots = append(slots, w.Slot(metric.Name, labels...))
		}
	}
	return slots
}

// replicaLabels are the labels of a replica on Kubernetes whose every key is known.
func replicaLabels(i int) []fleet.Label {
	return []fleet.Label{
		{Name: "cluster", Value: "bench"},
		{Name: "namespace", Value: "inference"},
		{Name: "model_name", Value: "meta-llama/Llama-3.3-70B-Instruct"},
		{Name: "role", Value: "decode"},
		{Name: "engine_name", Value: "vllm"},
		{Name: "gpu_model", Value: "NVIDIA-H100-80GB-HBM3"},
		{Name: emit.AttributeReplica, Value: fmt.Sprintf("00000000-0000-4000-8000-%012d", i)},
		{Name: "pod", Value: fmt.Sprintf("llama-decode-%d", i)},
	}
}
