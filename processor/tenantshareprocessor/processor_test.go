// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantshareprocessor

import (
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// engine is a small page of a vLLM engine that makes 100 steps a second, each in
// 20 ms.
func engine(replica string, at time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", replica)
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("vllm:inter_token_latency_seconds")
	m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	dp := m.Histogram().DataPoints().AppendEmpty()
	dp.SetTimestamp(pcommon.NewTimestampFromTime(at))
	dp.Attributes().PutStr("model_name", "m")
	steps := uint64(100 * at.Sub(scenariotest.Epoch).Seconds())
	dp.SetCount(steps)
	dp.SetSum(0.02 * float64(steps))
	return md
}

// TestIgnoredPointsAreNamed looks for log lines that name one of the points that
// were ignored for a reason, not all of them.
func TestIgnoredPointsAreNamed(t *testing.T) {
	subject.TestIgnored(t, func(at time.Time) pmetric.Metrics {
		broken := engine("gpu-1:8000", at)
		histogram := broken.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Histogram().DataPoints().At(0)
		histogram.ExplicitBounds().FromRaw([]float64{2, 1})
		histogram.BucketCounts().FromRaw([]uint64{0, 0, 0})
		return broken
	}, map[string]any{
		"reason": "bad_buckets", "metric": "vllm:inter_token_latency_seconds", "of": "gpu-1:8000",
	})
}
