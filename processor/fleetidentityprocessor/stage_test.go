// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetidentityprocessor

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap/zaptest"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
	"github.com/llmfleet/llmfleet/processor/fleetidentityprocessor/internal/metadatatest"
)

// stage is the processors of one configuration, between what feeds them and
// what they feed.
type stage struct {
	t         *testing.T
	began     time.Time
	config    *Config
	settings  processor.Settings
	telemetry *componenttest.Telemetry
	metrics   processor.Metrics
	traces    processor.Traces
	logs      processor.Logs
	mu        sync.Mutex                             // evaluations tell on their own
	told      map[time.Duration][]scenariotest.Point // what came out
	spans     consumertest.TracesSink
	records   consumertest.LogsSink
	page      pmetric.Metrics // the newest that came out, ours excepted
}

func newStage(t *testing.T, config *Config) *stage {
	t.Helper()
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	settings := metadatatest.NewSettings(telemetry)
	settings.Logger = zaptest.NewLogger(t)
	return &stage{
		t: t, began: time.Now(), config: config, settings: settings, telemetry: telemetry,
		told: map[time.Duration][]scenariotest.Point{},
	}
}

// raise makes and starts the processors.
func (s *stage) raise() {
	next, err := consumer.NewMetrics(s.take)
	require.NoError(s.t, err)
	factory := NewFactory()
	s.metrics, err = factory.CreateMetrics(s.t.Context(), s.settings, s.config, next)
	require.NoError(s.t, err)
	s.traces, err = factory.CreateTraces(s.t.Context(), s.settings, s.config, &s.spans)
	require.NoError(s.t, err)
	s.logs, err = factory.CreateLogs(s.t.Context(), s.settings, s.config, &s.records)
	require.NoError(s.t, err)
	require.NoError(s.t, s.metrics.Start(s.t.Context(), componenttest.NewNopHost()))
	require.NoError(s.t, s.traces.Start(s.t.Context(), componenttest.NewNopHost()))
	require.NoError(s.t, s.logs.Start(s.t.Context(), componenttest.NewNopHost()))
}

func (s *stage) shutdown() {
	require.NoError(s.t, s.metrics.Shutdown(context.Background()))
	require.NoError(s.t, s.traces.Shutdown(context.Background()))
	require.NoError(s.t, s.logs.Shutdown(context.Background()))
}

// wait lets time pass, and everything that happens meanwhile.
func (s *stage) wait(until time.Duration) {
	scenariotest.Wait(s.began.Add(until))
}

func (s *stage) counts() map[string]float64 {
	return scenariotest.Telemetry(s.t, s.telemetry, "otelcol_processor_fleet_identity_")
}

// take notes what comes out: our metrics by their own time, others by when.
func (s *stage) take(_ context.Context, md pmetric.Metrics) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rm := range md.ResourceMetrics().All() {
		at := time.Since(s.began)
		if rm.ScopeMetrics().Len() == 1 && rm.ScopeMetrics().At(0).Scope().Name() == scopeName {
			at = ownTime(rm).Sub(s.began)
		} else {
			s.page = md
			s.told[at] = append(s.told[at], scenariotest.Point{Name: "resource", Labels: scenariotest.Labels(rm.Resource().Attributes()), Value: 1})
		}
		s.told[at] = append(s.told[at], pointsOf(rm)...)
	}
	return nil
}

func ownTime(rm pmetric.ResourceMetrics) time.Time {
	m := rm.ScopeMetrics().At(0).Metrics().At(0)
	if m.Type() == pmetric.MetricTypeSum {
		return m.Sum().DataPoints().At(0).Timestamp().AsTime()
	}
	return m.Gauge().DataPoints().At(0).Timestamp().AsTime()
}

// pointsOf lists all points, a histogram's as Prometheus would: its count, its
// sum, and cumulative buckets.
func pointsOf(rm pmetric.ResourceMetrics) (points []scenariotest.Point) {
	add := func(name string, m pcommon.Map, value float64, flags pmetric.DataPointFlags, more ...string) {
		labels := scenariotest.Labels(m)
		for i := 0; i < len(more); i += 2 {
			labels[more[i]] = more[i+1]
		}
		points = append(points, scenariotest.Point{Name: name, Labels: labels, Value: value, Ended: flags.NoRecordedValue()})
	}
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			switch m.Type() {
			case pmetric.MetricTypeGauge:
				for _, p := range m.Gauge().DataPoints().All() {
					add(m.Name(), p.Attributes(), p.DoubleValue(), p.Flags())
				}
			case pmetric.MetricTypeSum:
				for _, p := range m.Sum().DataPoints().All() {
					add(m.Name(), p.Attributes(), p.DoubleValue(), p.Flags())
				}
			case pmetric.MetricTypeHistogram:
				for _, p := range m.Histogram().DataPoints().All() {
					add(m.Name()+"_count", p.Attributes(), float64(p.Count()), p.Flags())
					add(m.Name()+"_sum", p.Attributes(), p.Sum(), p.Flags())
					below := uint64(0)
					for i, count := range p.BucketCounts().All() {
						below += count
						bound := math.Inf(1)
						if i < p.ExplicitBounds().Len() {
							bound = p.ExplicitBounds().At(i)
						}
						add(m.Name()+"_bucket", p.Attributes(), float64(below), p.Flags(), "le", fmt.Sprint(bound))
					}
				}
			}
		}
	}
	return points
}

// consumeMetrics feeds metrics in and checks that nothing but attributes was
// added, unless more is asked for.
func (s *stage) consumeMetrics(md pmetric.Metrics) {
	before := pmetric.NewMetrics()
	md.CopyTo(before)
	require.NoError(s.t, s.metrics.ConsumeMetrics(s.t.Context(), md))
	if s.config.DropRaw {
		return
	}
	after := pmetric.NewMetrics()
	s.page.CopyTo(after)
	unstamp(s.t, before, after)
	require.Equal(s.t, marshal(s.t, before), marshal(s.t, after), "metrics pass as they were")
}

func (s *stage) consumeTraces(td ptrace.Traces) {
	before := ptrace.NewTraces()
	td.CopyTo(before)
	require.NoError(s.t, s.traces.ConsumeTraces(s.t.Context(), td))
	all := s.spans.AllTraces()
	s.spans.Reset()
	require.Len(s.t, all, 1)
	at := time.Since(s.began)
	for i, rs := range all[0].ResourceSpans().All() {
		was := before.ResourceSpans().At(i)
		s.record(at, "span.resource", was.Resource().Attributes(), rs.Resource().Attributes())
		for j, ss := range rs.ScopeSpans().All() {
			for k, span := range ss.Spans().All() {
				s.record(at, "span", was.ScopeSpans().At(j).Spans().At(k).Attributes(), span.Attributes())
			}
		}
	}
}

func (s *stage) consumeLogs(ld plog.Logs) {
	before := plog.NewLogs()
	ld.CopyTo(before)
	require.NoError(s.t, s.logs.ConsumeLogs(s.t.Context(), ld))
	all := s.records.AllLogs()
	s.records.Reset()
	require.Len(s.t, all, 1)
	at := time.Since(s.began)
	for i, rl := range all[0].ResourceLogs().All() {
		was := before.ResourceLogs().At(i)
		s.record(at, "log.resource", was.Resource().Attributes(), rl.Resource().Attributes())
		require.Equal(s.t, was.ScopeLogs().At(0).LogRecords().At(0).Attributes().AsRaw(),
			rl.ScopeLogs().At(0).LogRecords().At(0).Attributes().AsRaw(), "log records pass as they were")
	}
}

// record notes attributes that came out, and checks them against those that
// went in.
func (s *stage) record(at time.Duration, name string, before, after pcommon.Map) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told[at] = append(s.told[at], scenariotest.Point{Name: name, Labels: scenariotest.Labels(after), Value: 1})
	left := pcommon.NewMap()
	after.CopyTo(left)
	unstampMap(s.t, before, left)
	require.Equal(s.t, before.AsRaw(), left.AsRaw(), "%s: nothing that was there changes", name)
}

// ours are the attributes that may be added.
var ours = []string{
	"model_name", "role", "engine_name", "gpu_model", "node", "model_revision", "engine_version", "config_hash", "replica",
}

// unstampMap takes away what was added.
func unstampMap(t scenariotest.T, before, after pcommon.Map) {
	t.Helper()
	after.RemoveIf(func(k string, _ pcommon.Value) bool {
		if _, was := before.Get(k); was {
			return false
		}
		require.Contains(t, ours, k)
		return true
	})
}

// unstamp takes away the canonical series, and what was added to resources and
// points.
func unstamp(t scenariotest.T, before, after pmetric.Metrics) {
	t.Helper()
	require.Equal(t, before.ResourceMetrics().Len(), after.ResourceMetrics().Len())
	for i, rm := range after.ResourceMetrics().All() {
		was := before.ResourceMetrics().At(i)
		unstampMap(t, was.Resource().Attributes(), rm.Resource().Attributes())
		rm.ScopeMetrics().RemoveIf(func(sm pmetric.ScopeMetrics) bool { return sm.Scope().Name() == scopeName })
		require.Equal(t, was.ScopeMetrics().Len(), rm.ScopeMetrics().Len())
		for j, sm := range rm.ScopeMetrics().All() {
			require.Equal(t, was.ScopeMetrics().At(j).Metrics().Len(), sm.Metrics().Len())
			for k, m := range sm.Metrics().All() {
				attributes := attributesOf(was.ScopeMetrics().At(j).Metrics().At(k))
				for n, now := range attributesOf(m) {
					unstampMap(t, attributes[n], now)
				}
			}
		}
	}
}

const scopeName = "github.com/llmfleet/llmfleet/processor/fleetidentityprocessor"

// attributesOf are the attributes of each point of a metric.
func attributesOf(m pmetric.Metric) (all []pcommon.Map) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			all = append(all, p.Attributes())
		}
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			all = append(all, p.Attributes())
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			all = append(all, p.Attributes())
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			all = append(all, p.Attributes())
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			all = append(all, p.Attributes())
		}
	}
	return all
}

func marshal(t scenariotest.T, md pmetric.Metrics) string {
	t.Helper()
	data, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(md)
	require.NoError(t, err)
	return string(data)
}
