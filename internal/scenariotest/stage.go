// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package scenariotest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.uber.org/zap/zaptest"
)

// Stage is a Deriver between what feeds it and what it feeds. Its host, and the
// storage there, outlive it.
type Stage[C Config] struct {
	Began     time.Time
	Config    C
	Settings  processor.Settings
	Host      Host
	Processor processor.Metrics // nil while it is down
	// Take takes what is derived, if it is set; what is derived is not kept then.
	Take func(context.Context, pmetric.Metrics) error

	t         *testing.T
	deriver   *Deriver[C]
	telemetry *componenttest.Telemetry
	mu        sync.Mutex        // evaluations tell on their own
	passed    []pmetric.Metrics // of the input
	derived   []pmetric.Metrics
}

// Stage makes a stage on which no processor is yet.
func (d *Deriver[C]) Stage(t *testing.T, config C) *Stage[C] {
	t.Helper()
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	settings := processortest.NewNopSettings(d.Factory.Type())
	settings.TelemetrySettings = telemetry.NewTelemetrySettings()
	settings.Logger = zaptest.NewLogger(t)
	return &Stage[C]{Began: time.Now(), Config: config, Settings: settings, Host: Host{}, t: t, deriver: d, telemetry: telemetry}
}

// Raise makes and starts a processor. A storage that it asks for is one of files,
// unless the host has another.
func (s *Stage[C]) Raise() {
	s.t.Helper()
	if id := s.deriver.Common(s.Config).Storage; id != nil && s.Host[*id] == nil {
		s.Host[*id] = FileStorage(s.t)
	}
	next, err := consumer.NewMetrics(s.take)
	require.NoError(s.t, err)
	s.Processor, err = s.deriver.Factory.CreateMetrics(s.t.Context(), s.Settings, s.Config, next)
	require.NoError(s.t, err)
	require.NoError(s.t, s.Processor.Start(s.t.Context(), s.Host))
}

func (s *Stage[C]) take(ctx context.Context, md pmetric.Metrics) error {
	isDerived := s.deriver.Derived(md)
	if isDerived && s.Take != nil {
		return s.Take(ctx, md)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if isDerived {
		s.derived = append(s.derived, md)
	} else {
		s.passed = append(s.passed, md)
	}
	return nil
}

// Shutdown shuts the processor down, if one is up.
func (s *Stage[C]) Shutdown() {
	s.t.Helper()
	if s.Processor == nil {
		return
	}
	require.NoError(s.t, s.Processor.Shutdown(context.Background()))
	s.Processor = nil
}

// Restart has one processor follow another.
func (s *Stage[C]) Restart() {
	s.t.Helper()
	s.Shutdown()
	s.Raise()
}

// Consume feeds metrics in and checks that they come out as they were.
func (s *Stage[C]) Consume(md pmetric.Metrics) {
	s.t.Helper()
	md.MarkReadOnly()
	before := marshal(s.t, md)
	s.mu.Lock()
	s.passed = nil
	s.mu.Unlock()
	require.NoError(s.t, s.Processor.ConsumeMetrics(s.t.Context(), md))
	require.Len(s.t, s.passed, 1)
	require.Equal(s.t, before, marshal(s.t, s.passed[0]), "input passes unchanged")
}

// show feeds in what a target shows now.
func (s *Stage[C]) show(target string) {
	s.t.Helper()
	s.Consume(s.deriver.Page(target, time.Now()))
}

// Counts are what the processor tells of itself.
func (s *Stage[C]) Counts() Counts {
	s.t.Helper()
	return Telemetry(s.t, s.telemetry, "otelcol_processor_"+s.deriver.Factory.Type().String()+"_")
}

// Told reads what was derived, and holds it against what is true of every output.
func (s *Stage[C]) Told(t T) Told {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	told := readTold(t, s.Began, s.derived)
	for at, points := range told {
		assert.Zero(t, at%s.deriver.Common(s.Config).Pane, "@%s is the end of a pane", at)
		if s.deriver.Holds != nil {
			s.deriver.Holds(t, at, points)
		}
	}
	return told
}

func marshal(t T, md pmetric.Metrics) []byte {
	t.Helper()
	data, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	require.NoError(t, err)
	return data
}
