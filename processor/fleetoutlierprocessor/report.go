// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
	"context"
	"strconv"

	"go.opentelemetry.io/collector/consumer"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/judge/outlier"
	"github.com/llmfleet/llmfleet/internal/window"
	"github.com/llmfleet/llmfleet/processor/fleetoutlierprocessor/internal/metadata"
)

// reportWriter writes reports as metrics.
type reportWriter struct {
	writer   *emit.Writer
	replica  replicaSlots
	fleet    fleetSlots
	node     emit.Slot
	labels   []fleet.Label
	withheld [outlier.ReasonCount]uint64 // figures so far
}

// replicaSlots are the series of one replica, as its report lists them.
type replicaSlots struct {
	latency, ratio, low, high []emit.Slot // by signal and quantile
	observations              []emit.Slot // by signal
	load                      []emit.Slot // by fleet.LoadOf
	loadRatio                 []emit.Slot
	work, workRatio           []emit.Slot // by outlier.Works
	stuck                     emit.Slot
	alarm                     alarmSlots
}

type fleetSlots struct {
	latency, spread  []emit.Slot
	load             []emit.Slot
	waitingImbalance emit.Slot
	states           []emit.Slot
	coverage         emit.Slot
	work             []emit.Slot // by outlier.Works
	outliers         emit.Slot
}

func newReportWriter(c *Config, signals []fleet.Signal, version, instance string, next consumer.Metrics) *reportWriter {
	w := emit.NewWriter(emit.Options{
		Component: componentType,
		Switches:  c.Metrics,
		ScopeName: metadata.ScopeName,
		Version:   version,
		Instance:  instance,
		Next:      next.ConsumeMetrics,
	})
	r := &reportWriter{writer: w}
	for _, s := range signals {
		signal := fleet.Label{Name: emit.AttributeSignal, Value: s.String()}
		for _, q := range c.Quantiles {
			quantile := fleet.Label{Name: emit.AttributeQuantile, Value: strconv.FormatFloat(q, 'g', -1, 64)}
			r.replica.latency = append(r.replica.latency, w.Slot(emit.ReplicaLatency, signal, quantile))
			r.replica.ratio = append(r.replica.ratio, w.Slot(emit.ReplicaLatencyRatio, signal, quantile))
			r.replica.low = append(r.replica.low, w.Slot(emit.ReplicaLatencyLowRatio, signal, quantile))
			r.replica.high = append(r.replica.high, w.Slot(emit.ReplicaLatencyHighRatio, signal, quantile))
			r.fleet.latency = append(r.fleet.latency, w.Slot(emit.FleetLatency, signal, quantile))
			r.fleet.spread = append(r.fleet.spread, w.Slot(emit.FleetLatencySpread, signal, quantile))
		}
		r.replica.observations = append(r.replica.observations, w.Slot(emit.ReplicaObservations, signal))
	}
	r.replica.load = loadSlots(w, emit.ReplicaRequests, emit.ReplicaKVUsage)
	r.fleet.load = loadSlots(w, emit.FleetRequests, emit.FleetKVUsage)
	for s := fleet.Waiting; s <= fleet.KVUsage; s++ {
		r.replica.loadRatio = append(r.replica.loadRatio,
			w.Slot(emit.ReplicaLoadRatio, fleet.Label{Name: emit.AttributeSignal, Value: s.String()}))
	}
	r.fleet.waitingImbalance = w.Slot(emit.FleetWaitingImbalance)
	for s := range outlier.StateCount {
		r.fleet.states = append(r.fleet.states, w.Slot(emit.FleetReplicas, state(s.String())))
	}
	r.fleet.coverage = w.Slot(emit.FleetCoverage)
	for i := range outlier.Works {
		signal := outlier.Works[i].Signal
		r.replica.work = append(r.replica.work, w.Slot(workMetrics[signal].replica))
		r.replica.workRatio = append(r.replica.workRatio, w.Slot(emit.ReplicaWorkRatio, fleet.Label{Name: emit.AttributeSignal, Value: signal.String()}))
		r.fleet.work = append(r.fleet.work, w.Slot(workMetrics[signal].fleet))
	}
	r.replica.stuck = w.Slot(emit.ReplicaStuck)
	r.replica.alarm = newAlarmSlots(w, c)
	r.fleet.outliers = w.Slot(emit.FleetOutliers)
	r.node = w.Slot(emit.NodeOutlier)
	return r
}

// workMetrics are the names of each of outlier.Works: the replica's and the
// fleet's.
var workMetrics = map[fleet.Signal]struct{ replica, fleet string }{
	fleet.Errors:           {emit.ReplicaErrorRatio, emit.FleetErrorRatio},
	fleet.PrefixHits:       {emit.ReplicaPrefixHitRatio, emit.FleetPrefixHitRatio},
	fleet.GenerationTokens: {emit.ReplicaGenerationTokens, emit.FleetGenerationTokens},
	fleet.Preemptions:      {emit.ReplicaPreemptions, emit.FleetPreemptions},
	fleet.PromptLength:     {emit.ReplicaPromptLength, emit.FleetPromptLength},
	fleet.OutputLength:     {emit.ReplicaOutputLength, emit.FleetOutputLength},
}

// loadSlots are those of waiting and running requests and of usage.
func loadSlots(w *emit.Writer, requests, usage string) []emit.Slot {
	return []emit.Slot{
		w.Slot(requests, state(fleet.Waiting.String())),
		w.Slot(requests, state(fleet.Running.String())),
		w.Slot(usage),
	}
}

func state(value string) fleet.Label {
	return fleet.Label{Name: emit.AttributeState, Value: value}
}

func (w *reportWriter) begin(at window.Instant) { w.writer.Begin(at) }

func (w *reportWriter) end(ctx context.Context) error { return w.writer.End(ctx) }

// write writes the report of one fleet, and what the alarm says, if there is one.
// A fleet of which no replica is left is told no more: another collector may have
// taken it over, and each of two would tell it.
func (w *reportWriter) write(ctx context.Context, f *fleet.Fleet, r *outlier.Report, v *outlier.Verdicts) {
	for i := range r.Replicas {
		w.writeReplica(ctx, &r.Replicas[i])
		if v != nil {
			w.writeVerdict(&v.Replicas[i])
		}
	}
	if len(r.Replicas) == 0 {
		return
	}
	w.writer.About(ctx, f.Keys)
	if v != nil {
		w.set(w.fleet.outliers, v.Outliers)
	}
	w.setAll(w.fleet.latency, r.Latency)
	w.setAll(w.fleet.spread, r.Spread)
	w.setAll(w.fleet.load, r.Load[:])
	w.set(w.fleet.waitingImbalance, r.WaitingImbalance)
	w.set(w.fleet.coverage, r.Coverage)
	w.setAll(w.fleet.work, r.Work[:])
	for s, n := range r.States {
		w.writer.Set(w.fleet.states[s], float64(n))
	}
}

func (w *reportWriter) writeReplica(ctx context.Context, r *outlier.Replica) {
	id := r.Identity
	w.labels = append(w.labels[:0], id.Keys...)
	w.labels = append(w.labels, fleet.Label{Name: emit.AttributeReplica, Value: id.Replica})
	w.labels = append(w.labels, id.Where...)
	w.labels = append(w.labels, id.Variant...)
	w.writer.About(ctx, w.labels)
	for i := range r.Latency {
		l := &r.Latency[i]
		w.set(w.replica.latency[i], l.Value)
		w.set(w.replica.ratio[i], l.Ratio)
		w.set(w.replica.low[i], l.LowRatio)
		w.set(w.replica.high[i], l.HighRatio)
	}
	w.setAll(w.replica.observations, r.Observations)
	w.setAll(w.replica.load, r.Load[:])
	w.setAll(w.replica.loadRatio, r.LoadRatio[:])
	w.setAll(w.replica.work, r.Work[:])
	w.setAll(w.replica.workRatio, r.WorkRatio[:])
	w.set(w.replica.stuck, r.Stuck)
}

func (w *reportWriter) setAll(slots []emit.Slot, figures []outlier.Figure) {
	for i, f := range figures {
		w.set(slots[i], f)
	}
}

// set writes a figure, or counts why not.
func (w *reportWriter) set(s emit.Slot, f outlier.Figure) {
	switch {
	case s == emit.None:
	case f.Withheld != outlier.Given:
		w.withheld[f.Withheld]++
	default:
		w.writer.Set(s, f.Value)
	}
}
