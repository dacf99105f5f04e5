// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// The race detector makes minutes of this hour. It sees the same goroutines in
// the processor's own tests.
//go:build !race

package main_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/llmfleet/llmfleet/examples/internal/demotest"
	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/judge/outlier"
	"github.com/llmfleet/llmfleet/processor/fleetoutlierprocessor"
)

// scrapeInterval is longer than the demo's: it saves time, and two scrapes make
// a pane of the alarm.
const scrapeInterval = 2500 * time.Millisecond

// TestOnlyTheSlowReplicaIsFlaggedInAnHour plays the demo's fleets and settings
// for an hour of simulated time.
func TestOnlyTheSlowReplicaIsFlaggedInAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scenario, err := fleetsim.Load("fleet.yaml")
		require.NoError(t, err)
		start := time.Now()
		sim, err := fleetsim.New(scenario, start)
		require.NoError(t, err)
		factory := fleetoutlierprocessor.NewFactory()
		config := demotest.Settings[*fleetoutlierprocessor.Config](t, "processors::fleet_outlier", factory.CreateDefaultConfig())
		told, scraper := newVerdicts(), demotest.NewScraper(judges)
		p, err := factory.CreateMetrics(t.Context(), processortest.NewNopSettings(factory.Type()), config, told)
		require.NoError(t, err)
		require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
		for at := scrapeInterval; at <= time.Hour; at += scrapeInterval {
			time.Sleep(scrapeInterval)
			sim.AdvanceTo(at)
			for _, target := range sim.Targets() {
				require.NoError(t, p.ConsumeMetrics(t.Context(), scraper.Scrape(t, target)))
			}
		}
		require.NoError(t, p.Shutdown(t.Context()))

		assert.Len(t, told.warmedUp, len(sim.Engines()), "all are judged")
		require.Equal(t, []string{"qwen-3"}, slices.Sorted(maps.Keys(told.flagged)))
		assert.LessOrEqual(t, told.flagged["qwen-3"].Sub(start), config.Alarm.Warmup+10*config.Alarm.Pane)
		assert.Equal(t, map[string]bool{"hardware": true}, told.causes)
		assert.Empty(t, told.stuck)
	})
}

// verdicts are what came out of the processor, by pod.
type verdicts struct {
	warmedUp, stuck map[string]bool
	flagged         map[string]time.Time // for the first time
	causes          map[string]bool
}

func newVerdicts() *verdicts {
	return &verdicts{warmedUp: map[string]bool{}, stuck: map[string]bool{}, flagged: map[string]time.Time{}, causes: map[string]bool{}}
}

func (*verdicts) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (v *verdicts) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	demotest.Gauges(md, v.note)
	return nil
}

func (v *verdicts) note(metric string, point pmetric.NumberDataPoint) {
	pod, on := demotest.Attribute(point, "pod"), point.DoubleValue() == 1
	switch metric {
	case emit.ReplicaOutlier:
		v.warmedUp[pod] = true
		if _, known := v.flagged[pod]; on && !known {
			v.flagged[pod] = point.Timestamp().AsTime()
		}
	case emit.ReplicaOutlierCause:
		if on {
			v.causes[demotest.Attribute(point, emit.AttributeCause)] = true
		}
	case emit.ReplicaStuck:
		if on {
			v.stuck[pod] = true
		}
	}
}

// judges tells whether the judgement reads something of a page.
func judges(m dialect.Match) bool {
	return m.Entry.Dialect.Component == dialect.GPU || slices.Contains(judged, m.Entry.Signal)
}

var judged = append([]fleet.Signal{
	fleet.TTFT, fleet.ITL, fleet.Errors, fleet.Finished, fleet.Waiting, fleet.Running, fleet.GenerationTokens,
}, outlier.CauseSignals...)
