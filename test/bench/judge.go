// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/judge/outlier"
	"github.com/llmfleet/llmfleet/internal/window"
)

const (
	judgeReplicas = 10_000
	judgeRounds   = 7
)

var judgeOptions = outlier.Options{
	Signals:     []fleet.Signal{fleet.TTFT, fleet.ITL},
	Quantiles:   []float64{0.5, 0.95},
	MinReplicas: 2,
}

// judge10k measures the processor time of one evaluation of a fleet of 10,000 replicas, from its
// closed panes to its report.
func judge10k(context.Context) (ms float64, err error) {
	var durations []float64
	err = judgeFleet(func(t *trackedFleet, end window.Instant) error {
		began := processorTime()
		judged := evaluate(t, end)
		durations = append(durations, milliseconds(processorTime()-began))
		if judged != judgeReplicas {
			return fmt.Errorf("judged %d replicas, not %d", judged, judgeReplicas)
		}
		return nil
	})
	return median(durations), err
}

// consumeWhileJudging measures the slowest page that is read while such an
// evaluation runs.
func consumeWhileJudging(context.Context) (microseconds float64, err error) {
	return slowestConsume(func(t *trackedFleet, end window.Instant, stopReading func()) {
		evaluate(t, end)
		stopReading()
	})
}

// consumeWhileIdle is what to compare that with: the slowest page in about as
// much time without an evaluation.
func consumeWhileIdle(context.Context) (microseconds float64, err error) {
	return slowestConsume(func(t *trackedFleet, end window.Instant, stopReading func()) {
		time.Sleep(50 * time.Millisecond)
		stopReading()
		evaluate(t, end)
	})
}

// slowestConsume reads pages of the next pane, one after the other, until told
// to stop, and keeps the slowest. It returns the least of several panes: if
// pages had to wait for an evaluation they would in every one, while other
// processes of the machine get in the way now and then.
func slowestConsume(during func(t *trackedFleet, end window.Instant, stopReading func())) (microseconds float64, err error) {
	var slowest []float64
	err = judgeFleet(func(t *trackedFleet, end window.Instant) error {
		template, err := t.page(t.round)
		if err != nil {
			return err
		}
		var done atomic.Bool
		longest := make(chan time.Duration)
		go func() { longest <- readUntil(t, template, &done) }()
		during(t, end, func() {
			done.Store(true)
			slowest = append(slowest, float64((<-longest).Nanoseconds())/1e3)
		})
		return nil
	})
	if err != nil {
		return 0, err
	}
	return slices.Min(slowest), nil
}

// readUntil reads pages of one replica after the other and returns how long
// the slowest took.
func readUntil(t *trackedFleet, template pmetric.Metrics, done *atomic.Bool) (longest time.Duration) {
	md := pmetric.NewMetrics()
	at := epoch.Add(time.Duration(t.round)*paneLength + time.Second)
	for replica := 0; !done.Load(); replica++ {
		template.CopyTo(md)
		address(md, replica%t.replicas, at)
		began := time.Now()
		t.reader.Read(md)
		longest = max(longest, time.Since(began))
	}
	return longest
}

// judgedFleet is a large fleet whose replicas have been there for a full window.
func judgedFleet() (*trackedFleet, error) {
	page, err := simulateVLLM(paneLength)
	if err != nil {
		return nil, err
	}
	t := newTrackedFleet(judgeReplicas, judgeOptions.Signals, readPart(page))
	return t, t.fillWindow()
}

// judgeFleet gives several closed windows of a large fleet to measure.
func judgeFleet(measure func(t *trackedFleet, end window.Instant) error) error {
	t, err := judgedFleet()
	if err != nil {
		return err
	}
	for range judgeRounds {
		end, err := t.fillPane()
		if err != nil {
			return err
		}
		if err := measure(t, end); err != nil {
			return err
		}
	}
	return nil
}

// evaluate judges every fleet and returns how many replicas it could compare in
// everything.
func evaluate(t *trackedFleet, end window.Instant) (judged int) {
	var judge outlier.Judge
	t.registry.Close(end, fleet.Ask{Signals: t.signals}, func(f *fleet.Frame) {
		judged += judge.Judge(f, &judgeOptions).States[outlier.Judged]
	})
	return judged
}
