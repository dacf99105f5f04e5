// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// The race detector makes pools forget, so that they allocate.
//go:build !race

package canarydeltaprocessor

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

// steadyPage has one of each kind of series that are read of a vLLM engine, and
// what a judge of answers says.
const steadyPage = `
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{model_name="m",le="0.1"} 1
vllm:time_to_first_token_seconds_bucket{model_name="m",le="0.2"} 5
vllm:time_to_first_token_seconds_bucket{model_name="m",le="+Inf"} 6
vllm:time_to_first_token_seconds_sum{model_name="m"} 1
vllm:time_to_first_token_seconds_count{model_name="m"} 6
# TYPE vllm:request_prompt_tokens histogram
vllm:request_prompt_tokens_bucket{model_name="m",le="100"} 1
vllm:request_prompt_tokens_bucket{model_name="m",le="+Inf"} 6
vllm:request_prompt_tokens_sum{model_name="m"} 900
vllm:request_prompt_tokens_count{model_name="m"} 6
# TYPE vllm:request_success_total counter
vllm:request_success_total{model_name="m",finished_reason="stop"} 5
vllm:request_success_total{model_name="m",finished_reason="error"} 1
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{model_name="m"} 900
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{model_name="m"} 300
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{model_name="m"} 4711
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{model_name="m"} 3
# TYPE process_start_time_seconds gauge
process_start_time_seconds 9.466848e+08
# TYPE answer_score histogram
answer_score_bucket{model_name="m",track="canary",le="0.5"} 1
answer_score_bucket{model_name="m",track="canary",le="+Inf"} 6
answer_score_sum{model_name="m",track="canary"} 4
answer_score_count{model_name="m",track="canary"} 6
# TYPE toxicity_score gauge
toxicity_score{model_name="m",track="canary"} 0.5
`

// TestSteadyConsumeAllocatesNothing feeds one page again and again, each time
// later and with more counted, and read for both inputs.
func TestSteadyConsumeAllocatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error { return nil })
		require.NoError(t, err)
		config := anyConfig()
		config.Canary.Match = map[string]string{"track": "canary"}
		p := subject.Start(t, zap.NewNop(), config, next)
		const runs = 100
		pages := make([]pmetric.Metrics, 0, runs+2)
		steady := scenariotest.Targets{}.Scrape(&scenariotest.Page{
			Target: map[string]string{"pod": "a", "k8s.pod.label.track": "canary"}, Lines: scenariotest.Lines(t, steadyPage, 1)[0],
		}, time.Now())
		for range cap(pages) {
			grow(steady)
			page := pmetric.NewMetrics()
			steady.CopyTo(page)
			pages = append(pages, page)
		}
		consume := func() {
			if err := p.ConsumeMetrics(context.Background(), pages[0]); err != nil {
				panic(err)
			}
			pages = pages[1:]
		}
		consume()
		assert.Zero(t, testing.AllocsPerRun(runs, consume))
	})
}

// grow makes a page what it is a millisecond and an observation later.
func grow(md pmetric.Metrics) {
	const later = pcommon.Timestamp(time.Millisecond)
	for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		switch m.Type() {
		case pmetric.MetricTypeGauge:
			dp := m.Gauge().DataPoints().At(0)
			dp.SetTimestamp(dp.Timestamp() + later)
			if m.Name() == "toxicity_score" {
				dp.SetDoubleValue(1.5 - dp.DoubleValue()) // from 0.5 to 1, and back
			}
		case pmetric.MetricTypeSum:
			for _, dp := range m.Sum().DataPoints().All() {
				dp.SetTimestamp(dp.Timestamp() + later)
				dp.SetDoubleValue(dp.DoubleValue() + 1)
			}
		case pmetric.MetricTypeHistogram:
			dp := m.Histogram().DataPoints().At(0)
			dp.SetTimestamp(dp.Timestamp() + later)
			dp.BucketCounts().SetAt(0, dp.BucketCounts().At(0)+1)
			dp.SetCount(dp.Count() + 1)
		}
	}
}
