// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"runtime"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/llmfleet/llmfleet/processor/fleetidentityprocessor"
	"github.com/llmfleet/llmfleet/processor/fleetoutlierprocessor"
)

// stage is one processor of a chain, with a change to its default settings.
type stage struct {
	factory processor.Factory
	change  func(component.Config)
}

// identityStage is fleet_identity as configured by default.
var identityStage = stage{fleetidentityprocessor.NewFactory(), func(component.Config) {}}

// alarmStage is fleet_outlier with a window that holds all rounds of a
// measurement; outlierStage is the same without its alarm.
var (
	alarmStage = stage{fleetoutlierprocessor.NewFactory(), func(c component.Config) {
		config := c.(*fleetoutlierprocessor.Config)
		config.Interval, config.Window = time.Minute, time.Hour
	}}
	outlierStage = alarmStage.without()
)

// soonIdentity and soonAlarm tell what they know every second; soonOutlier is
// the latter without its alarm.
var (
	soonIdentity = stage{fleetidentityprocessor.NewFactory(), func(c component.Config) {
		c.(*fleetidentityprocessor.Config).Interval = time.Second
	}}
	soonAlarm = stage{fleetoutlierprocessor.NewFactory(), func(c component.Config) {
		config := c.(*fleetoutlierprocessor.Config)
		config.Interval, config.Window, config.Lateness = time.Second, 4*time.Second, time.Second
		config.Alarm.Pane, config.Alarm.Warmup = 2*time.Second, time.Second
	}}
	soonOutlier = soonAlarm.without()
)

// without is fleet_outlier with `alarm: null`.
func (s stage) without() stage {
	return stage{s.factory, func(c component.Config) {
		s.change(c)
		c.(*fleetoutlierprocessor.Config).Alarm = nil
	}}
}

// everyProcessor is the chain of all fleet processors, in the order in which a
// pipeline has them.
var everyProcessor = []stage{identityStage, alarmStage}

// startChain starts processors one behind the other.
func startChain(ctx context.Context, stages []stage, next consumer.Metrics) (chain, error) {
	c := chain{Metrics: next}
	for _, s := range slices.Backward(stages) {
		config := s.factory.CreateDefaultConfig()
		s.change(config)
		p, err := s.factory.CreateMetrics(ctx, processortest.NewNopSettings(s.factory.Type()), config, c.Metrics)
		if err != nil {
			return c, err
		}
		if err := p.Start(ctx, componenttest.NewNopHost()); err != nil {
			return c, err
		}
		c.Metrics, c.started = p, append(c.started, p)
	}
	return c, nil
}

// chain consumes what goes in at its front.
type chain struct {
	consumer.Metrics
	started []processor.Metrics
}

// shutdown stops the processors from the front to the end.
func (c chain) shutdown(ctx context.Context) (err error) {
	for _, p := range slices.Backward(c.started) {
		err = firstError(err, p.Shutdown(ctx))
	}
	return err
}

// pageOf measures the processor time that a chain takes for one page of a
// replica that it knows, on one core.
func pageOf(stages ...stage) func(context.Context) (microseconds float64, err error) {
	return func(ctx context.Context) (float64, error) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		var perPage []float64
		err := consumeFleet(ctx, stages, consumeRounds, func(pages []pmetric.Metrics, consume func(pmetric.Metrics)) {
			runtime.GC()
			began := processorTime()
			for _, page := range pages {
				consume(page)
			}
			perPage = append(perPage, float64((processorTime()-began).Microseconds())/float64(len(pages)))
		})
		return median(perPage), err
	}
}

// identityBytesPerReplica measures the heap that fleet_identity keeps of each
// replica.
func identityBytesPerReplica(ctx context.Context) (bytes float64, err error) {
	var before, after uint64
	err = consumeFleet(ctx, []stage{identityStage}, 1, func([]pmetric.Metrics, func(pmetric.Metrics)) { after = heap() })
	if err != nil {
		return 0, err
	}
	// The pages themselves are there in both.
	err = consumeFleet(ctx, nil, 1, func([]pmetric.Metrics, func(pmetric.Metrics)) { before = heap() })
	return (float64(after) - float64(before)) / consumeReplicas, err
}
