// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// The race detector makes pools forget, so that they allocate.
//go:build !race

package fleetoutlierprocessor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// steadyPage has all that is read of a vLLM engine by default, twice by rank,
// and things that are not read.
const steadyPage = `
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{model_name="m",engine="0",le="0.1"} 1
vllm:time_to_first_token_seconds_bucket{model_name="m",engine="0",le="0.2"} 5
vllm:time_to_first_token_seconds_bucket{model_name="m",engine="0",le="+Inf"} 6
vllm:time_to_first_token_seconds_sum{model_name="m",engine="0"} 1
vllm:time_to_first_token_seconds_count{model_name="m",engine="0"} 6
vllm:time_to_first_token_seconds_bucket{model_name="m",engine="1",le="0.1"} 1
vllm:time_to_first_token_seconds_bucket{model_name="m",engine="1",le="0.2"} 5
vllm:time_to_first_token_seconds_bucket{model_name="m",engine="1",le="+Inf"} 6
vllm:time_to_first_token_seconds_sum{model_name="m",engine="1"} 1
vllm:time_to_first_token_seconds_count{model_name="m",engine="1"} 6
# TYPE vllm:time_to_first_token_seconds_created gauge
vllm:time_to_first_token_seconds_created{model_name="m",engine="0"} 1.7537953e+09
# TYPE vllm:inter_token_latency_seconds histogram
vllm:inter_token_latency_seconds_bucket{model_name="m",engine="0",le="0.01"} 1
vllm:inter_token_latency_seconds_bucket{model_name="m",engine="0",le="0.02"} 5
vllm:inter_token_latency_seconds_bucket{model_name="m",engine="0",le="+Inf"} 6
vllm:inter_token_latency_seconds_sum{model_name="m",engine="0"} 0.1
vllm:inter_token_latency_seconds_count{model_name="m",engine="0"} 6
# TYPE vllm:time_per_output_token_seconds histogram
vllm:time_per_output_token_seconds_sum{model_name="m",engine="0"} 0.1
vllm:time_per_output_token_seconds_count{model_name="m",engine="0"} 6
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{model_name="m",engine="0"} 3
vllm:num_requests_waiting{model_name="",engine="1"} 3
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="m",engine="0"} 8
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{model_name="m",engine="0"} 0.5
vllm:kv_cache_usage_perc{model_name="m",engine="1"} 1.7
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{model_name="m",engine="0"} 4711
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.7537953e+09
`

// TestSteadyConsumeAllocatesNothing feeds one page again and again, each time
// later and with more counted.
func TestSteadyConsumeAllocatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error { return nil })
		require.NoError(t, err)
		p := subject.Start(t, zap.NewNop(), subject.Defaults(), next)
		steady := scenariotest.Targets{}.Scrape(&scenariotest.Page{
			Target: map[string]string{"pod": "a"}, Lines: scenariotest.Lines(t, steadyPage, 1)[0],
		}, time.Now())
		consume := func() {
			grow(steady)
			if err := p.ConsumeMetrics(context.Background(), steady); err != nil {
				panic(err)
			}
		}
		consume()
		assert.Zero(t, testing.AllocsPerRun(1000, consume))
	})
}

// TestSteadyExponentialConsumeAllocatesNothing does the same with buckets by rule.
func TestSteadyExponentialConsumeAllocatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error { return nil })
		require.NoError(t, err)
		p := subject.Start(t, zap.NewNop(), subject.Defaults(), next)
		steady := show(func(n uint64, m pmetric.Metric) { exponential(m, 3, -30, n, 0, 3*n, 2*n) }, "a", 1)
		consume := func() {
			grow(steady)
			if err := p.ConsumeMetrics(context.Background(), steady); err != nil {
				panic(err)
			}
		}
		consume()
		assert.Zero(t, testing.AllocsPerRun(1000, consume))
	})
}

// grow makes a page what it is a millisecond and an observation later.
func grow(md pmetric.Metrics) {
	const later = pcommon.Timestamp(time.Millisecond)
	metrics := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	for i := range metrics.Len() {
		switch m := metrics.At(i); m.Type() {
		case pmetric.MetricTypeGauge:
			for j := range m.Gauge().DataPoints().Len() {
				dp := m.Gauge().DataPoints().At(j)
				dp.SetTimestamp(dp.Timestamp() + later)
			}
		case pmetric.MetricTypeHistogram:
			for j := range m.Histogram().DataPoints().Len() {
				dp := m.Histogram().DataPoints().At(j)
				dp.SetTimestamp(dp.Timestamp() + later)
				dp.BucketCounts().SetAt(0, dp.BucketCounts().At(0)+1)
				dp.SetCount(dp.Count() + 1)
			}
		case pmetric.MetricTypeExponentialHistogram:
			for j := range m.ExponentialHistogram().DataPoints().Len() {
				dp := m.ExponentialHistogram().DataPoints().At(j)
				dp.SetTimestamp(dp.Timestamp() + later)
				dp.Positive().BucketCounts().SetAt(0, dp.Positive().BucketCounts().At(0)+1)
				dp.SetCount(dp.Count() + 1)
			}
		}
	}
}
