// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstartconnector

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"golang.org/x/tools/txtar"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// TestScenarios runs every story of testdata/scenarios through the connectors of all
// pairs of signals, their own loop ticking in simulated time. testdata/README.md
// tells the format.
func TestScenarios(t *testing.T) {
	scenariotest.Run(t, func(t scenariotest.T, archive *txtar.Archive) func(*testing.T) { return readScenario(t, archive).run })
}

// scenario is one story: what is said of pods and when, and what is told of them.
type scenario struct {
	config    *Config
	steps     []scenariotest.Step
	traces    []waterfall
	points    []scenariotest.Expectation
	telemetry []scenariotest.Figure
}

// actions are the first words of a step's heading.
var actions = []string{"facts", "log", "event", "spans", "page", "restart", "kill", "refuse", "accept"}

func readScenario(t scenariotest.T, archive *txtar.Archive) *scenario {
	t.Helper()
	s := &scenario{config: createDefaultConfig().(*Config)}
	scenariotest.Sections(t, archive, map[string]func(string){
		"config":    func(text string) { scenariotest.Configure(t, text, s.config) },
		"steps":     func(text string) { s.steps = scenariotest.Steps(t, text, actions...) },
		"traces":    func(text string) { s.traces = readWaterfalls(t, text) },
		"metrics":   func(text string) { s.points = scenariotest.Expectations(t, text) },
		"telemetry": func(text string) { s.telemetry = scenariotest.Figures(t, text) },
	})
	return s
}

// run plays the scenario in a bubble of simulated time, and for a while after its
// last step.
func (s *scenario) run(t *testing.T) {
	t.Helper()
	stage := newStage(t, s.config)
	stage.raise()
	var end time.Duration
	for _, x := range s.steps {
		scenariotest.Wait(stage.began.Add(x.At))
		stage.play(x)
		end = max(end, x.At)
	}
	for _, e := range s.points {
		end = max(end, e.At)
	}
	for _, w := range s.traces {
		end = max(end, w.at)
	}
	scenariotest.Wait(stage.began.Add(end + time.Second))
	scenariotest.CheckTelemetry(t, s.telemetry, stage.counts(), "ignored")
	stage.shutdown()
	checkWaterfalls(t, s.traces, stage)
	for _, e := range s.points {
		e.Check(t, stage.told[e.At])
	}
}

func (s *stage) play(x scenariotest.Step) {
	s.t.Helper()
	switch x.Action {
	case "restart":
		s.shutdown()
		s.raise()
	case "kill":
		s.kill()
		s.raise()
	case "refuse":
		err := errors.New("full")
		if len(x.Words) > 0 {
			require.Equal(s.t, "permanently", x.Words[0])
			err = consumererror.NewPermanent(err)
		}
		s.refuse(err)
	case "accept":
		s.refuse(nil)
	case "facts":
		s.consumeLogs(s.readFacts(x))
	case "log":
		s.consumeLogs(readLines(s.t, x))
	case "event":
		s.consumeLogs(s.readEvents(x))
	case "spans":
		s.consumeTraces(s.readSpans(x))
	default:
		s.consumeMetrics(readPage(s.t, x))
	}
}

// words reads key=value; a value may be quoted.
func words(t scenariotest.T, text string) (bare []string, of map[string]string) {
	t.Helper()
	of = map[string]string{}
	for _, word := range splitQuoted(text) {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			bare = append(bare, word)
			continue
		}
		of[key] = strings.Trim(value, `"`)
	}
	return bare, of
}

// splitQuoted splits at spaces that are not within quotes.
func splitQuoted(text string) []string {
	quoted := false
	return strings.FieldsFunc(text, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	})
}
