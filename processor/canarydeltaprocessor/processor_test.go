// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canarydeltaprocessor

import (
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// engine is a small page of a vLLM engine of version 2.0 that answers a request a
// second, each in 0.2 s.
func engine(replica string, at time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", replica)
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("vllm:time_to_first_token_seconds")
	m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	dp := m.Histogram().DataPoints().AppendEmpty()
	dp.SetTimestamp(pcommon.NewTimestampFromTime(at))
	dp.Attributes().PutStr("model_name", "m")
	dp.Attributes().PutStr("engine_version", "2.0")
	requests := uint64(at.Sub(scenariotest.Epoch).Seconds())
	dp.ExplicitBounds().FromRaw([]float64{0.1, 0.5})
	dp.BucketCounts().FromRaw([]uint64{0, requests, 0})
	dp.SetCount(requests)
	dp.SetSum(0.2 * float64(requests))
	return md
}

// TestIgnoredPointsAreNamed looks for log lines that name one of the points that
// were ignored for a reason, not all of them.
func TestIgnoredPointsAreNamed(t *testing.T) {
	subject.TestIgnored(t, func(at time.Time) pmetric.Metrics {
		broken := engine("gpu-1:8000", at)
		histogram := broken.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Histogram().DataPoints().At(0)
		histogram.ExplicitBounds().FromRaw([]float64{2, 1})
		return broken
	}, map[string]any{
		"input": "engines", "reason": "bad_buckets", "metric": "vllm:time_to_first_token_seconds", "of": "gpu-1:8000",
	})
}
