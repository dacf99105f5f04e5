// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/judge/canary"
	"github.com/llmfleet/llmfleet/internal/window"
	"github.com/llmfleet/llmfleet/processor/canarydeltaprocessor"
)

const (
	canaryPane = time.Minute
	// burnInPanes are over when every replica counts: a first sample is no increase
	// yet, and what is served in the pane after it is not compared.
	burnInPanes  = 3
	canaryRounds = 5
)

// canaryStage is canary_delta with a pane, and so a window, that holds all rounds of
// a measurement: panes begin in 1970.
var canaryStage = stage{canarydeltaprocessor.NewFactory(), func(c component.Config) {
	c.(*canarydeltaprocessor.Config).Pane = 100 * 365 * 24 * time.Hour
}}

// canaryAsk is what canary_delta asks of its fleets.
var canaryAsk = fleet.Ask{Signals: canary.Signals(), Reasons: true}

// canaryReads is what a vLLM page is read for by canary_delta, beside latencies
// that fleet_outlier reads; canaryTold are the signals that all of it tells.
var (
	canaryReads = []string{
		"vllm:request_time_per_output_token_seconds", "vllm:e2e_request_latency_seconds", "vllm:request_queue_time_seconds",
		"vllm:request_success_total", "vllm:request_prompt_tokens", "vllm:request_generation_tokens",
		"vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total", "vllm:generation_tokens_total",
	}
	canaryTold = []fleet.Signal{
		fleet.TTFT, fleet.ITL, fleet.TPOT, fleet.E2E, fleet.QueueTime, fleet.Errors, fleet.Finished,
		fleet.PromptLength, fleet.OutputLength, fleet.PrefixHits, fleet.PrefixQueries, fleet.GenerationTokens,
	}
)

// rollouts are fleets of so many replicas each, some of which are canaries.
type rollouts struct{ fleets, replicas, canaries int }

// track follows the rollouts in windows of one pane, and reads these signals.
func (r rollouts) track(page *vllmPage, signals []fleet.Signal) *trackedFleet {
	grid := window.NewGrid(canaryPane, canaryPane, lateness)
	t := newTrackedFleetOn(grid, r.fleets*r.replicas, signals, readPart(page, canaryReads...))
	t.tell = func(replica int, page pmetric.Metrics) {
		resource := page.ResourceMetrics().At(0).Resource().Attributes()
		resource.PutStr("k8s.cluster.name", fmt.Sprintf("cluster-%d", replica/r.replicas))
		revision := "stable"
		if replica%r.replicas < r.canaries {
			revision = "next"
		}
		resource.PutStr("model_revision", revision)
	}
	return t
}

// judge judges the rollouts pane by pane, and gives those panes to measure in which
// every replica counts.
func (r rollouts) judge(measure func(judge func())) (*canary.Judge, error) {
	page, err := simulateVLLM(canaryPane)
	if err != nil {
		return nil, err
	}
	t := r.track(page, canaryAsk.Signals)
	judge := canary.NewJudge(canary.DefaultOptions(canaryPane))
	for round := range burnInPanes + canaryRounds {
		end, err := t.fillPane()
		if err != nil {
			return nil, err
		}
		if round < burnInPanes {
			judgePane(t, judge, end)
			continue
		}
		compared := 0
		measure(func() { compared = judgePane(t, judge, end) })
		if want := r.fleets * len(canary.Names()); compared != want {
			return nil, fmt.Errorf("compared %d measures, not %d", compared, want)
		}
	}
	return judge, nil
}

// judgePane judges every canary, and returns in how many measures they were
// compared.
func judgePane(t *trackedFleet, judge *canary.Judge, end window.Instant) (compared int) {
	judge.Begin(end)
	t.registry.Close(end, canaryAsk, func(f *fleet.Frame) {
		report, _ := judge.Judge(f, nil)
		if report == nil {
			return
		}
		for i := range report.Measures {
			if n := report.Measures[i].Observations; n[canary.Canary] > 0 && n[canary.Baseline] > 0 {
				compared++
			}
		}
	})
	return compared
}

// canaryJudge10k measures the processor time of one evaluation of 10,000 replicas in
// 100 fleets, from their closed panes to the reports on their canaries.
func canaryJudge10k(context.Context) (ms float64, err error) {
	var durations []float64
	_, err = rollouts{fleets: 100, replicas: 100, canaries: 2}.judge(func(judge func()) {
		runtime.GC()
		began := processorTime()
		judge()
		durations = append(durations, milliseconds(processorTime()-began))
	})
	return median(durations), err
}

// canaryStateBytesPerMeasure measures the heap that a judge takes for one measure of
// a canary and its baseline, of three replicas in all.
func canaryStateBytesPerMeasure(context.Context) (bytes float64, err error) {
	of := rollouts{fleets: canary.DefaultMaxFleets, replicas: 3, canaries: 1}
	judge, err := of.judge(func(judge func()) { judge() })
	if err != nil {
		return 0, err
	}
	with := heap()
	runtime.KeepAlive(judge)
	without := heap()
	return (float64(with) - float64(without)) / float64(of.fleets*len(canary.Names())), nil
}

// canaryBytesPerReplicaSignal measures the heap that one more signal takes for each
// replica, on the average of those that vLLM tells.
func canaryBytesPerReplicaSignal(context.Context) (bytes float64, err error) {
	one, errOne := canaryHeapPerReplica(canaryTold[:1])
	all, errAll := canaryHeapPerReplica(canaryTold)
	return (all - one) / float64(len(canaryTold)-1), errors.Join(errOne, errAll)
}

// canaryBytesPerReplica measures the whole heap for each replica with all of them.
func canaryBytesPerReplica(context.Context) (bytes float64, err error) {
	return canaryHeapPerReplica(canaryTold)
}

func canaryHeapPerReplica(signals []fleet.Signal) (bytes float64, err error) {
	page, err := simulateVLLM(canaryPane)
	if err != nil {
		return 0, err
	}
	of := rollouts{fleets: 1, replicas: 1000, canaries: 20}
	t := of.track(page, signals)
	before := heap() // the dialects are no replica's
	for range burnInPanes {
		end, err := t.fillPane()
		if err != nil {
			return 0, err
		}
		t.registry.Close(end, canaryAsk, func(*fleet.Frame) {})
	}
	after := heap()
	runtime.KeepAlive(t)
	runtime.KeepAlive(page)
	return (float64(after) - float64(before)) / float64(of.replicas), nil
}
