// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleeteventsconnector

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/pdata/plog"
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
	steps     []step
	expected  []expectation
	telemetry []scenariotest.Figure
}

// step is one thing that happens. Its action is "" for metrics.
type step struct {
	at     time.Duration // since the simulated clock began
	action string        // restart, refuse, accept
	page   scenariotest.Page
}

// expectation is one record.
type expectation struct {
	observed, at time.Duration // since the simulated clock began
	severity     string
	event        string
	body         string
	attributes   map[string]string // at least these; one that is "" is not there
}

func readScenario(t scenariotest.T, archive *txtar.Archive) *scenario {
	t.Helper()
	require.NotEmpty(t, strings.TrimSpace(string(archive.Comment)), "a scenario says what it shows")
	s := &scenario{config: createDefaultConfig().(*Config)}
	for _, f := range archive.Files {
		switch text := string(f.Data); f.Name {
		case "config":
			retrieved, err := confmap.NewRetrievedFromYAML(f.Data)
			require.NoError(t, err)
			conf, err := retrieved.AsConf()
			require.NoError(t, err)
			require.NoError(t, conf.Unmarshal(s.config))
			require.NoError(t, s.config.Validate())
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
	slices.SortStableFunc(s.steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return s
}

// readSteps reads the blocks of a section of steps: derived metrics of a writer,
// gw-0 unless the heading names another instance.
func readSteps(t scenariotest.T, text string) []step {
	t.Helper()
	var steps []step
	for _, block := range scenariotest.Blocks(t, text) {
		if word := strings.Join(block.Words, " "); slices.Contains([]string{"restart", "refuse", "accept"}, word) {
			steps = append(steps, step{at: block.Times[0], action: word})
			continue
		}
		for _, page := range scenariotest.Pages(t, &block) {
			page.Target["job"] = "llmfleet"
			page.Target["instance"] = cmp.Or(page.Target["instance"], "gw-0")
			steps = append(steps, step{at: page.At, page: page})
		}
	}
	return steps
}

// readExpectations reads records: paragraphs of severity and event, the
// sentence, and attributes.
func readExpectations(t scenariotest.T, text string) []expectation {
	t.Helper()
	var all []expectation
	for _, block := range scenariotest.Blocks(t, text) {
		at := block.Times[0]
		for _, word := range block.Words {
			stamp, ok := strings.CutPrefix(word, "stamped=")
			require.True(t, ok, "%s", word)
			var err error
			at, err = time.ParseDuration(stamp)
			require.NoError(t, err)
		}
		for paragraph := range strings.SplitSeq(strings.TrimSpace(block.Body), "\n\n") {
			lines := strings.Split(paragraph, "\n")
			require.GreaterOrEqual(t, len(lines), 2, "%s", paragraph)
			severity, event, _ := strings.Cut(lines[0], " ")
			e := expectation{block.Times[0], at, severity, event, lines[1], map[string]string{}}
			for _, line := range lines[2:] {
				key, value, ok := strings.Cut(line, "=")
				require.True(t, ok, "%s", line)
				e.attributes[key] = value
			}
			all = append(all, e)
		}
	}
	return all
}

// run plays the scenario in a bubble of simulated time.
func (s *scenario) run(t *testing.T) {
	t.Helper()
	began := time.Now()
	stage := newStage(t, s.config)
	stage.raise()
	targets := scenariotest.Targets{}
	for _, x := range s.steps {
		time.Sleep(time.Until(began.Add(x.at)))
		synctest.Wait()
		switch x.action {
		case "restart":
			stage.shutdown()
			stage.raise()
		case "refuse":
			stage.refusal = errors.New("full")
		case "accept":
			stage.refusal = nil
		default:
			stage.consume(targets.Scrape(&x.page, began))
		}
	}
	counts := scenariotest.Telemetry(t, stage.telemetry, "otelcol_connector_fleet_events_")
	scenariotest.CheckTelemetry(t, s.telemetry, counts, "")
	stage.shutdown()
	s.check(t, began, stage.records())
}

func (s *scenario) check(t *testing.T, began time.Time, records []plog.LogRecord) {
	t.Helper()
	for i, e := range s.expected {
		if !assert.Greater(t, len(records), i, "nothing is told: %s", e.body) {
			continue
		}
		r := records[i]
		assert.Equal(t, e.body, r.Body().Str())
		assert.Equal(t, e.severity, r.SeverityText(), e.body)
		assert.Equal(t, e.severity, strings.ToUpper(r.SeverityNumber().String()), e.body)
		assert.Equal(t, e.event, r.EventName(), e.body)
		assert.Equal(t, e.at, r.Timestamp().AsTime().Sub(began), e.body)
		assert.Equal(t, e.observed, r.ObservedTimestamp().AsTime().Sub(began), e.body)
		for key, value := range e.attributes {
			got, ok := r.Attributes().Get(key)
			assert.Equal(t, value != "", ok, "%s of: %s", key, e.body)
			if ok {
				assert.Equal(t, value, got.AsString(), "%s of: %s", key, e.body)
			}
		}
	}
	for _, r := range records[min(len(records), len(s.expected)):] {
		assert.Fail(t, "unexpected", "%s %s", r.EventName(), r.Body().Str())
	}
}
