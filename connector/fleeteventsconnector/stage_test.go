// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleeteventsconnector

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap/zaptest"

	"github.com/llmfleet/llmfleet/connector/fleeteventsconnector/internal/metadatatest"
	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// stage is a connector between what feeds it and what it feeds, with a storage
// that outlives it.
type stage struct {
	t         *testing.T
	config    *Config
	settings  connector.Settings
	telemetry *componenttest.Telemetry
	host      scenariotest.Host
	connector connector.Metrics
	told      []plog.Logs
	refusal   error // of the next component
}

func newStage(t *testing.T, config *Config) *stage {
	t.Helper()
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	s := &stage{t: t, config: config, settings: metadatatest.NewSettings(telemetry), telemetry: telemetry, host: scenariotest.Host{}}
	s.settings.Logger = zaptest.NewLogger(t)
	if config.Storage != nil {
		s.host[*config.Storage] = scenariotest.FileStorage(t)
	}
	return s
}

// raise makes and starts a connector.
func (s *stage) raise() {
	next, err := consumer.NewLogs(func(_ context.Context, logs plog.Logs) error {
		if s.refusal == nil {
			s.told = append(s.told, logs)
		}
		return s.refusal
	})
	require.NoError(s.t, err)
	s.connector, err = NewFactory().CreateMetricsToLogs(s.t.Context(), s.settings, s.config, next)
	require.NoError(s.t, err)
	require.NoError(s.t, s.connector.Start(s.t.Context(), s.host))
}

func (s *stage) shutdown() { require.NoError(s.t, s.connector.Shutdown(context.Background())) }

// consume feeds metrics in, which may not be changed.
func (s *stage) consume(md pmetric.Metrics) {
	md.MarkReadOnly()
	require.NoError(s.t, s.connector.ConsumeMetrics(s.t.Context(), md))
}

// records are all that was told, in order.
func (s *stage) records() (all []plog.LogRecord) {
	for _, logs := range s.told {
		for _, rl := range logs.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, record := range sl.LogRecords().All() {
					all = append(all, record)
				}
			}
		}
	}
	return all
}
