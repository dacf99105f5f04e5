// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleeteventsconnector

import (
	"cmp"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"golang.org/x/tools/txtar"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// TestScenarios runs every story of testdata/scenarios through the connector, in
// simulated time. testdata/README.md tells the format.
func TestScenarios(t *testing.T) {
	scenariotest.Run(t, func(t scenariotest.T, archive *txtar.Archive) func(*testing.T) { return readScenario(t, archive).run })
}

// scenario is one story: what is derived when, and what is told of it.
type scenario struct {
	config    *Config
	steps     []scenariotest.Step
	expected  []scenariotest.Record
	telemetry []scenariotest.Figure
}

func readScenario(t scenariotest.T, archive *txtar.Archive) *scenario {
	t.Helper()
	s := &scenario{config: createDefaultConfig().(*Config)}
	scenariotest.Sections(t, archive, map[string]func(string){
		"config":    func(text string) { scenariotest.Configure(t, text, s.config) },
		"steps":     func(text string) { s.steps = readSteps(t, text) },
		"expect":    func(text string) { s.expected = scenariotest.Records(t, text) },
		"telemetry": func(text string) { s.telemetry = scenariotest.Figures(t, text) },
	})
	return s
}

// readSteps reads steps: derived metrics of a writer, gw-0 unless the heading names
// another instance, and what happens to the connector and what comes next.
func readSteps(t scenariotest.T, text string) []scenariotest.Step {
	t.Helper()
	steps := scenariotest.Steps(t, text, "restart", "refuse", "accept")
	for i := range steps {
		if target := steps[i].Page.Target; steps[i].Action == "" {
			target["job"], target["instance"] = "llmfleet", cmp.Or(target["instance"], "gw-0")
		}
	}
	return steps
}

// run plays the scenario in a bubble of simulated time.
func (s *scenario) run(t *testing.T) {
	t.Helper()
	began := time.Now()
	stage := newStage(t, s.config)
	stage.raise()
	targets := scenariotest.Targets{}
	for _, x := range s.steps {
		scenariotest.Wait(began.Add(x.At))
		switch x.Action {
		case "restart":
			stage.shutdown()
			stage.raise()
		case "refuse":
			stage.refusal = errors.New("full")
		case "accept":
			stage.refusal = nil
		default:
			stage.consume(targets.Scrape(&x.Page, began))
		}
	}
	counts := scenariotest.Telemetry(t, stage.telemetry, "otelcol_connector_fleet_events_")
	scenariotest.CheckTelemetry(t, s.telemetry, counts, "")
	stage.shutdown()
	records := stage.records()
	scenariotest.CheckRecords(t, began, s.expected, records)
	for i, r := range records[:min(len(records), len(s.expected))] {
		assert.Equal(t, s.expected[i].At, r.ObservedTimestamp().AsTime().Sub(began), "observed: %s", r.Body().Str())
	}
}
