// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/emit"
)

// seriesOf counts the series that a replica has by default when every figure of
// its can be given. The windows are short, so that they are over soon.
func seriesOf(stages ...stage) func(context.Context) (series float64, err error) {
	return func(ctx context.Context) (float64, error) { return seriesPerReplica(ctx, stages) }
}

func seriesPerReplica(ctx context.Context, stages []stage) (series float64, err error) {
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
	p, err := startChain(ctx, stages, sink)
	if err != nil {
		return 0, err
	}
	for i := range int(run / scrape) {
		md, err := pointsOf(page.at(i * load))
		if err != nil {
			return 0, err
		}
		for replica := range replicas {
			own := pmetric.NewMetrics() // a processor of the chain may write on it
			md.CopyTo(own)
			address(own, replica, time.Now())
			if err := p.ConsumeMetrics(ctx, own); err != nil {
				return 0, err
			}
		}
		if err := wait(ctx, scrape); err != nil {
			return 0, err
		}
	}
	if err := p.shutdown(ctx); err != nil {
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
		if !strings.HasPrefix(metric.Name(), "llmfleet.") {
			continue
		}
		switch metric.Type() {
		case pmetric.MetricTypeGauge:
			s.count(metric.Gauge().DataPoints())
		case pmetric.MetricTypeSum:
			s.count(metric.Sum().DataPoints())
		}
	}
	return nil
}

func (s *seriesSink) count(points pmetric.NumberDataPointSlice) {
	for _, point := range points.All() {
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
