// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleeteventsconnector

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/scenariotest"
	"github.com/llmfleet/llmfleet/internal/window"
)

const second = pcommon.Timestamp(time.Second)

// gauge is one point of a gauge of a replica, stamped in seconds since 1970.
func gauge(metric, replica string, at pcommon.Timestamp, value float64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", "gw-0")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(metric)
	point := m.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetTimestamp(at * second)
	point.SetDoubleValue(value)
	point.Attributes().PutStr("replica", replica)
	return md
}

// verdictOf is the point of the overall verdict on canary x that is 1.
func verdictOf(verdict string, at pcommon.Timestamp) pmetric.Metrics {
	md := gauge(emit.CanaryVerdict, "", at, 1)
	attributes := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).Attributes()
	attributes.Clear()
	attributes.PutStr("canary", "x")
	attributes.PutStr("measure", "overall")
	attributes.PutStr("verdict", verdict)
	return md
}

// endOf makes the points of metrics ends.
func endOf(md pmetric.Metrics) pmetric.Metrics {
	md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).
		SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	return md
}

func (s *stage) bodies() (all []string) {
	for _, r := range s.records() {
		all = append(all, r.Body().Str())
	}
	return all
}

func (s *stage) counts() map[string]float64 {
	return scenariotest.Telemetry(s.t, s.telemetry, "otelcol_connector_fleet_events_")
}

func newStageOf(t *testing.T, change func(*Config)) *stage {
	t.Helper()
	config := createDefaultConfig().(*Config)
	change(config)
	s := newStage(t, config)
	s.raise()
	t.Cleanup(s.shutdown)
	return s
}

// TestWriterOfOurs: what emit.Writer writes is what is read, its ends in a call
// of their own.
func TestWriterOfOurs(t *testing.T) {
	s := newStageOf(t, func(*Config) {})
	w := emit.NewWriter(emit.Options{Component: "fleet_outlier", Instance: "gw-0", Next: func(_ context.Context, md pmetric.Metrics) error {
		s.consume(md)
		return nil
	}})
	outlier, usage := w.Slot(emit.ReplicaOutlier), w.Slot(emit.ReplicaKVUsage)
	evaluate := func(at time.Duration, judged ...string) {
		w.Begin(window.Instant(at))
		for _, name := range []string{"a", "b"} {
			w.About(t.Context(), []fleet.Label{{Name: "replica", Value: name}})
			for _, j := range judged {
				if strings.HasPrefix(j, name) {
					w.Set(map[string]emit.Slot{"outlier": outlier, "usage": usage}[j[2:]], 1)
				}
			}
		}
		require.NoError(t, w.End(t.Context()))
	}
	evaluate(time.Minute, "a outlier", "a usage", "b outlier", "b usage")
	evaluate(2*time.Minute, "b usage")
	evaluate(3*time.Minute, "b usage")
	assert.ElementsMatch(t, []string{
		"Replica a is an outlier.", "Replica b is an outlier.",
		"Replica a departed; it had been an outlier for 1m.",
		"Replica b is no longer judged; it had been an outlier for 1m.",
	}, s.bodies())
}

// TestEveryFigureHasAName: no metric that is read has more attributes of its own
// than a figure keeps.
func TestEveryFigureHasAName(t *testing.T) {
	require.NotEmpty(t, legible)
	for name, m := range legible {
		assert.LessOrEqual(t, len(m.Attributes), len(figure{}.own), name)
	}
	for metric := range flags {
		assert.Contains(t, legible, metric)
	}
}

// TestFlaggedAtTheLimit: as many as max_series allows are told; one more is
// counted, and told when another made room.
func TestFlaggedAtTheLimit(t *testing.T) {
	s := newStageOf(t, func(c *Config) { c.MaxSeries = 2 })
	s.consume(gauge(emit.ReplicaOutlier, "a", 30, 1))
	s.consume(gauge(emit.ReplicaOutlier, "b", 30, 1))
	assert.Zero(t, s.counts()[`overflow{followed="flags"}`])
	s.consume(gauge(emit.ReplicaOutlier, "c", 30, 1))
	assert.Len(t, s.records(), 2)
	assert.InDelta(t, 1, s.counts()[`overflow{followed="flags"}`], 0)

	s.consume(gauge(emit.ReplicaOutlier, "a", 60, 0))
	s.consume(gauge(emit.ReplicaOutlier, "c", 60, 1))
	assert.Equal(t, []string{
		"Replica a is an outlier.", "Replica b is an outlier.", "Replica a is no longer an outlier, after 30s.", "Replica c is an outlier.",
	}, s.bodies())
	assert.InDelta(t, 2, s.counts()[`series{followed="flags"}`], 0)
	assert.InDelta(t, 1, s.counts()[`overflow{followed="flags"}`], 0)
}

func TestVariantsAtTheLimit(t *testing.T) {
	s := newStageOf(t, func(c *Config) { c.MaxSeries = 2 })
	for at := range pcommon.Timestamp(4) {
		for _, replica := range []string{"a", "b", "c"} {
			s.consume(gauge(emit.ReplicaVariantChanges, replica, 30*(at+1), float64(min(at, 1))))
		}
	}
	assert.Equal(t, []string{"Replica a changed its variant.", "Replica b changed its variant."}, s.bodies())
	assert.InDelta(t, 4, s.counts()[`overflow{followed="variants"}`], 0)
	assert.InDelta(t, 2, s.counts()[`series{followed="variants"}`], 0)
}

// TestOutboxAtTheLimit: a next component that refuses for long loses the oldest.
func TestOutboxAtTheLimit(t *testing.T) {
	s := newStageOf(t, func(*Config) {})
	s.refusal = errors.New("full")
	many := pmetric.NewMetrics()
	for i := range outboxLimit {
		gauge(emit.ReplicaOutlier, fmt.Sprint(i), 30, 1).ResourceMetrics().MoveAndAppendTo(many.ResourceMetrics())
	}
	s.consume(many)
	assert.Zero(t, s.counts()["lost"])
	s.consume(gauge(emit.ReplicaOutlier, "last", 30, 1))
	assert.InDelta(t, 1, s.counts()["lost"], 0)
	s.refusal = nil
	s.consume(gauge(emit.ReplicaOutlier, "last", 60, 1))
	told := s.bodies()
	require.Len(t, told, outboxLimit)
	assert.Equal(t, "Replica 1 is an outlier.", told[0])
	assert.Equal(t, "Replica last is an outlier.", told[outboxLimit-1])
}

// TestEndBeforeTheValue: of one time the value counts, in whatever order they
// come.
func TestEndBeforeTheValue(t *testing.T) {
	s := newStageOf(t, func(*Config) {})
	s.consume(gauge(emit.ReplicaOutlier, "a", 30, 1))
	md := endOf(gauge(emit.ReplicaOutlier, "a", 60, 0))
	gauge(emit.ReplicaOutlier, "a", 60, 1).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
	s.consume(md)
	assert.Equal(t, []string{"Replica a is an outlier."}, s.bodies())
}

// TestRefusedForGood: what can never be taken is not tried again.
func TestRefusedForGood(t *testing.T) {
	s := newStageOf(t, func(*Config) {})
	s.refusal = consumererror.NewPermanent(errors.New("too old"))
	s.consume(gauge(emit.ReplicaOutlier, "a", 30, 1))
	s.refusal = nil
	s.consume(gauge(emit.ReplicaOutlier, "a", 60, 1))
	assert.Empty(t, s.records())
	assert.InDelta(t, 1, s.counts()["lost"], 0)
}

// TestVariantIsToldAtTheShutdown: a change that waits for its labels is not lost.
func TestVariantIsToldAtTheShutdown(t *testing.T) {
	s := newStage(t, createDefaultConfig().(*Config))
	s.raise()
	s.consume(gauge(emit.ReplicaVariantChanges, "a", 30, 0))
	s.consume(gauge(emit.ReplicaVariantChanges, "a", 60, 1))
	assert.Empty(t, s.records())
	s.shutdown()
	s.shutdown()
	assert.Equal(t, []string{"Replica a changed its variant."}, s.bodies())
}

// TestOthersAreNotRead: an engine's own metrics, our canonical ones, values that
// are no numbers, and types that we do not write.
func TestOthersAreNotRead(t *testing.T) {
	s := newStageOf(t, func(*Config) {})
	s.consume(gauge("vllm:num_requests_waiting", "a", 30, 1))
	s.consume(gauge("llmfleet.engine.waiting", "a", 30, 1))
	s.consume(gauge(emit.ReplicaOutlier, "a", 30, math.NaN()))
	s.consume(gauge(emit.ReplicaOutlier, "a", 30, math.Inf(1)))
	histogram := gauge(emit.ReplicaOutlier, "a", 30, 1)
	histogram.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetEmptyHistogram().DataPoints().AppendEmpty()
	s.consume(histogram)
	s.consume(endOf(gauge(emit.ReplicaOutlier, "a", 30, 0)))
	s.consume(pmetric.NewMetrics())
	assert.False(t, s.connector.Capabilities().MutatesData)
	assert.Empty(t, s.records())
	assert.Zero(t, s.counts()[`series{followed="flags"}`])
}

// TestWholeNumbers are values, too: a flag may come through a component that
// writes it so.
func TestWholeNumbers(t *testing.T) {
	s := newStageOf(t, func(*Config) {})
	md := gauge(emit.ReplicaOutlier, "a", 30, 0)
	md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).SetIntValue(1)
	s.consume(md)
	assert.Len(t, s.records(), 1)
}

// TestConcurrentCallsTellOnce: pipelines that bring the same points at once.
func TestConcurrentCallsTellOnce(t *testing.T) {
	sink := new(consumertest.LogsSink)
	s := newStage(t, createDefaultConfig().(*Config))
	c, err := NewFactory().CreateMetricsToLogs(t.Context(), s.settings, s.config, sink)
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), s.host))
	const replicas, pipelines = 50, 4
	var all sync.WaitGroup
	for range pipelines {
		all.Go(func() {
			for i := range replicas {
				assert.NoError(t, c.ConsumeMetrics(t.Context(), gauge(emit.ReplicaStuck, fmt.Sprint(i), 30, 1)))
			}
		})
	}
	all.Wait()
	require.NoError(t, c.Shutdown(t.Context()))
	assert.Equal(t, replicas, sink.LogRecordCount())
}
