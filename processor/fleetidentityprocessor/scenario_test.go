// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetidentityprocessor

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/pdata/pcommon"
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
	steps     []step
	expected  []expectation
	telemetry []scenariotest.Figure
}

// expectation is what comes out at one time.
type expectation struct {
	at      time.Duration
	only    bool // of derived metrics, nothing else does
	figures []scenariotest.Figure
}

// step is one thing that happens. Its action is "" for a page of metrics.
type step struct {
	at       time.Duration // since the simulated clock began
	action   string        // spans, logs, restart
	page     scenariotest.Page
	resource map[string]string // of spans and logs
	spans    []string          // their attributes, as written
}

func readScenario(t scenariotest.T, archive *txtar.Archive) *scenario {
	t.Helper()
	require.NotEmpty(t, strings.TrimSpace(string(archive.Comment)), "a scenario says what it shows")
	s := &scenario{config: createDefaultConfig().(*Config)}
	for _, f := range archive.Files {
		switch text := string(f.Data); f.Name {
		case "config":
			configure(t, f.Data, s.config)
		case "steps":
			s.steps = readSteps(t, text)
		case "expect":
			s.expected = readExpectations(t, text)
		case "telemetry":
			s.telemetry = scenariotest.Figures(t, text)
		default:
			require.Failf(t, "unknown section", "%s", f.Name)
		}
	}
	require.NotEmpty(t, s.expected)
	slices.SortStableFunc(s.steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return s
}

func configure(t scenariotest.T, yaml []byte, into *Config) {
	t.Helper()
	retrieved, err := confmap.NewRetrievedFromYAML(yaml)
	require.NoError(t, err)
	conf, err := retrieved.AsConf()
	require.NoError(t, err)
	require.NoError(t, conf.Unmarshal(into))
	require.NoError(t, into.Validate())
}

func readSteps(t scenariotest.T, text string) []step {
	t.Helper()
	var steps []step
	for _, block := range scenariotest.Blocks(t, text) {
		if len(block.Words) > 0 && slices.Contains([]string{"spans", "logs", "restart"}, block.Words[0]) {
			for _, at := range block.Times {
				s := step{at: at, action: block.Words[0], resource: map[string]string{}}
				for _, word := range block.Words[1:] {
					key, value, _ := strings.Cut(word, "=")
					s.resource[key] = value
				}
				for line := range strings.Lines(block.Body) {
					if line = strings.TrimSpace(line); line != "" {
						s.spans = append(s.spans, line)
					}
				}
				steps = append(steps, s)
			}
			continue
		}
		for _, page := range scenariotest.Pages(t, &block) {
			steps = append(steps, step{at: page.At, page: page})
		}
	}
	return steps
}

func readExpectations(t scenariotest.T, text string) []expectation {
	t.Helper()
	var all []expectation
	for _, block := range scenariotest.Blocks(t, text) {
		for _, at := range block.Times {
			all = append(all, expectation{
				at: at, only: slices.Contains(block.Words, "only"), figures: scenariotest.Figures(t, block.Body),
			})
		}
	}
	return all
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
		stage.wait(x.at)
		switch x.action {
		case "restart":
			stage.shutdown()
			stage.raise()
		case "spans":
			stage.consumeTraces(x.traces())
		case "logs":
			stage.consumeLogs(x.logs())
		default:
			stage.consumeMetrics(targets.Scrape(&x.page, stage.began))
		}
		end = max(end, x.at)
	}
	for _, e := range s.expected {
		end = max(end, e.at)
	}
	stage.wait(end + time.Millisecond)
	if s.telemetry != nil {
		scenariotest.CheckTelemetry(t, s.telemetry, stage.counts(), "unidentified")
	}
	stage.shutdown()
	for _, e := range s.expected {
		scenariotest.Check(t, e.at.String(), e.figures, e.only, stage.told[e.at])
	}
}

// traces are the spans of one resource.
func (x *step) traces() ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	scenariotest.PutResource(rs.Resource().Attributes(), x.resource)
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	for _, attributes := range x.spans {
		scenariotest.PutLabels(spans.AppendEmpty().Attributes(), attributes)
	}
	return td
}

// logs are a log record of one resource.
func (x *step) logs() plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	scenariotest.PutResource(rl.Resource().Attributes(), x.resource)
	rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Attributes().PutStr("of", "the record")
	return ld
}

func textOf(m pcommon.Map) map[string]string {
	text := map[string]string{}
	for k, v := range m.All() {
		text[k] = v.AsString()
	}
	return text
}
