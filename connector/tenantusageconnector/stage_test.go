// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantusageconnector

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap/zaptest"

	"github.com/llmfleet/llmfleet/connector/tenantusageconnector/internal/metadatatest"
	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// stage is the connectors of both pairs of signals, as a collector makes them,
// between what feeds them and what they feed.
type stage struct {
	t         *testing.T
	began     time.Time
	config    *Config
	settings  connector.Settings
	telemetry *componenttest.Telemetry
	metrics   connector.Traces
	logs      connector.Traces

	mu      sync.Mutex                             // the loops write
	told    map[time.Duration][]scenariotest.Point // by their own time
	records []plog.Logs
	refusal error // of what comes next
}

func newStage(t *testing.T, config *Config) *stage {
	t.Helper()
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	s := &stage{
		t: t, began: time.Now(), config: config, telemetry: telemetry,
		settings: metadatatest.NewSettings(telemetry), told: map[time.Duration][]scenariotest.Point{},
	}
	s.settings.Logger = zaptest.NewLogger(t)
	return s
}

// raise makes and starts both connectors.
func (s *stage) raise() {
	s.t.Helper()
	s.metrics, s.logs = s.makeMetrics(), s.makeLogs()
	require.NoError(s.t, s.metrics.Start(s.t.Context(), componenttest.NewNopHost()))
	require.NoError(s.t, s.logs.Start(s.t.Context(), componenttest.NewNopHost()))
}

func (s *stage) makeMetrics() connector.Traces {
	s.t.Helper()
	next, err := consumer.NewMetrics(s.takeMetrics)
	require.NoError(s.t, err)
	c, err := NewFactory().CreateTracesToMetrics(s.t.Context(), s.settings, s.config, next)
	require.NoError(s.t, err)
	return c
}

func (s *stage) makeLogs() connector.Traces {
	s.t.Helper()
	next, err := consumer.NewLogs(s.takeLogs)
	require.NoError(s.t, err)
	c, err := NewFactory().CreateTracesToLogs(s.t.Context(), s.settings, s.config, next)
	require.NoError(s.t, err)
	return c
}

func (s *stage) shutdown() {
	s.t.Helper()
	for _, c := range []component.Component{s.metrics, s.logs} {
		require.NoError(s.t, c.Shutdown(context.Background()))
	}
}

// consume feeds spans in, which may not be changed, to both as a collector does.
func (s *stage) consume(td ptrace.Traces) {
	s.t.Helper()
	td.MarkReadOnly()
	for _, c := range []connector.Traces{s.metrics, s.logs} {
		require.NoError(s.t, c.ConsumeTraces(s.t.Context(), td))
	}
}

func (s *stage) counts() map[string]float64 {
	return scenariotest.Telemetry(s.t, s.telemetry, "otelcol_connector_tenant_usage_")
}

// refuse has what comes next refuse everything, or nothing.
func (s *stage) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal = err
}

func (s *stage) takeLogs(_ context.Context, logs plog.Logs) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusal == nil {
		s.records = append(s.records, logs)
	}
	return s.refusal
}

func (s *stage) takeMetrics(_ context.Context, md pmetric.Metrics) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusal == nil {
		for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			s.takeMetric(m)
		}
	}
	return s.refusal
}

// takeMetric lists a metric's points, a histogram's as its count, its sum, and
// each bucket's own count. What adds up has the label since.
func (s *stage) takeMetric(m pmetric.Metric) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			s.take(m.Name(), p, p.DoubleValue())
		}
	case pmetric.MetricTypeSum:
		require.True(s.t, m.Sum().IsMonotonic())
		require.Equal(s.t, pmetric.AggregationTemporalityCumulative, m.Sum().AggregationTemporality())
		for _, p := range m.Sum().DataPoints().All() {
			s.take(m.Name(), p, p.DoubleValue(), "since", s.since(p.StartTimestamp()))
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			since := s.since(p.StartTimestamp())
			s.take(m.Name()+"_count", p, float64(p.Count()), "since", since)
			s.take(m.Name()+"_sum", p, p.Sum(), "since", since)
			for i, n := range p.BucketCounts().All() {
				le := "+Inf"
				if i < p.ExplicitBounds().Len() {
					le = fmt.Sprint(p.ExplicitBounds().At(i))
				}
				s.take(m.Name()+"_bucket", p, float64(n), "le", le, "since", since)
			}
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			since := s.since(p.StartTimestamp())
			s.take(m.Name()+"_count", p, float64(p.Count()), "since", since)
			for i, n := range p.Positive().BucketCounts().All() {
				s.take(m.Name()+"_bucket", p, float64(n),
					"scale", fmt.Sprint(p.Scale()), "index", fmt.Sprint(int(p.Positive().Offset())+i), "since", since)
			}
		}
	default:
		require.Failf(s.t, "unexpected type", "%s of %s", m.Type(), m.Name())
	}
}

// dataPoint is what all kinds of points have in common.
type dataPoint interface {
	Attributes() pcommon.Map
	Timestamp() pcommon.Timestamp
	Flags() pmetric.DataPointFlags
}

func (s *stage) take(name string, p dataPoint, value float64, more ...string) {
	labels := scenariotest.Labels(p.Attributes())
	for i := 0; i < len(more); i += 2 {
		labels[more[i]] = more[i+1]
	}
	at := p.Timestamp().AsTime().Sub(s.began)
	s.told[at] = append(s.told[at], scenariotest.Point{Name: name, Labels: labels, Value: value, Ended: p.Flags().NoRecordedValue()})
}

func (s *stage) since(start pcommon.Timestamp) string { return start.AsTime().Sub(s.began).String() }

// sizes are how many records came at a time.
func (s *stage) sizes() (all []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, logs := range s.records {
		all = append(all, logs.LogRecordCount())
	}
	return all
}

// logRecords are all that were told, in order.
func (s *stage) logRecords() (all []plog.LogRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, logs := range s.records {
		for _, record := range logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().All() {
			all = append(all, record)
		}
	}
	return all
}
