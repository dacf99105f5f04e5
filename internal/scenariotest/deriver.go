// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package scenariotest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.uber.org/zap"
	"golang.org/x/tools/txtar"
)

// Deriver is a processor that passes metrics on as they are, judges them pane by
// pane, and derives others.
type Deriver[C Config] struct {
	Factory processor.Factory
	// Scope is the instrumentation scope of what it derives.
	Scope string
	// Common are the settings of a configuration that every such processor has.
	Common func(C) Common
	// Page is what a target shows at a time: one point, of which one observation is
	// made. Of targets that show one every half pane, something is told.
	Page func(target string, at time.Time) pmetric.Metrics
	// Holds checks what it tells at one time, beside what every output is held to;
	// nil: nothing else is true of all that it tells.
	Holds func(t T, at time.Duration, points []Point)
}

// Common are settings that every Deriver has, whatever it calls them.
type Common struct {
	Pane, Lateness time.Duration
	Storage        *component.ID
}

// Defaults is the default configuration.
func (d *Deriver[C]) Defaults() C { return d.Factory.CreateDefaultConfig().(C) }

// storageID names the storage of Stored.
var storageID = component.MustNewID("file_storage")

// Stored is the default configuration with a storage.
func (d *Deriver[C]) Stored(t T) C {
	t.Helper()
	config := d.Defaults()
	Configure(t, "storage: "+storageID.String(), config)
	return config
}

// Start makes and starts a processor, and shuts it down when the test ends.
func (d *Deriver[C]) Start(t *testing.T, logger *zap.Logger, config C, next consumer.Metrics) processor.Metrics {
	t.Helper()
	settings := processortest.NewNopSettings(d.Factory.Type())
	settings.Logger = logger
	p, err := d.Factory.CreateMetrics(t.Context(), settings, config, next)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, p.Shutdown(context.Background())) })
	return p
}

// Derived tells what the processor derives from what others do.
func (d *Deriver[C]) Derived(md pmetric.Metrics) bool {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			return sm.Scope().Name() == d.Scope
		}
	}
	return false
}

// The actions of a Deriver's stories.
const (
	actionShutdown = "shutdown"
	actionRestart  = "restart"
)

// story is what targets say when, and what is told of them.
type story[C Config] struct {
	deriver   *Deriver[C]
	config    C
	steps     []Step
	expected  []Expectation
	telemetry []Figure
}

// TestScenarios plays every story of testdata/scenarios, the processor's own loop
// ticking in simulated time.
func (d *Deriver[C]) TestScenarios(t *testing.T) {
	t.Helper()
	Run(t, func(t T, archive *txtar.Archive) func(*testing.T) { return d.read(t, archive).play })
}

func (d *Deriver[C]) read(t T, archive *txtar.Archive) *story[C] {
	t.Helper()
	s := &story[C]{deriver: d, config: d.Defaults()}
	Sections(t, archive, map[string]func(string){
		"config":    func(text string) { Configure(t, text, s.config) },
		"steps":     func(text string) { s.steps = Steps(t, text, actionShutdown, actionRestart) },
		"expect":    func(text string) { s.expected = Expectations(t, text) },
		"telemetry": func(text string) { s.telemetry = Figures(t, text) },
	})
	require.NotNil(t, s.expected, "a scenario says what is told")
	for _, x := range s.steps {
		require.Empty(t, strings.Join(x.Words, " ")+x.Body, "%s is alone", x.Action)
	}
	return s
}

// play plays a story in a bubble of simulated time.
func (s *story[C]) play(t *testing.T) {
	t.Helper()
	stage, common := s.deriver.Stage(t, s.config), s.deriver.Common(s.config)
	require.Zero(t, stage.Began.UnixNano()%int64(common.Pane), "simulated time begins at a pane's edge")
	stage.Raise()
	targets, end := Targets{}, time.Duration(0)
	for _, x := range s.steps {
		Wait(stage.Began.Add(x.At))
		switch x.Action {
		case actionShutdown:
			stage.Shutdown()
		case actionRestart:
			stage.Restart()
		default:
			stage.Consume(targets.Scrape(&x.Page, stage.Began))
		}
		end = max(end, x.At)
	}
	for _, e := range s.expected {
		end = max(end, e.At+common.Lateness)
	}
	Wait(stage.Began.Add(end + time.Millisecond))
	if s.telemetry != nil {
		CheckTelemetry(t, s.telemetry, stage.Counts(), "ignored")
	}
	stage.Shutdown()
	told := stage.Told(t)
	for _, e := range s.expected {
		e.Check(t, told[e.At])
	}
}
