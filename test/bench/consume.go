// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

const (
	consumeReplicas = 1000
	consumeWarmUp   = 10 // rounds before the measured ones
	consumeRounds   = 25
	consumeInterval = 15 * time.Second
)

// allocsOf measures how many allocations a chain makes for one page of a replica
// that it knows.
func allocsOf(stages ...stage) func(context.Context) (allocs float64, err error) {
	return func(ctx context.Context) (allocs float64, err error) {
		err = consumeFleet(ctx, stages, 1, func(pages []pmetric.Metrics, consume func(pmetric.Metrics)) {
			next := 0
			allocs = testing.AllocsPerRun(len(pages)-1, func() { // runs once more before it counts
				consume(pages[next])
				next++
			})
		})
		return allocs, err
	}
}

// consumeFleet lets processors read the pages of a fleet, round after round,
// and gives the rounds after the warm-up to measure. Event time runs behind the
// wall clock, so that all rounds lie in one window.
func consumeFleet(
	ctx context.Context, stages []stage, rounds int, measure func(pages []pmetric.Metrics, consume func(pmetric.Metrics)),
) (err error) {
	page, err := simulateVLLM(consumeInterval)
	if err != nil {
		return err
	}
	c, err := startChain(ctx, stages, consumertest.NewNop())
	if err != nil {
		return err
	}
	defer func() { err = firstError(err, c.shutdown(ctx)) }()

	var failed error
	consume := func(md pmetric.Metrics) { failed = firstError(failed, c.ConsumeMetrics(ctx, md)) }
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

// firstError keeps the first of many errors, which says most.
func firstError(first, next error) error {
	if first != nil {
		return first
	}
	return next
}
