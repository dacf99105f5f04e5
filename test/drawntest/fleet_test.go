// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package drawntest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// counted are the requests, and the observations of each latency, on a page.
func counted(page pmetric.Metrics) (requests, failures float64, observations map[string]uint64) {
	observations = make(map[string]uint64)
	for _, m := range page.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		if m.Type() == pmetric.MetricTypeHistogram {
			point := m.Histogram().DataPoints().At(0)
			for _, c := range point.BucketCounts().All() {
				observations[m.Name()] += c
			}
			if point.Count() != observations[m.Name()] {
				observations[m.Name()] = 0
			}
			continue
		}
		requests += m.Sum().DataPoints().At(0).DoubleValue() + m.Sum().DataPoints().At(1).DoubleValue()
		failures += m.Sum().DataPoints().At(1).DoubleValue()
	}
	return requests, failures, observations
}

// TestPageCountsOn: every request is on the page once, in each latency and in its outcome, and stays there.
func TestPageCountsOn(t *testing.T) {
	plan := Plan(2, 100, 0.05)
	plan.ErrorRatio = 0.5
	fleet, err := New(plan, 1)
	require.NoError(t, err)
	page := Page()
	var before float64
	for range 5 {
		fleet.Next()
		fleet.Tell(1, page)
		requests, failures, observations := counted(page)
		assert.Greater(t, requests, before)
		assert.InDelta(t, requests/2, failures, requests/4)
		assert.Equal(t, map[string]uint64{TTFT: uint64(requests), ITL: uint64(requests)}, observations)
		before = requests
	}
	assert.InDelta(t, 5*100, before, 5*5*10, "five panes, within five standard deviations")
}
