// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/judge/outlier"
	"github.com/llmfleet/llmfleet/internal/window"
	"github.com/llmfleet/llmfleet/test/drawntest"
)

const (
	alarmPane    = time.Minute
	panesOfAlarm = int(alarmPane / paneLength)
	// learningPanes are short blocks, after which the alarm knows how its fleet
	// varies; measuredPanes are two whole blocks.
	learningPanes = 10
	measuredPanes = 20
	requestsAPane = 60 // of the alarm, by one replica
	noise         = 0.05
	seed          = 1
	// slowReplicas are slow all along in the fleet of which some are flagged, one in
	// a thousand, so that a cause is looked for.
	slowReplicas = judgeReplicas / 1000
	slowFactor   = 2
)

// evaluator does what fleet_outlier does at the end of a pane, as it is by
// default: with its alarm, or without.
type evaluator struct {
	fleet   *trackedFleet
	usual   fleet.Ask
	full    fleet.Ask // while someone is suspected
	judge   outlier.Judge
	alarm   *outlier.Alarm // nil: there is none
	writer  *emit.Writer
	slots   []emit.Slot
	flagged []emit.Slot // beside them, of a replica that was flagged
	labels  []fleet.Label
	points  int
	flags   int // in the newest evaluation
}

func newEvaluator(page *vllmPage, alarm bool, slow int) (*evaluator, error) {
	drawn, err := drawnFleet(judgeReplicas, slow)
	if err != nil {
		return nil, err
	}
	e := &evaluator{usual: fleet.Ask{Signals: []fleet.Signal{fleet.TTFT, fleet.ITL, fleet.GenerationTokens}}}
	if alarm {
		e.usual, e.full = alarmAsk, alarmAsk
		e.full.Signals = slices.Concat(alarmAsk.Signals, outlier.CauseSignals)
		e.alarm = newAlarm(alarmAsk.Signals[:2])
	}
	e.fleet = newTrackedFleet(judgeReplicas, slices.Concat(e.usual.Signals, e.full.Signals), readPart(page, alarmReads...))
	e.fleet.pass, e.fleet.tell = drawn.Next, drawn.Tell
	e.writer = emit.NewWriter(emit.Options{
		Component: "fleet_outlier", ScopeName: "bench", Instance: "bench",
		Next: func(_ context.Context, md pmetric.Metrics) error {
			e.points += md.DataPointCount()
			return nil
		},
	})
	e.slots = replicaSlots(e.writer, alarm)
	if alarm {
		e.flagged = flaggedSlots(e.writer)
	}
	return e, nil
}

// alarmAsk is what fleet_outlier asks of its fleets by default.
var alarmAsk = fleet.Ask{
	Signals: []fleet.Signal{fleet.TTFT, fleet.ITL, fleet.Errors, fleet.Finished, fleet.GenerationTokens},
	Recent:  4,
	Pane: func(end window.Instant, _ time.Duration) time.Duration {
		if int64(end)%int64(alarmPane) != 0 {
			return 0
		}
		return alarmPane
	},
}

func newAlarm(signals []fleet.Signal) *outlier.Alarm {
	return outlier.NewAlarm(outlier.AlarmOptions{
		FalseAlarmsPerWeek: 1, Tolerance: 1.25, Signals: signals,
	})
}

// drawnFleet finishes so many requests in a pane of the alarm that there is
// something to judge.
func drawnFleet(replicas, slow int) (*drawntest.Fleet, error) {
	plan := drawntest.Plan(replicas, requestsAPane/float64(panesOfAlarm), noise)
	for i := range slow {
		plan.Slowdowns = append(plan.Slowdowns, fleetsim.Slowdown{Replica: i * (replicas / slow), To: math.MaxInt, Factor: slowFactor})
	}
	return drawntest.New(plan, seed)
}

// flaggedSlots declares what only a replica tells that was flagged.
func flaggedSlots(w *emit.Writer) (slots []emit.Slot) {
	for c := outlier.NoCause + 1; c < outlier.CauseCount; c++ {
		slots = append(slots, w.Slot(emit.ReplicaOutlierCause, fleet.Label{Name: emit.AttributeCause, Value: c.String()}))
	}
	for _, s := range []fleet.Signal{fleet.TTFT, fleet.ITL, fleet.Errors} {
		slots = append(slots, w.Slot(emit.ReplicaOutlierSignal, fleet.Label{Name: emit.AttributeSignal, Value: s.String()}))
	}
	return slots
}

// evaluate judges the fleet and writes the report.
func (e *evaluator) evaluate(ctx context.Context, end window.Instant) error {
	e.points, e.flags = 0, 0
	e.writer.Begin(end)
	ask := e.usual
	if e.alarm != nil {
		if e.alarm.Suspects() {
			ask = e.full
		}
		e.alarm.Begin()
	}
	e.fleet.registry.Close(end, ask, func(f *fleet.Frame) {
		report := e.judge.Judge(f, &judgeOptions)
		var verdicts *outlier.Verdicts
		if e.alarm != nil {
			verdicts = e.alarm.Judge(f)
		}
		for i := range report.Replicas {
			e.write(ctx, report.Replicas[i].Identity)
			if verdicts != nil && verdicts.Replicas[i].Known {
				e.flags++
				e.set(e.flagged)
			}
		}
	})
	return e.writer.End(ctx)
}

func (e *evaluator) write(ctx context.Context, id *fleet.Identity) {
	e.labels = append(e.labels[:0], id.Keys...)
	e.labels = append(e.labels, fleet.Label{Name: emit.AttributeReplica, Value: id.Replica})
	e.labels = append(e.labels, id.Where...)
	e.labels = append(e.labels, id.Variant...)
	e.writer.About(ctx, e.labels)
	e.set(e.slots)
}

// set writes figures; one takes as long as another.
func (e *evaluator) set(slots []emit.Slot) {
	for _, s := range slots {
		e.writer.Set(s, 1)
	}
}

// alarmReads is what a vLLM page is read for with the alarm, beside what it is
// read for without.
var alarmReads = []string{
	drawntest.Requests, "vllm:request_prompt_tokens", "vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total",
}

// overhead is the processor time of evaluations with the alarm over that of the
// same evaluations without.
type overhead struct {
	pane  float64 // median of those that end a pane of the alarm
	block float64 // of the one that ends a block as well
}

// healthyOverhead is that of a fleet as it usually is, flaggedOverhead of one in
// which some are flagged; each is measured once for all figures that are made of
// it.
var (
	healthyOverhead = sync.OnceValues(func() (overhead, error) { return measureOverhead(0) })
	flaggedOverhead = sync.OnceValues(func() (overhead, error) { return measureOverhead(slowReplicas) })
)

func paneOverhead(context.Context) (ratio float64, err error) {
	o, err := healthyOverhead()
	return o.pane, err
}

func blockOverhead(context.Context) (ratio float64, err error) {
	o, err := healthyOverhead()
	return o.block, err
}

func overheadOfFlagged(context.Context) (ratio float64, err error) {
	o, err := flaggedOverhead()
	return o.pane, err
}

// measureOverhead lets the same fleet be judged by two evaluators in turn.
func measureOverhead(slow int) (o overhead, err error) {
	page, err := simulateVLLM(paneLength)
	if err != nil {
		return o, err
	}
	with, errWith := newEvaluator(page, true, slow)
	without, errWithout := newEvaluator(page, false, slow)
	if err := errors.Join(errWith, errWithout); err != nil {
		return o, err
	}
	var ratios []float64
	for pane := 1; pane <= (learningPanes+measuredPanes)*panesOfAlarm; pane++ {
		measured := pane > learningPanes*panesOfAlarm && pane%panesOfAlarm == 0
		costly, errCostly := with.nextPane(measured)
		cheap, errCheap := without.nextPane(measured)
		if err := errors.Join(errCostly, errCheap); err != nil {
			return o, err
		}
		if measured {
			ratios = append(ratios, costly.Seconds()/cheap.Seconds())
		}
	}
	if with.flags != slow {
		return o, fmt.Errorf("%d replicas are flagged, not the %d that are slow", with.flags, slow)
	}
	return overhead{pane: median(ratios), block: ratios[len(ratios)-1]}, nil
}

// nextPane fills a pane and evaluates it. If that is to be measured, garbage is
// collected before and not meanwhile, and every replica has to be told of.
func (e *evaluator) nextPane(measured bool) (took time.Duration, err error) {
	end, err := e.fleet.fillPane()
	if err != nil {
		return 0, err
	}
	if measured {
		runtime.GC()
	}
	began := processorTime()
	err = e.evaluate(context.Background(), end)
	took = processorTime() - began
	if want := judgeReplicas*len(e.slots) + e.flags*len(e.flagged); err == nil && measured && e.points != want {
		err = fmt.Errorf("emitted %d points, not %d", e.points, want)
	}
	return took, err
}
