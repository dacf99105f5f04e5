// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetidentityprocessor

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"golang.org/x/tools/txtar"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// TestScenarios runs every story of testdata/scenarios through the processors of
// all three signals, which share one configuration, in simulated time.
// testdata/README.md tells the format.
func TestScenarios(t *testing.T) {
	scenariotest.Run(t, func(t scenariotest.T, archive *txtar.Archive) func(*testing.T) { return readScenario(t, archive).run })
}

// scenario is one story: what is sent when, and what comes out.
type scenario struct {
	config    *Config
	steps     []scenariotest.Step
	expected  []scenariotest.Expectation
	telemetry []scenariotest.Figure
}

func readScenario(t scenariotest.T, archive *txtar.Archive) *scenario {
	t.Helper()
	s := &scenario{config: createDefaultConfig().(*Config)}
	scenariotest.Sections(t, archive, map[string]func(string){
		"config":    func(text string) { scenariotest.Configure(t, text, s.config) },
		"steps":     func(text string) { s.steps = scenariotest.Steps(t, text, "spans", "logs", "restart") },
		"expect":    func(text string) { s.expected = scenariotest.Expectations(t, text) },
		"telemetry": func(text string) { s.telemetry = scenariotest.Figures(t, text) },
	})
	require.NotEmpty(t, s.expected)
	return s
}

// run plays the scenario in a bubble of simulated time.
func (s *scenario) run(t *testing.T) {
	t.Helper()
	stage := newStage(t, s.config)
	require.Zero(t, stage.began.UnixNano()%int64(s.config.Interval), "simulated time begins at an interval's edge")
	stage.raise()
	targets := scenariotest.Targets{}
	end := time.Duration(0)
	for _, x := range s.steps {
		stage.wait(x.At)
		switch x.Action {
		case "restart":
			stage.shutdown()
			stage.raise()
		case "spans":
			stage.consumeTraces(traces(&x))
		case "logs":
			stage.consumeLogs(logs(&x))
		default:
			stage.consumeMetrics(targets.Scrape(&x.Page, stage.began))
		}
		end = max(end, x.At)
	}
	for _, e := range s.expected {
		end = max(end, e.At)
	}
	stage.wait(end + time.Millisecond)
	if s.telemetry != nil {
		scenariotest.CheckTelemetry(t, s.telemetry, stage.counts(), "unidentified")
	}
	stage.shutdown()
	for _, e := range s.expected {
		e.Check(t, stage.told[e.At])
	}
}

// traces are the spans of one resource: a line under the heading is the attributes
// of each.
func traces(x *scenariotest.Step) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	scenariotest.PutResource(rs.Resource().Attributes(), heading(x))
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	for line := range strings.Lines(x.Body) {
		if line = strings.TrimSpace(line); line != "" {
			scenariotest.PutLabels(spans.AppendEmpty().Attributes(), line)
		}
	}
	return td
}

// logs are a log record of one resource.
func logs(x *scenariotest.Step) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	scenariotest.PutResource(rl.Resource().Attributes(), heading(x))
	rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Attributes().PutStr("of", "the record")
	return ld
}

// heading is the resource that the heading of spans or logs names.
func heading(x *scenariotest.Step) map[string]string {
	resource := map[string]string{}
	for _, word := range x.Words {
		key, value, _ := strings.Cut(word, "=")
		resource[key] = value
	}
	return resource
}
