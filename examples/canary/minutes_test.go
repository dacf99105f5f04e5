// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// The race detector makes minutes of these minutes. It sees the same goroutines in
// the components' own tests.
//go:build !race

package main

import (
	"context"
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
	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/judge/canary"
	"github.com/llmfleet/llmfleet/processor/canarydeltaprocessor"
)

// judged plays the demo's fleet with its settings in simulated time, until five
// minutes after its rollout, and returns what was said of that.
func judged(t *testing.T, scenario *fleetsim.Scenario) *sayings {
	t.Helper()
	said := &sayings{start: time.Now(), evidence: map[string]float64{}}
	sim, err := fleetsim.New(*scenario, said.start)
	require.NoError(t, err)
	judge := startJudge(t, said)
	signals := canary.Signals()
	scraper := demotest.NewScraper(func(m dialect.Match) bool { return slices.Contains(signals, m.Entry.Signal) })
	for at := time.Second; at <= scenario.Faults[0].From+5*time.Minute; at += time.Second {
		time.Sleep(time.Second)
		sim.AdvanceTo(at)
		for _, target := range sim.Targets() {
			if target.Exists() {
				require.NoError(t, judge.ConsumeMetrics(t.Context(), scraper.Scrape(t, target)))
			}
		}
	}
	return said
}

// startJudge starts canary_delta as config.yaml has it.
func startJudge(t *testing.T, next consumer.Metrics) consumer.Metrics {
	t.Helper()
	factory := canarydeltaprocessor.NewFactory()
	config := demotest.Settings[*canarydeltaprocessor.Config](t, "processors::canary_delta", factory.CreateDefaultConfig())
	p, err := factory.CreateMetrics(t.Context(), processortest.NewNopSettings(factory.Type()), config, next)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, p.Shutdown(context.WithoutCancel(t.Context()))) })
	return p
}

// saying is what the overall verdict became.
type saying struct {
	at              time.Duration
	verdict, driver string
}

// sayings are the changes of the verdict.
type sayings struct {
	start    time.Time
	verdicts []saying
	evidence map[string]float64 // the most that spoke for a fail, by measure
}

func (*sayings) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *sayings) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	driver, verdict, at := "", "", time.Duration(0)
	demotest.Gauges(md, func(metric string, point pmetric.NumberDataPoint) {
		measure, of := demotest.Attribute(point, emit.AttributeMeasure), demotest.Attribute(point, emit.AttributeVerdict)
		switch {
		case metric == emit.CanaryDriver && point.DoubleValue() == 1:
			driver = measure
		case metric == emit.CanaryVerdict && point.DoubleValue() == 1 && measure == canary.Overall:
			verdict, at = of, point.Timestamp().AsTime().Sub(s.start)
		case metric == emit.CanaryEvidence && of == canary.Fail.String():
			s.evidence[measure] = max(s.evidence[measure], point.DoubleValue())
		}
	})
	if n := len(s.verdicts); verdict != "" && (n == 0 || s.verdicts[n-1].verdict != verdict) {
		s.verdicts = append(s.verdicts, saying{at, verdict, driver})
	}
	return nil
}

func TestTheSlowRevisionFailsForItsTimeToFirstToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scenario, err := fleetsim.Load("fleet.yaml")
		require.NoError(t, err)
		said := judged(t, &scenario)
		t.Logf("%+v; %v", said.verdicts, said.evidence)
		require.Len(t, said.verdicts, 2)
		began, rollout := said.verdicts[0], scenario.Faults[0].From
		assert.Equal(t, "inconclusive", began.verdict)
		assert.WithinRange(t, said.start.Add(began.at), said.start.Add(rollout), said.start.Add(rollout+2*pane))
		failed := said.verdicts[1]
		assert.Equal(t, "fail", failed.verdict)
		assert.Equal(t, "ttft", failed.driver)
		assert.LessOrEqual(t, failed.at-rollout, scenario.Faults[0].WarmUp+15*pane)
		assert.GreaterOrEqual(t, said.evidence["output_length"], 1.0, "answers are shorter, which is not watched")
		assert.Less(t, said.evidence["e2e"], 1.0)
	})
}

func TestTheSameCodePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scenario, err := fleetsim.Load("fleet.yaml")
		require.NoError(t, err)
		f := &scenario.Faults[0]
		f.PrefillFactor, f.OutputFactor = 1, 1
		said := judged(t, &scenario)
		t.Logf("%+v; %v", said.verdicts, said.evidence)
		require.Len(t, said.verdicts, 2)
		assert.Equal(t, "inconclusive", said.verdicts[0].verdict)
		assert.Equal(t, "pass", said.verdicts[1].verdict)
	})
}
