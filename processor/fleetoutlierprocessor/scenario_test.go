// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap/zaptest"
	"golang.org/x/tools/txtar"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
	"github.com/llmfleet/llmfleet/processor/fleetoutlierprocessor/internal/metadatatest"
)

// TestScenarios runs every story of testdata/scenarios through the processor,
// its own loop ticking in simulated time. testdata/README.md tells the format.
func TestScenarios(t *testing.T) {
	scenariotest.Run(t, func(t scenariotest.T, archive *txtar.Archive) func(*testing.T) { return readScenario(t, archive).run })
}

// scenario is one story: what targets say when, and what is told of them.
type scenario struct {
	config    *Config
	steps     []step
	expected  []expectation
	telemetry []scenariotest.Figure
}

// step is one thing that happens. Its action is "" for a page.
type step struct {
	at     time.Duration // since the simulated clock began
	action string        // shutdown, restart
	page   scenariotest.Page
}

func readScenario(t scenariotest.T, archive *txtar.Archive) *scenario {
	t.Helper()
	require.NotEmpty(t, strings.TrimSpace(string(archive.Comment)), "a scenario says what it shows")
	s := &scenario{config: createDefaultConfig().(*Config)}
	var names []string
	for _, f := range archive.Files {
		names = append(names, f.Name)
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
	require.Contains(t, names, "expect")
	slices.SortStableFunc(s.steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return s
}

// readSteps reads the blocks of a section of steps.
func readSteps(t scenariotest.T, text string) []step {
	t.Helper()
	var steps []step
	for _, block := range scenariotest.Blocks(t, text) {
		if word := strings.Join(block.Words, " "); word == "shutdown" || word == "restart" {
			steps = append(steps, step{at: block.Times[0], action: word})
			continue
		}
		for _, page := range scenariotest.Pages(t, &block) {
			steps = append(steps, step{at: page.At, page: page})
		}
	}
	return steps
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

// run plays the scenario in a bubble of simulated time.
func (s *scenario) run(t *testing.T) {
	t.Helper()
	began := time.Now()
	require.Zero(t, began.UnixNano()%int64(s.config.Interval), "simulated time begins at a pane's edge")
	stage := newStage(t, s.config)
	stage.raise()
	targets := scenariotest.Targets{}
	end := time.Duration(0)
	for _, x := range s.steps {
		wait(began.Add(x.at))
		switch x.action {
		case "shutdown":
			stage.shutdown()
		case "restart":
			stage.shutdown()
			stage.raise()
		default:
			stage.consume(targets.Scrape(&x.page, began))
		}
		end = max(end, x.at)
	}
	for _, e := range s.expected {
		end = max(end, e.at+s.config.Lateness)
	}
	wait(began.Add(end + time.Millisecond))
	checkTelemetry(t, s.telemetry, stage.telemetry)
	stage.shutdown()
	checkOutput(t, began, s.expected, stage.derived)
}

func wait(until time.Time) {
	time.Sleep(time.Until(until))
	synctest.Wait()
}

// stage is a processor between what feeds it and what it feeds. Its storage, if
// it has one, outlives it.
type stage struct {
	t         *testing.T
	config    *Config
	settings  processor.Settings
	telemetry *componenttest.Telemetry
	host      host
	processor processor.Metrics // nil while it is down
	input     []pmetric.Metrics // that came out again
	derived   []pmetric.Metrics
}

func newStage(t *testing.T, config *Config) *stage {
	t.Helper()
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	settings := metadatatest.NewSettings(telemetry)
	settings.Logger = zaptest.NewLogger(t)
	s := &stage{t: t, config: config, settings: settings, telemetry: telemetry, host: host{}}
	if config.Storage != nil {
		s.host[*config.Storage] = newFileStorage(t)
	}
	return s
}

// raise makes and starts a processor.
func (s *stage) raise() {
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		if isDerived(md) {
			s.derived = append(s.derived, md)
		} else {
			s.input = append(s.input, md)
		}
		return nil
	})
	require.NoError(s.t, err)
	s.processor, err = NewFactory().CreateMetrics(s.t.Context(), s.settings, s.config, next)
	require.NoError(s.t, err)
	require.NoError(s.t, s.processor.Start(s.t.Context(), s.host))
}

func (s *stage) shutdown() {
	if s.processor == nil {
		return
	}
	require.NoError(s.t, s.processor.Shutdown(context.Background()))
	s.processor = nil
}

// consume feeds metrics in and checks that they come out as they were.
func (s *stage) consume(md pmetric.Metrics) {
	md.MarkReadOnly()
	before := marshal(s.t, md)
	s.input = nil
	require.NoError(s.t, s.processor.ConsumeMetrics(s.t.Context(), md))
	require.Len(s.t, s.input, 1)
	require.Equal(s.t, before, marshal(s.t, s.input[0]), "input passes unchanged")
}

func marshal(t scenariotest.T, md pmetric.Metrics) []byte {
	t.Helper()
	data, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	require.NoError(t, err)
	return data
}

func isDerived(md pmetric.Metrics) bool {
	if md.ResourceMetrics().Len() == 0 {
		return false
	}
	service, ok := md.ResourceMetrics().At(0).Resource().Attributes().Get("service.name")
	return ok && service.AsString() == "llmfleet"
}
