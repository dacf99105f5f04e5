// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

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

// waitingEngine is one with one request waiting.
func waitingEngine(replica string, at time.Time) pmetric.Metrics { return engine(replica, at, 1) }

// TestLimitOfReplicas follows 20,000 replicas, the default, and refuses the one
// that is too many, with all that it says.
func TestLimitOfReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := subject.Defaults()
		stage := subject.Stage(t, config)
		stage.Raise()
		began, limit := time.Now(), config.MaxReplicas
		require.Equal(t, 20_000, limit)
		for i := range limit {
			require.NoError(t, stage.Processor.ConsumeMetrics(t.Context(), engine(fmt.Sprintf("replica-%d", i), began, 1)))
		}
		counts := stage.Counts()
		assert.InDelta(t, limit, counts["members"], 0)
		assert.Zero(t, counts[`ignored{reason="limit"}`])

		scenariotest.Wait(began.Add(20 * time.Second))
		require.NoError(t, stage.Processor.ConsumeMetrics(t.Context(), engine("one-too-many", time.Now(), 1)))
		require.NoError(t, stage.Processor.ConsumeMetrics(t.Context(), engine("replica-0", time.Now(), 1)))
		counts = stage.Counts()
		assert.InDelta(t, limit, counts["members"], 0)
		assert.InDelta(t, limit, counts["members_limit"], 0)
		assert.InDelta(t, 1, counts[`ignored{reason="limit"}`], 0)

		scenariotest.Wait(began.Add(config.Interval + config.Lateness + time.Second))
		stage.Shutdown()
		told := map[string]bool{}
		for _, p := range stage.Told(t).Points() {
			told[p.Labels["replica"]] = told[p.Labels["replica"]] || p.Name == "llmfleet.replica.requests"
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
		config := subject.Defaults()
		config.MaxReplicas = 1
		stage := subject.Stage(t, config)
		stage.Raise()
		began := time.Now()
		body := "# TYPE vllm:num_requests_waiting gauge\n"
		for engine := range 65 {
			body += fmt.Sprintf("vllm:num_requests_waiting{model_name=\"m\",engine=\"%d\"} 1\n", engine)
		}
		stage.Consume(scenariotest.Targets{}.Scrape(&scenariotest.Page{
			Target: map[string]string{"pod": "a"}, Lines: scenariotest.Lines(t, body, 1)[0],
		}, began))
		counts := stage.Counts()
		assert.InDelta(t, 64, counts[`observations{dialect="vllm",signal="waiting"}`], 0)
		assert.InDelta(t, 1, counts[`ignored{reason="limit"}`], 0)

		for port := range 5 {
			stage.Consume(scenariotest.Targets{}.Scrape(&scenariotest.Page{
				Target: map[string]string{"pod": "a", "instance": fmt.Sprintf("a:%d", port)}, Lines: scenariotest.Lines(t, body, 1)[0][:2],
			}, began))
		}
		// Three more targets are met, each with a series too many; the other two are
		// targets too many.
		counts = stage.Counts()
		assert.InDelta(t, 1+5, counts[`ignored{reason="limit"}`], 0)
		assert.InDelta(t, 1, counts["members"], 0)
		stage.Shutdown()
	})
}

// TestIgnoredPointsAreNamed looks for log lines that name one of the points that
// were ignored for a reason, not all of them.
func TestIgnoredPointsAreNamed(t *testing.T) {
	subject.TestIgnored(t, func(at time.Time) pmetric.Metrics { return engine("gpu-1:8000", at, -1) }, map[string]any{
		"reason": "range", "metric": "vllm:num_requests_waiting", "replica": "gpu-1:8000",
	})
}
