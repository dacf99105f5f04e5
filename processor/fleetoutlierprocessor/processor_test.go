// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

var componentID = component.NewID(component.MustNewType("fleet_outlier"))

// start makes and starts a processor, and shuts it down when the test ends.
func start(t *testing.T, settings processor.Settings, config *Config, next consumer.Metrics) processor.Metrics {
	t.Helper()
	p, err := NewFactory().CreateMetrics(t.Context(), settings, config, next)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, p.Shutdown(context.Background())) })
	return p
}

// engine is a small page of a vLLM engine: one gauge.
func engine(replica string, at time.Time, waiting float64) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", replica)
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("vllm:num_requests_waiting")
	dp := m.SetEmptyGauge().DataPoints().AppendEmpty()
	dp.SetTimestamp(pcommon.NewTimestampFromTime(at))
	dp.Attributes().PutStr("model_name", "m")
	dp.SetDoubleValue(waiting)
	return md
}

// TestLimitOfReplicas follows 20,000 replicas, the default, and refuses the one
// that is too many, with all that it says.
func TestLimitOfReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := createDefaultConfig().(*Config)
		stage := newStage(t, config)
		stage.raise()
		began, limit := time.Now(), config.MaxReplicas
		require.Equal(t, 20_000, limit)
		for i := range limit {
			require.NoError(t, stage.processor.ConsumeMetrics(t.Context(), engine(fmt.Sprintf("replica-%d", i), began, 1)))
		}
		counts := readTelemetry(t, stage.telemetry)
		assert.InDelta(t, limit, counts["members"], 0)
		assert.Zero(t, counts[`ignored{reason="limit"}`])

		wait(began.Add(20 * time.Second))
		require.NoError(t, stage.processor.ConsumeMetrics(t.Context(), engine("one-too-many", time.Now(), 1)))
		require.NoError(t, stage.processor.ConsumeMetrics(t.Context(), engine("replica-0", time.Now(), 1)))
		counts = readTelemetry(t, stage.telemetry)
		assert.InDelta(t, limit, counts["members"], 0)
		assert.InDelta(t, limit, counts["members_limit"], 0)
		assert.InDelta(t, 1, counts[`ignored{reason="limit"}`], 0)

		wait(began.Add(config.Interval + config.Lateness + time.Second))
		stage.shutdown()
		told := map[string]bool{}
		for _, p := range readDerived(stage.derived) {
			told[p.labels["replica"]] = told[p.labels["replica"]] || p.name == "llmfleet.replica.requests"
		}
		delete(told, "") // what is told of fleets
		replicas, loads := len(told), 0
		for _, load := range told {
			if load {
				loads++
			}
		}
		assert.Equal(t, limit, replicas)
		assert.Equal(t, limit, loads)
		assert.NotContains(t, told, "one-too-many")
	})
}

// TestLimitOfSeries meets one replica that splits into ever more series and
// targets: both are bounded in proportion to max_replicas, by 64 and 4.
func TestLimitOfSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := createDefaultConfig().(*Config)
		config.MaxReplicas = 1
		stage := newStage(t, config)
		stage.raise()
		began := time.Now()
		body := "# TYPE vllm:num_requests_waiting gauge\n"
		for engine := range 65 {
			body += fmt.Sprintf("vllm:num_requests_waiting{model_name=\"m\",engine=\"%d\"} 1\n", engine)
		}
		stage.consume(scenariotest.Targets{}.Scrape(&scenariotest.Page{
			Target: map[string]string{"pod": "a"}, Lines: scenariotest.Lines(t, body, 1)[0],
		}, began))
		counts := readTelemetry(t, stage.telemetry)
		assert.InDelta(t, 64, counts[`observations{dialect="vllm",signal="waiting"}`], 0)
		assert.InDelta(t, 1, counts[`ignored{reason="limit"}`], 0)

		for port := range 5 {
			stage.consume(scenariotest.Targets{}.Scrape(&scenariotest.Page{
				Target: map[string]string{"pod": "a", "instance": fmt.Sprintf("a:%d", port)}, Lines: scenariotest.Lines(t, body, 1)[0][:2],
			}, began))
		}
		// Three more targets are met, each with a series too many; the other two are
		// targets too many.
		counts = readTelemetry(t, stage.telemetry)
		assert.InDelta(t, 1+5, counts[`ignored{reason="limit"}`], 0)
		assert.InDelta(t, 1, counts["members"], 0)
		stage.shutdown()
	})
}

// TestConsumeDoesNotWaitForEvaluation holds an evaluation in its next consumer
// and feeds a page meanwhile.
func TestConsumeDoesNotWaitForEvaluation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := createDefaultConfig().(*Config)
		began := time.Now()
		release := make(chan struct{})
		var mu sync.Mutex
		held, passed := 0, 0
		next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
			if isDerived(md) {
				mu.Lock()
				held++
				mu.Unlock()
				<-release
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			passed++
			return nil
		})
		require.NoError(t, err)
		p := start(t, processortest.NewNopSettings(componentID.Type()), config, next)
		require.NoError(t, p.ConsumeMetrics(t.Context(), engine("a", began, 1)))

		wait(began.Add(config.Interval + config.Lateness))
		mu.Lock()
		require.Equal(t, 1, held, "an evaluation is under way")
		mu.Unlock()
		// In a bubble, a call that waited would be a deadlock, and end the test.
		require.NoError(t, p.ConsumeMetrics(t.Context(), engine("a", time.Now(), 2)))
		require.NoError(t, p.ConsumeMetrics(t.Context(), engine("b", time.Now(), 3)))
		mu.Lock()
		assert.Equal(t, 3, passed)
		mu.Unlock()
		close(release)
	})
}

// TestConsumeWhileEvaluating feeds pages from several goroutines while panes are
// judged, for the race detector, and loses none.
func TestConsumeWhileEvaluating(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := createDefaultConfig().(*Config)
		config.Interval, config.Window, config.Lateness = time.Second, 5*time.Second, time.Second
		stage := newStage(t, config)
		next := new(consumertest.MetricsSink)
		p := start(t, stage.settings, config, next)
		const feeders, pages = 4, 200
		var wg sync.WaitGroup
		for f := range feeders {
			wg.Go(func() {
				for range pages {
					assert.NoError(t, p.ConsumeMetrics(t.Context(), engine(fmt.Sprintf("replica-%d", f), time.Now(), float64(f))))
					time.Sleep(100 * time.Millisecond)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		counts := readTelemetry(t, stage.telemetry)
		assert.InDelta(t, feeders*pages, counts[`observations{dialect="vllm",signal="waiting"}`], 0)
		assert.InDelta(t, feeders, counts["members"], 0)
		assert.Greater(t, next.DataPointCount(), feeders*pages, "input and derived points")
	})
}

// TestBlockedOutput has a next consumer that takes nothing until it is given up
// on: what engines tell meanwhile is read as ever.
func TestBlockedOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := createDefaultConfig().(*Config)
		stage := newStage(t, config)
		var tried atomic.Int64
		next, err := consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error {
			if isDerived(md) {
				<-ctx.Done()
				tried.Add(1)
				return ctx.Err()
			}
			return nil
		})
		require.NoError(t, err)
		p := start(t, stage.settings, config, next)
		const seconds = 300
		for range seconds {
			require.NoError(t, p.ConsumeMetrics(t.Context(), engine("a", time.Now(), 1)))
			time.Sleep(time.Second)
		}
		counts := readTelemetry(t, stage.telemetry)
		assert.InDelta(t, seconds, counts[`observations{dialect="vllm",signal="waiting"}`], 0)
		assert.Zero(t, counts[`ignored{reason="future"}`])
		assert.Greater(t, tried.Load(), int64(5), "each pane's report was tried")
	})
}

// TestRefusedOutput has a next consumer that refuses what is derived: input goes
// on, the refusal is logged, and the next evaluation is made.
func TestRefusedOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := createDefaultConfig().(*Config)
		refused := 0
		next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
			if isDerived(md) {
				refused++
				return errors.New("memory is short")
			}
			return nil
		})
		require.NoError(t, err)
		core, logs := observer.New(zap.ErrorLevel)
		settings := processortest.NewNopSettings(componentID.Type())
		settings.Logger = zap.New(core)
		p := start(t, settings, config, next)
		for range 3 {
			require.NoError(t, p.ConsumeMetrics(t.Context(), engine("a", time.Now(), 1)))
			wait(time.Now().Add(config.Interval))
		}
		assert.Equal(t, refused, logs.Len())
		assert.Equal(t, 3, refused, "of the panes that end at 0s, 30s and 60s")
		assert.Contains(t, logs.All()[0].ContextMap()["error"], "memory is short")
	})
}

// TestIgnoredPointsAreNamed looks for a log line that names one of the points that
// were ignored for a reason, not for all of them, and for another one later.
func TestIgnoredPointsAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := createDefaultConfig().(*Config)
		core, logs := observer.New(zap.WarnLevel)
		settings := processortest.NewNopSettings(componentID.Type())
		settings.Logger = zap.New(core)
		p := start(t, settings, config, consumertest.NewNop())
		const minutes = 21
		for range minutes {
			require.NoError(t, p.ConsumeMetrics(t.Context(), engine("gpu-1:8000", time.Now(), -1)))
			wait(time.Now().Add(time.Minute))
		}
		// One line every 10 minutes: there are 42 evaluations, half of them with a
		// point.
		require.Equal(t, 3, logs.Len())
		line := logs.All()[0].ContextMap()
		assert.Equal(t, "range", line["reason"])
		assert.Equal(t, "vllm:num_requests_waiting", line["metric"])
		assert.Equal(t, "gpu-1:8000", line["replica"])
		assert.EqualValues(t, 1, line["points_so_far"])
		assert.EqualValues(t, minutes, logs.All()[2].ContextMap()["points_so_far"])
	})
}

// TestShutdown is safe without a start, twice, and before any input.
func TestShutdown(t *testing.T) {
	next := new(consumertest.MetricsSink)
	p, err := NewFactory().CreateMetrics(t.Context(), processortest.NewNopSettings(componentID.Type()), createDefaultConfig(), next)
	require.NoError(t, err)
	require.NoError(t, p.Shutdown(t.Context()))
	require.NoError(t, p.Shutdown(t.Context()))

	p, err = NewFactory().CreateMetrics(t.Context(), processortest.NewNopSettings(componentID.Type()), createDefaultConfig(), next)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, p.Shutdown(t.Context()))
	require.NoError(t, p.Shutdown(t.Context()))
	assert.Empty(t, next.AllMetrics())
}
