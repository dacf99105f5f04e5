// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/processor/fleetoutlierprocessor"
)

// seriesPerReplica counts the series that a replica has by default when every
// figure of its can be given. The window is short, so that it is over soon.
func seriesPerReplica(ctx context.Context) (series float64, err error) {
	const (
		replicas = 3
		scrape   = 500 * time.Millisecond
		run      = 9 * time.Second
		load     = 60 // pages ahead a scrape: as many observations as a long window has
	)
	page, err := simulateVLLM(scrape)
	if err != nil {
		return 0, err
	}
	sink := &seriesSink{counts: map[pcommon.Timestamp]map[string]int{}}
	p, err := startProcessor(ctx, sink, func(c *fleetoutlierprocessor.Config) {
		c.Interval, c.Window, c.Lateness = time.Second, 4*time.Second, time.Second
	})
	if err != nil {
		return 0, err
	}
	for i := range int(run / scrape) {
		md, err := pointsOf(page.at(i * load))
		if err != nil {
			return 0, err
		}
		for replica := range replicas {
			address(md, replica, time.Now())
			if err := p.ConsumeMetrics(ctx, md); err != nil {
				return 0, err
			}
		}
		if err := wait(ctx, scrape); err != nil {
			return 0, err
		}
	}
	if err := p.Shutdown(ctx); err != nil {
		return 0, err
	}
	return sink.most(), nil
}

// seriesSink counts the points of each replica at each evaluation.
type seriesSink struct {
	mu     sync.Mutex
	counts map[pcommon.Timestamp]map[string]int
}

func (*seriesSink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *seriesSink) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, metric := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		if metric.Type() != pmetric.MetricTypeGauge {
			continue
		}
		for _, point := range metric.Gauge().DataPoints().All() {
			replica, derived := point.Attributes().Get(emit.AttributeReplica)
			if !derived || point.Flags().NoRecordedValue() {
				continue
			}
			if s.counts[point.Timestamp()] == nil {
				s.counts[point.Timestamp()] = map[string]int{}
			}
			s.counts[point.Timestamp()][replica.Str()]++
		}
	}
	return nil
}

// most is the most series that one replica had at one evaluation.
func (s *seriesSink) most() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := 0
	for _, replicas := range s.counts {
		for _, series := range replicas {
			most = max(most, series)
		}
	}
	return float64(most)
}
