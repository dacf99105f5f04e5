// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantusageconnector

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"golang.org/x/tools/txtar"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// TestScenarios runs every story of testdata/scenarios through both connectors,
// their own loops ticking in simulated time. testdata/README.md tells the format.
func TestScenarios(t *testing.T) {
	scenariotest.Run(t, func(t scenariotest.T, archive *txtar.Archive) func(*testing.T) { return readScenario(t, archive).run })
}

// scenario is one story: which spans come when, and what is told of them.
type scenario struct {
	config    *Config
	steps     []step
	points    []scenariotest.Expectation
	records   []scenariotest.Record // nil: nothing is said of them
	telemetry []scenariotest.Figure
}

// step is one thing that happens. Its action is "" for spans.
type step struct {
	at     time.Duration // since the simulated clock began
	action string        // restart, refuse, accept
	words  []string
	spans  string
}

func readScenario(t scenariotest.T, archive *txtar.Archive) *scenario {
	t.Helper()
	s := &scenario{config: createDefaultConfig().(*Config)}
	scenariotest.Sections(t, archive, map[string]func(string){
		"config":    func(text string) { scenariotest.Configure(t, text, s.config) },
		"steps":     func(text string) { s.steps = readSteps(t, text) },
		"metrics":   func(text string) { s.points = scenariotest.Expectations(t, text) },
		"records":   func(text string) { s.records = scenariotest.Records(t, text) },
		"telemetry": func(text string) { s.telemetry = scenariotest.Figures(t, text) },
	})
	require.True(t, len(s.points) > 0 || s.records != nil, "a scenario expects something")
	slices.SortStableFunc(s.steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return s
}

func readSteps(t scenariotest.T, text string) (steps []step) {
	t.Helper()
	for _, block := range scenariotest.Blocks(t, text) {
		action := strings.Join(block.Words, " ")
		if !slices.Contains([]string{"restart", "refuse", "accept"}, action) {
			action = ""
		}
		for _, at := range block.Times {
			steps = append(steps, step{at, action, block.Words, block.Body})
		}
	}
	return steps
}

// run plays the scenario in a bubble of simulated time.
func (s *scenario) run(t *testing.T) {
	t.Helper()
	stage := newStage(t, s.config)
	stage.raise()
	var end time.Duration
	for _, x := range s.steps {
		scenariotest.Wait(stage.began.Add(x.at))
		switch x.action {
		case "restart":
			stage.shutdown()
			stage.raise()
		case "refuse":
			stage.refuse(errors.New("full"))
		case "accept":
			stage.refuse(nil)
		default:
			stage.consume(readSpans(t, x))
		}
		end = max(end, x.at)
	}
	for _, e := range s.points {
		end = max(end, e.At)
	}
	for _, e := range s.records {
		end = max(end, e.At)
	}
	scenariotest.Wait(stage.began.Add(end))
	scenariotest.CheckTelemetry(t, s.telemetry, stage.counts(), "ignored")
	told := len(stage.logRecords())
	stage.shutdown()
	for _, e := range s.points {
		e.Check(t, stage.told[e.At])
	}
	if s.records != nil {
		scenariotest.CheckRecords(t, stage.began, s.records, stage.logRecords()[:told])
	}
}

var (
	spanLine  = regexp.MustCompile(`^(?:(\d+) )?(SERVER|CLIENT|INTERNAL) (\S+)(.*)$`)
	spanWord  = regexp.MustCompile(`(\S+?)=("[^"]*"|\S+)`)
	spanKinds = map[string]ptrace.SpanKind{"SERVER": ptrace.SpanKindServer, "CLIENT": ptrace.SpanKindClient, "INTERNAL": ptrace.SpanKindInternal}
)

// readSpans makes the spans of a block, which end when they come.
func readSpans(t *testing.T, x step) ptrace.Traces {
	t.Helper()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	scope := rs.ScopeSpans().AppendEmpty()
	for _, word := range x.words {
		key, value, ok := strings.Cut(word, "=")
		require.True(t, ok, "%s", word)
		if key == "scope" {
			scope.Scope().SetName(value)
			continue
		}
		rs.Resource().Attributes().PutStr(key, value)
	}
	for line := range strings.Lines(x.spans) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := spanLine.FindStringSubmatch(line)
		require.NotNil(t, parts, "no span: %s", line)
		times, _ := strconv.Atoi(cmp.Or(parts[1], "1"))
		for range times {
			span := scope.Spans().AppendEmpty()
			span.SetKind(spanKinds[parts[2]])
			span.SetName(parts[3])
			span.SetTraceID(pcommon.TraceID{15: byte(scope.Spans().Len())})
			span.SetSpanID(pcommon.SpanID{7: byte(scope.Spans().Len())})
			span.SetEndTimestamp(pcommon.NewTimestampFromTime(time.Now()))
			for _, word := range spanWord.FindAllStringSubmatch(parts[4], -1) {
				putValue(span, word[1], strings.Trim(word[2], `"`))
			}
		}
	}
	return td
}

// putValue writes an attribute, of the type that its value looks like; status is
// the span's.
func putValue(span ptrace.Span, key, value string) {
	whole, notWhole := strconv.ParseInt(value, 10, 64)
	number, notNumber := strconv.ParseFloat(value, 64)
	switch {
	case key == "status":
		span.Status().SetCode(map[string]ptrace.StatusCode{"ok": ptrace.StatusCodeOk, "error": ptrace.StatusCodeError}[value])
	case notWhole == nil:
		span.Attributes().PutInt(key, whole)
	case notNumber == nil:
		span.Attributes().PutDouble(key, number)
	default:
		span.Attributes().PutStr(key, value)
	}
}
