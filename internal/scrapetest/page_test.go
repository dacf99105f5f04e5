// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package scrapetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

var at = time.Unix(1_767_268_800, 0).UTC()

func metrics(t *testing.T, page string) map[string]pmetric.Metric {
	t.Helper()
	md, err := Metrics(page, Target{Instance: "10.0.0.1:8000", At: at})
	require.NoError(t, err)
	require.Equal(t, 1, md.ResourceMetrics().Len())
	rm := md.ResourceMetrics().At(0)
	assert.Equal(t, map[string]any{"service.instance.id": "10.0.0.1:8000"}, rm.Resource().Attributes().AsRaw())
	all := make(map[string]pmetric.Metric)
	for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
		all[m.Name()] = m
	}
	return all
}

func TestText(t *testing.T) {
	page := metrics(t, `# a comment
# HELP vllm:done_total Requests: finished.
# TYPE vllm:done_total counter
vllm:done_total{why="stop",lane=""} 7.0
vllm:done_total{why="length"} 3.59e+010
# TYPE queue gauge
queue -1
untyped 5
# TYPE ttft histogram
ttft_bucket{le="0.5",m="x"} 2
ttft_bucket{le="1.0",m="x"} 2
ttft_bucket{le="+Inf",m="x"} 9
ttft_sum{m="x"} 12.5
ttft_count{m="x"} 9
# TYPE size summary
size_sum 10
size_count 4
`)
	require.Len(t, page, 5)

	done := page["vllm:done_total"].Sum()
	assert.True(t, done.IsMonotonic())
	assert.Equal(t, pmetric.AggregationTemporalityCumulative, done.AggregationTemporality())
	assert.Equal(t, "Requests: finished.", page["vllm:done_total"].Description())
	assert.Equal(t, map[string]any{"why": "stop"}, done.DataPoints().At(0).Attributes().AsRaw())
	assert.Equal(t, 7.0, done.DataPoints().At(0).DoubleValue())
	assert.Equal(t, at, done.DataPoints().At(0).Timestamp().AsTime())
	assert.Equal(t, 3.59e10, done.DataPoints().At(1).DoubleValue())

	assert.Equal(t, -1.0, page["queue"].Gauge().DataPoints().At(0).DoubleValue())
	assert.Equal(t, 5.0, page["untyped"].Gauge().DataPoints().At(0).DoubleValue())

	assert.Equal(t, pmetric.AggregationTemporalityCumulative, page["ttft"].Histogram().AggregationTemporality())
	ttft := page["ttft"].Histogram().DataPoints().At(0)
	assert.Equal(t, []float64{0.5, 1}, ttft.ExplicitBounds().AsRaw())
	assert.Equal(t, []uint64{2, 0, 7}, ttft.BucketCounts().AsRaw())
	assert.Equal(t, uint64(9), ttft.Count())
	assert.Equal(t, 12.5, ttft.Sum())
	assert.Equal(t, map[string]any{"m": "x"}, ttft.Attributes().AsRaw())
	assert.Equal(t, at, ttft.Timestamp().AsTime())

	assert.Equal(t, uint64(4), page["size"].Summary().DataPoints().At(0).Count())
}

// TestOpenMetrics declares counters without _total; the metric is called as its
// samples are.
func TestOpenMetrics(t *testing.T) {
	page := metrics(t, "# TYPE vllm:prompt_tokens counter\n# HELP vllm:prompt_tokens Tokens.\nvllm:prompt_tokens_total{m=\"x\"} 12\n# EOF\n")
	require.Len(t, page, 1)
	tokens := page["vllm:prompt_tokens_total"].Sum()
	assert.True(t, tokens.IsMonotonic())
	assert.Equal(t, 12.0, tokens.DataPoints().At(0).DoubleValue())
}

// TestPagesGluedTogether, as documentation does, declare a family twice.
func TestPagesGluedTogether(t *testing.T) {
	one := "# HELP a A.\n# TYPE a gauge\na{i=\"1\"} 1\n"
	page := metrics(t, one+one)
	assert.Equal(t, 2, page["a"].Gauge().DataPoints().Len())
}

func TestNoPage(t *testing.T) {
	_, err := Metrics("not a page {", Target{})
	assert.ErrorContains(t, err, "page: ")
}
