// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// The race detector makes minutes of this hour. It sees the same goroutines in
// the components' own tests.
//go:build !race

package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/llmfleet/llmfleet/connector/tenantusageconnector"
	"github.com/llmfleet/llmfleet/examples/internal/demotest"
	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/fleetsim/gateway"
	"github.com/llmfleet/llmfleet/processor/tenantshareprocessor"
)

// TestTheCulpritAndNobodyElseIsNamedInAnHour plays the demo's fleet and settings
// for an hour of simulated time.
func TestTheCulpritAndNobodyElseIsNamedInAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scenario, err := fleetsim.Load("fleet.yaml")
		require.NoError(t, err)
		start := time.Now()
		sim, err := fleetsim.New(scenario, start)
		require.NoError(t, err)
		told := &accusations{noisy: map[string][]turn{}}
		shares := startShares(t, told)
		usage := startUsage(t, shares)
		sim.Watch(func(ended []fleetsim.RequestRecord) {
			assert.NoError(t, usage.ConsumeTraces(t.Context(), gateway.Spans(gateway.Gateway, ended)))
		})
		scraper := demotest.NewScraper(func(m dialect.Match) bool { return m.Entry.Signal != fleet.TTFT })
		for at := time.Second; at <= time.Hour; at += time.Second {
			time.Sleep(time.Second)
			sim.AdvanceTo(at)
			for _, target := range sim.Targets() {
				require.NoError(t, shares.ConsumeMetrics(t.Context(), scraper.Scrape(t, target)))
			}
		}

		burst := scenario.Faults[0]
		require.Len(t, told.noisy, 1, "%v", told.noisy)
		turns := told.noisy[burst.Tenant]
		require.Len(t, turns, 2, "%v", turns)
		// More and more requests come for ten seconds until all of the burst do.
		assert.WithinRange(t, turns[0].since, start.Add(burst.From-pane), start.Add(burst.From+10*time.Second+2*pane))
		assert.LessOrEqual(t, turns[0].at.Sub(start), burst.From+time.Minute)
		assert.WithinRange(t, turns[1].at, start.Add(burst.To), start.Add(burst.To+time.Minute))
		t.Logf("noisy since %v, told at %v, until %v", turns[0].since.Sub(start), turns[0].at.Sub(start), turns[1].at.Sub(start))
	})
}

// startShares starts tenant_share as config.yaml has it.
func startShares(t *testing.T, next consumer.Metrics) consumer.Metrics {
	t.Helper()
	factory := tenantshareprocessor.NewFactory()
	config := demotest.Settings[*tenantshareprocessor.Config](t, "processors::tenant_share", factory.CreateDefaultConfig())
	p, err := factory.CreateMetrics(t.Context(), processortest.NewNopSettings(factory.Type()), config, next)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, p.Shutdown(context.WithoutCancel(t.Context()))) })
	return p
}

// startUsage starts tenant_usage as config.yaml has it.
func startUsage(t *testing.T, next consumer.Metrics) consumer.Traces {
	t.Helper()
	factory := tenantusageconnector.NewFactory()
	config := demotest.Settings[*tenantusageconnector.Config](t, "connectors::tenant_usage", factory.CreateDefaultConfig())
	c, err := factory.CreateTracesToMetrics(t.Context(), connectortest.NewNopSettings(factory.Type()), config, next)
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, c.Shutdown(context.WithoutCancel(t.Context()))) })
	return c
}

// turn is when a tenant became noisy, or ceased to be.
type turn struct{ at, since time.Time }

// accusations are the turns of each tenant that was noisy at some time.
type accusations struct{ noisy map[string][]turn }

func (*accusations) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (a *accusations) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	demotest.Gauges(md, func(metric string, point pmetric.NumberDataPoint) {
		tenant := demotest.Attribute(point, emit.AttributeTenant)
		at, turns := point.Timestamp().AsTime(), a.noisy[tenant]
		switch isOn := len(turns)%2 == 1; {
		case metric == emit.TenantNoisy && (point.DoubleValue() == 1) != isOn:
			a.noisy[tenant] = append(turns, turn{at: at})
		case metric == emit.TenantNoisyDuration && isOn && turns[len(turns)-1].since.IsZero():
			turns[len(turns)-1].since = at.Add(-time.Duration(point.DoubleValue() * float64(time.Second)))
		}
	})
	return nil
}
