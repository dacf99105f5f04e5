// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstartconnector

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

	"github.com/llmfleet/llmfleet/connector/coldstartconnector/internal/metadatatest"
	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// stage is the connectors of all six pairs of signals, as a collector makes them,
// between what feeds them and what they feed. Its host outlives them.
type stage struct {
	t         *testing.T
	began     time.Time
	config    *Config
	settings  connector.Settings
	telemetry *componenttest.Telemetry
	host      scenariotest.Host
	logs      [2]connector.Logs // to traces, to metrics
	traces    [2]connector.Traces
	metrics   [2]connector.Metrics

	mu      sync.Mutex // the loop writes
	told    map[time.Duration][]scenariotest.Point
	starts  []told
	refusal error // of what comes next
}

// told is one trace that came.
type told struct {
	at   time.Duration
	span ptrace.ResourceSpans
}

var disk = component.MustNewID("file_storage")

func newStage(t *testing.T, config *Config) *stage {
	t.Helper()
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	s := &stage{
		t: t, began: time.Now(), config: config, telemetry: telemetry, host: scenariotest.Host{},
		settings: metadatatest.NewSettings(telemetry), told: map[time.Duration][]scenariotest.Point{},
	}
	s.settings.Logger = zaptest.NewLogger(t)
	if config.Storage != nil {
		s.host[*config.Storage] = new(scenariotest.Shelf)
	}
	return s
}

// raise makes and starts all connectors.
func (s *stage) raise() {
	s.t.Helper()
	toTraces, err := consumer.NewTraces(s.takeTraces)
	require.NoError(s.t, err)
	toMetrics, err := consumer.NewMetrics(s.takeMetrics)
	require.NoError(s.t, err)
	ctx, factory := s.t.Context(), NewFactory()
	made := make([]error, 6)
	s.logs[0], made[0] = factory.CreateLogsToTraces(ctx, s.settings, s.config, toTraces)
	s.logs[1], made[1] = factory.CreateLogsToMetrics(ctx, s.settings, s.config, toMetrics)
	s.traces[0], made[2] = factory.CreateTracesToTraces(ctx, s.settings, s.config, toTraces)
	s.traces[1], made[3] = factory.CreateTracesToMetrics(ctx, s.settings, s.config, toMetrics)
	s.metrics[0], made[4] = factory.CreateMetricsToTraces(ctx, s.settings, s.config, toTraces)
	s.metrics[1], made[5] = factory.CreateMetricsToMetrics(ctx, s.settings, s.config, toMetrics)
	for i, c := range s.all() {
		require.NoError(s.t, made[i])
		require.NoError(s.t, c.Start(ctx, s.host))
	}
}

func (s *stage) all() []component.Component {
	return []component.Component{s.logs[0], s.logs[1], s.traces[0], s.traces[1], s.metrics[0], s.metrics[1]}
}

func (s *stage) shutdown() {
	s.t.Helper()
	for _, c := range s.all() {
		require.NoError(s.t, c.Shutdown(context.Background()))
	}
}

// kill ends the connectors as a signal would that nobody can catch: nothing comes
// out any more, and nothing is saved.
func (s *stage) kill() {
	s.t.Helper()
	shelf := s.host[disk].(*scenariotest.Shelf)
	saved := shelf.Value
	s.mu.Lock()
	points, starts := s.told, s.starts
	s.told, s.starts = map[time.Duration][]scenariotest.Point{}, nil
	s.mu.Unlock()
	s.shutdown()
	s.mu.Lock()
	s.told, s.starts = points, starts
	s.mu.Unlock()
	shelf.Value = saved
}

// consumeLogs feeds logs in, which may not be changed, to both as a collector does.
func (s *stage) consumeLogs(ld plog.Logs) {
	s.t.Helper()
	ld.MarkReadOnly()
	for _, c := range s.logs {
		require.NoError(s.t, c.ConsumeLogs(s.t.Context(), ld))
	}
}

func (s *stage) consumeTraces(td ptrace.Traces) {
	s.t.Helper()
	td.MarkReadOnly()
	for _, c := range s.traces {
		require.NoError(s.t, c.ConsumeTraces(s.t.Context(), td))
	}
}

func (s *stage) consumeMetrics(md pmetric.Metrics) {
	s.t.Helper()
	md.MarkReadOnly()
	for _, c := range s.metrics {
		require.NoError(s.t, c.ConsumeMetrics(s.t.Context(), md))
	}
}

func (s *stage) counts() scenariotest.Counts {
	return scenariotest.Telemetry(s.t, s.telemetry, "otelcol_connector_cold_start_")
}

// refuse has what comes next refuse everything, or nothing.
func (s *stage) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal = err
}

func (s *stage) takeTraces(_ context.Context, td ptrace.Traces) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusal == nil {
		for _, rs := range td.ResourceSpans().All() {
			s.starts = append(s.starts, told{time.Since(s.began), rs})
		}
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

// takeMetric lists a metric's points, a histogram's as its count, its sum, each
// bucket's own count, and its exemplars: what they show, by trace. What adds up has
// the label since.
func (s *stage) takeMetric(m pmetric.Metric) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			s.take(m.Name(), p, p.DoubleValue())
		}
	case pmetric.MetricTypeSum:
		require.Equal(s.t, pmetric.AggregationTemporalityCumulative, m.Sum().AggregationTemporality())
		for _, p := range m.Sum().DataPoints().All() {
			s.take(m.Name(), p, p.DoubleValue(), "since", s.since(p))
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			s.take(m.Name()+"_count", p, float64(p.Count()), "since", s.since(p))
			s.take(m.Name()+"_sum", p, p.Sum())
			for i, n := range p.BucketCounts().All() {
				le := "+Inf"
				if i < p.ExplicitBounds().Len() {
					le = fmt.Sprint(p.ExplicitBounds().At(i))
				}
				s.take(m.Name()+"_bucket", p, float64(n), "le", le)
			}
			s.takeExemplars(m.Name(), p, p.Exemplars())
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			s.take(m.Name()+"_count", p, float64(p.Count()), "since", s.since(p))
			for i, n := range p.Positive().BucketCounts().All() {
				s.take(m.Name()+"_bucket", p, float64(n), "scale", fmt.Sprint(p.Scale()), "index", fmt.Sprint(int(p.Positive().Offset())+i))
			}
			s.takeExemplars(m.Name(), p, p.Exemplars())
		}
	default:
		require.Failf(s.t, "unexpected type", "%s of %s", m.Type(), m.Name())
	}
}

func (s *stage) takeExemplars(name string, p dataPoint, exemplars pmetric.ExemplarSlice) {
	for _, e := range exemplars.All() {
		s.take(name+"_exemplar", p, e.DoubleValue(), "trace", e.TraceID().String(), "at", e.Timestamp().AsTime().Sub(s.began).String())
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

func (s *stage) since(p interface{ StartTimestamp() pcommon.Timestamp }) string {
	return p.StartTimestamp().AsTime().Sub(s.began).String()
}
