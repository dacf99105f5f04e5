// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"runtime"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/llmfleet/llmfleet/processor/fleetoutlierprocessor"
)

const (
	consumeReplicas = 1000
	consumeWarmUp   = 10 // rounds before the measured ones
	consumeRounds   = 25
	consumeInterval = 15 * time.Second
)

// consumePage measures the processor time that fleet_outlier takes to read one
// page of a replica that it knows, on one core.
func consumePage(ctx context.Context) (microseconds float64, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var perPage []float64
	err = consumeFleet(ctx, consumeRounds, func(pages []pmetric.Metrics, consume func(pmetric.Metrics)) {
		runtime.GC()
		began := processorTime()
		for _, page := range pages {
			consume(page)
		}
		perPage = append(perPage, float64((processorTime()-began).Microseconds())/float64(len(pages)))
	})
	return median(perPage), err
}

// consumePageAllocs measures how many allocations that takes.
func consumePageAllocs(ctx context.Context) (allocs float64, err error) {
	err = consumeFleet(ctx, 1, func(pages []pmetric.Metrics, consume func(pmetric.Metrics)) {
		next := 0
		allocs = testing.AllocsPerRun(len(pages)-1, func() { // runs once more before it counts
			consume(pages[next])
			next++
		})
	})
	return allocs, err
}

// consumeFleet lets a processor read the pages of a fleet, round after round,
// and gives the rounds after the warm-up to measure. Event time runs behind the
// wall clock, so that all rounds lie in one window.
func consumeFleet(ctx context.Context, rounds int, measure func(pages []pmetric.Metrics, consume func(pmetric.Metrics))) (err error) {
	page, err := simulateVLLM(consumeInterval)
	if err != nil {
		return err
	}
	p, err := startProcessor(ctx, consumertest.NewNop(), func(c *fleetoutlierprocessor.Config) {
		c.Interval, c.Window = time.Minute, time.Hour
	})
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, p.Shutdown(ctx)) }()

	var failed error
	consume := func(md pmetric.Metrics) { failed = firstError(failed, p.ConsumeMetrics(ctx, md)) }
	pages := make([]pmetric.Metrics, consumeReplicas)
	for i := range pages {
		pages[i] = pmetric.NewMetrics()
	}
	start := time.Now().Add(-30 * time.Minute)
	for round := range consumeWarmUp + rounds {
		template, err := pointsOf(page.at(round))
		if err != nil {
			return err
		}
		for replica := range pages {
			template.CopyTo(pages[replica])
			address(pages[replica], replica, start.Add(time.Duration(round)*consumeInterval))
		}
		if round >= consumeWarmUp {
			measure(pages, consume)
			continue
		}
		for _, md := range pages {
			consume(md)
		}
	}
	return failed
}

// startProcessor starts a fleet_outlier with its defaults, as changed.
func startProcessor(ctx context.Context, next consumer.Metrics, change func(*fleetoutlierprocessor.Config)) (processor.Metrics, error) {
	factory := fleetoutlierprocessor.NewFactory()
	config := factory.CreateDefaultConfig().(*fleetoutlierprocessor.Config)
	change(config)
	if err := config.Validate(); err != nil {
		return nil, err
	}
	p, err := factory.CreateMetrics(ctx, processortest.NewNopSettings(factory.Type()), config, next)
	if err != nil {
		return nil, err
	}
	return p, p.Start(ctx, componenttest.NewNopHost())
}

// firstError keeps the first of many errors, which says most.
func firstError(first, next error) error {
	if first != nil {
		return first
	}
	return next
}
