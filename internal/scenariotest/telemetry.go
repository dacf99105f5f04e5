// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package scenariotest

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Counts is what a component tells of itself, by series.
type Counts map[string]float64

// Telemetry is what a component tells of itself, its own prefix left out.
func Telemetry(t *testing.T, telemetry *componenttest.Telemetry, prefix string) Counts {
	t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(t, telemetry.Reader.Collect(t.Context(), &rm))
	counts := Counts{}
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			var points []metricdata.DataPoint[int64]
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				points = data.DataPoints
			case metricdata.Gauge[int64]:
				points = data.DataPoints
			}
			for _, p := range points {
				labels := map[string]string{}
				for _, kv := range p.Attributes.ToSlice() {
					labels[string(kv.Key)] = kv.Value.AsString()
				}
				counts[SeriesName(strings.TrimPrefix(m.Name, prefix), labels)] = float64(p.Value)
			}
		}
	}
	return counts
}

// Total is the sum of a metric over its series that have some labels, each written
// as key="value".
func (c Counts) Total(metric string, labels ...string) (total float64) {
	for series, n := range c {
		name, of, _ := strings.Cut(series, "{")
		without := func(label string) bool { return !strings.Contains(of, label) }
		if name == metric && !slices.ContainsFunc(labels, without) {
			total += n
		}
	}
	return total
}

// CheckTelemetry compares counts with what is expected of them. Series of the
// exhaustive metric that are not listed must not be there.
func CheckTelemetry(t T, expected []Figure, counts Counts, exhaustive string) {
	t.Helper()
	listed := map[string]bool{}
	for _, f := range expected {
		series := SeriesName(f.Name, f.Labels)
		listed[series] = true
		assert.InDelta(t, f.Value, counts[series], 0, series)
	}
	for series, n := range counts {
		assert.True(t, listed[series] || !strings.HasPrefix(series, exhaustive+"{"), "unexpected %s %v", series, n)
	}
}
