// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetidentityprocessor

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// engine is a small page of a vLLM engine: one gauge.
func engine(uid string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("k8s.pod.uid", uid)
	rm.Resource().Attributes().PutStr("k8s.pod.name", "pod-"+uid)
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("vllm:num_requests_waiting")
	dp := m.SetEmptyGauge().DataPoints().AppendEmpty()
	dp.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	dp.Attributes().PutStr("model_name", "m")
	dp.SetDoubleValue(3)
	return md
}

// spanOf is a span without attributes of a pod.
func spanOf(uid string) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("k8s.pod.uid", uid)
	rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	return td
}

func logOf(uid string) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("k8s.pod.uid", uid)
	rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	return ld
}

// pipeline is one metrics pipeline of a configuration.
type pipeline struct {
	processor.Metrics
	after *consumertest.MetricsSink
}

func newPipeline(t *testing.T, name string, config *Config) pipeline {
	t.Helper()
	settings := processortest.NewNopSettings(NewFactory().Type())
	settings.ID = component.NewIDWithName(NewFactory().Type(), name)
	sink := new(consumertest.MetricsSink)
	p, err := NewFactory().CreateMetrics(t.Context(), settings, config, sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	return pipeline{p, sink}
}

func (p pipeline) shutdown(t *testing.T) {
	t.Helper()
	require.NoError(t, p.Shutdown(context.Background()))
}

// derivedPoints are the points of ours that came out of a pipeline, by series.
func (p pipeline) derivedPoints() map[string][]time.Time {
	told := map[string][]time.Time{}
	for _, md := range p.after.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			if !derived(rm) {
				continue
			}
			for _, point := range pointsOf(rm) {
				told[point.Series()] = append(told[point.Series()], ownTime(rm))
			}
		}
	}
	return told
}

const changesOfU1 = `llmfleet.replica.variant_changes{engine_name="vllm",model_name="m",pod="pod-u1",replica="u1"}`

// TestPipelinesShareWhatIsKnown: two metrics pipelines and one of traces of one
// configuration know the same, and tell it once an interval: down the first of
// them, and down the other when that is gone. What is known last is told before
// the last one stops, although the traces go on.
func TestPipelinesShareWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, config := time.Now(), createDefaultConfig().(*Config)
		first, second := newPipeline(t, "", config), newPipeline(t, "", config)
		spans := new(consumertest.TracesSink)
		traces, err := NewFactory().CreateTraces(t.Context(), processortest.NewNopSettings(NewFactory().Type()), config, spans)
		require.NoError(t, err)
		require.NoError(t, traces.Start(t.Context(), componenttest.NewNopHost()))

		require.NoError(t, second.ConsumeMetrics(t.Context(), engine("u1")))
		require.NoError(t, traces.ConsumeTraces(t.Context(), spanOf("u1")))
		span := spans.AllTraces()[0].ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
		assert.Equal(t, map[string]any{"model_name": "m", "engine_name": "vllm", "replica": "u1"}, span.Attributes().AsRaw())

		time.Sleep(45 * time.Second)
		synctest.Wait()
		assert.Equal(t, []time.Time{began.Add(30 * time.Second).UTC()}, first.derivedPoints()[changesOfU1])
		assert.Empty(t, second.derivedPoints())

		first.shutdown(t)
		time.Sleep(30 * time.Second) // until 75s
		synctest.Wait()
		assert.Len(t, first.derivedPoints()[changesOfU1], 1)
		assert.Equal(t, []time.Time{began.Add(60 * time.Second).UTC()}, second.derivedPoints()[changesOfU1])

		// The clock is at 90s, and so is the evaluation that is due.
		time.Sleep(15 * time.Second)
		second.shutdown(t)
		assert.Equal(t, began.Add(90*time.Second).UTC(), second.derivedPoints()[changesOfU1][1])
		told := len(second.after.AllMetrics())
		require.NoError(t, traces.ConsumeTraces(t.Context(), spanOf("u1")))
		time.Sleep(time.Minute)
		assert.Len(t, second.after.AllMetrics(), told, "nothing is told after the shutdown")
		require.NoError(t, traces.Shutdown(t.Context()))
		assert.Zero(t, cores.Len(), "nothing is kept")
	})
}

// TestInstancesApart: two names, two configurations: what one knows the other
// does not, and each tells as a writer of its own.
func TestInstancesApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := newPipeline(t, "one", createDefaultConfig().(*Config))
		other := newPipeline(t, "other", createDefaultConfig().(*Config))
		require.NoError(t, one.ConsumeMetrics(t.Context(), engine("u1")))
		time.Sleep(31 * time.Second)
		synctest.Wait()
		assert.Len(t, one.derivedPoints()[changesOfU1], 1)
		assert.Empty(t, other.derivedPoints()[changesOfU1])
		writers := map[string]bool{}
		for _, p := range []pipeline{one, other} {
			for _, md := range p.after.AllMetrics() {
				if rm := md.ResourceMetrics().At(0); derived(rm) {
					resource := rm.Resource().Attributes()
					writer, _ := resource.Get("service.instance.id")
					writers[writer.Str()] = true
				}
			}
			p.shutdown(t)
		}
		assert.Len(t, writers, 2)
	})
}

// TestShutdown is safe without a start, twice, and before any input, and a
// processor made afterwards of the same configuration works.
func TestShutdown(t *testing.T) {
	config, next := createDefaultConfig().(*Config), new(consumertest.MetricsSink)
	for _, start := range []bool{false, true} {
		p, err := NewFactory().CreateMetrics(t.Context(), processortest.NewNopSettings(NewFactory().Type()), config, next)
		require.NoError(t, err)
		if start {
			require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
		}
		require.NoError(t, p.Shutdown(t.Context()))
		require.NoError(t, p.Shutdown(t.Context()))
		assert.Empty(t, next.AllMetrics())
		assert.Zero(t, cores.Len(), "nothing is kept")
	}
	p := newPipeline(t, "", config)
	require.NoError(t, p.ConsumeMetrics(t.Context(), engine("u1")))
	replica, ok := p.after.AllMetrics()[0].ResourceMetrics().At(0).Resource().Attributes().Get("replica")
	require.True(t, ok)
	assert.Equal(t, "u1", replica.Str())
	p.shutdown(t)
}

// TestTracesAlone: without a metrics pipeline there is nowhere to tell anything,
// and nothing fails.
func TestTracesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config, spans := createDefaultConfig().(*Config), new(consumertest.TracesSink)
		p, err := NewFactory().CreateTraces(t.Context(), processortest.NewNopSettings(NewFactory().Type()), config, spans)
		require.NoError(t, err)
		require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
		td := spanOf("u1")
		td.ResourceSpans().At(0).Resource().Attributes().PutStr("k8s.pod.labels.llm-d.ai/role", "decode")
		require.NoError(t, p.ConsumeTraces(t.Context(), td))
		time.Sleep(time.Minute)
		require.NoError(t, p.Shutdown(t.Context()))
		role, _ := spans.AllTraces()[0].ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().Get("role")
		assert.Equal(t, "decode", role.Str())
	})
}

// TestRefusedOutput has a next consumer that refuses what is derived: input goes
// on, the refusal is logged, and the next evaluation is made.
func TestRefusedOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
			if derived(md.ResourceMetrics().At(0)) {
				return errors.New("memory is short")
			}
			return nil
		})
		require.NoError(t, err)
		core, logs := observer.New(zap.ErrorLevel)
		settings := processortest.NewNopSettings(NewFactory().Type())
		settings.Logger = zap.New(core)
		p, err := NewFactory().CreateMetrics(t.Context(), settings, createDefaultConfig(), next)
		require.NoError(t, err)
		require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
		time.Sleep(61 * time.Second)
		require.NoError(t, p.ConsumeMetrics(t.Context(), engine("u1")))
		require.NoError(t, p.Shutdown(t.Context()))
		require.Equal(t, 2, logs.Len(), "of the evaluations at 30s and 60s")
		assert.Contains(t, logs.All()[0].ContextMap()["error"], "memory is short")
	})
}

// TestUnidentifiedIsNamed looks for a log line that names one of those that could
// not be identified, and for another one 10 minutes later.
func TestUnidentifiedIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		settings := processortest.NewNopSettings(NewFactory().Type())
		settings.Logger = zap.New(core)
		p, err := NewFactory().CreateTraces(t.Context(), settings, createDefaultConfig(), consumertest.NewNop())
		require.NoError(t, err)
		require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
		const minutes = 11
		for range minutes {
			td := spanOf("gateway")
			td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().PutStr("upstream.address", "10.9.9.9:80")
			require.NoError(t, p.ConsumeTraces(t.Context(), td))
			time.Sleep(time.Minute)
		}
		require.NoError(t, p.Shutdown(t.Context()))
		require.Equal(t, 2, logs.Len())
		line := logs.All()[0].ContextMap()
		assert.Equal(t, "unknown_endpoint", line["reason"])
		assert.Equal(t, "10.9.9.9:80", line["what"])
		assert.EqualValues(t, 1, line["so_far"])
		assert.EqualValues(t, minutes, logs.All()[1].ContextMap()["so_far"])
	})
}

// TestAllSignalsAtOnce feeds metrics, spans and logs from several goroutines
// while evaluations are made, for the race detector, and loses none.
func TestAllSignalsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := createDefaultConfig().(*Config)
		config.Interval, config.ForgetAfter, config.EmitCanonical = time.Second, 3*time.Second, true
		settings := processortest.NewNopSettings(NewFactory().Type())
		metrics := newPipeline(t, "", config)
		spans, records := new(consumertest.TracesSink), new(consumertest.LogsSink)
		traces, err := NewFactory().CreateTraces(t.Context(), settings, config, spans)
		require.NoError(t, err)
		logs, err := NewFactory().CreateLogs(t.Context(), settings, config, records)
		require.NoError(t, err)
		require.NoError(t, traces.Start(t.Context(), componenttest.NewNopHost()))
		require.NoError(t, logs.Start(t.Context(), componenttest.NewNopHost()))

		const feeders, rounds = 4, 100
		done := make(chan struct{})
		for f := range feeders {
			go func() {
				defer func() { done <- struct{}{} }()
				for round := range rounds {
					// A pod lives for 20 rounds; one of two is everybody's.
					uid := fmt.Sprintf("u%d-%d", (f%2)*f, round/20)
					assert.NoError(t, metrics.ConsumeMetrics(t.Context(), engine(uid)))
					assert.NoError(t, traces.ConsumeTraces(t.Context(), spanOf(uid)))
					assert.NoError(t, logs.ConsumeLogs(t.Context(), logOf(uid)))
					time.Sleep(100 * time.Millisecond)
				}
			}()
		}
		for range feeders {
			<-done
		}
		metrics.shutdown(t)
		require.NoError(t, traces.Shutdown(t.Context()))
		require.NoError(t, logs.Shutdown(t.Context()))
		assert.Equal(t, feeders*rounds, spans.SpanCount())
		assert.Equal(t, feeders*rounds, records.LogRecordCount())
		pages, canonical := 0, 0
		for _, md := range metrics.after.AllMetrics() {
			rm := md.ResourceMetrics().At(0)
			if derived(rm) {
				continue
			}
			pages++
			for _, p := range pointsOf(rm) {
				assert.NotEmpty(t, p.Labels["replica"], p.Series())
				if p.Name == "llmfleet.engine.waiting" {
					canonical++
				}
			}
		}
		assert.Equal(t, feeders*rounds, pages)
		assert.Equal(t, feeders*rounds, canonical)
	})
}
