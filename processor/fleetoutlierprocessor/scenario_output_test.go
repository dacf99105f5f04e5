// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
	"math"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// point is one derived point.
type point struct {
	name   string
	labels map[string]string
	value  float64
	ended  bool
}

func (p *point) series() string { return scenariotest.SeriesName(p.name, p.labels) }

// checkOutput compares all derived metrics with what was expected, and holds
// them against what is true of every output.
func checkOutput(t scenariotest.T, began time.Time, expected []expectation, derived []pmetric.Metrics) {
	t.Helper()
	told := tellings{t: t, began: began, points: map[time.Duration][]point{}, alive: map[string]bool{}}
	for _, md := range derived {
		told.read(md)
	}
	for i := range expected {
		checkExpectation(t, &expected[i], told.points[expected[i].at])
	}
}

// tellings is what was told so far.
type tellings struct {
	t      scenariotest.T
	began  time.Time
	last   time.Duration
	ending bool // in the evaluation being read, a series has ended
	points map[time.Duration][]point
	alive  map[string]bool // series with a value in the evaluation before, or in this one
}

func (ts *tellings) read(md pmetric.Metrics) {
	require.Equal(ts.t, 1, md.ResourceMetrics().Len())
	rm := md.ResourceMetrics().At(0)
	writer, ok := rm.Resource().Attributes().Get("service.instance.id")
	assert.True(ts.t, ok && writer.Str() != "", "derived metrics name their writer")
	require.Equal(ts.t, 1, rm.ScopeMetrics().Len())
	for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
		require.Equal(ts.t, pmetric.MetricTypeGauge, m.Type(), m.Name())
		for _, dp := range m.Gauge().DataPoints().All() {
			ts.readPoint(m, dp)
		}
	}
}

func (ts *tellings) readPoint(m pmetric.Metric, dp pmetric.NumberDataPoint) {
	at := dp.Timestamp().AsTime().Sub(ts.began)
	if at != ts.last {
		assert.Greater(ts.t, at, ts.last, "evaluations go forward")
		ts.last, ts.ending = at, false
	}
	p := readDerivedPoint(m.Name(), dp)
	series := p.series()
	assert.False(ts.t, math.IsNaN(p.value) || math.IsInf(p.value, 0), "@%s %s %v", at, series, p.value)
	for _, other := range ts.points[at] {
		assert.NotEqual(ts.t, other.series(), series, "@%s one point a series", at)
	}
	for _, forbidden := range []string{"instance", "job", ""} {
		assert.NotContains(ts.t, p.labels, forbidden, series)
	}
	if p.ended {
		assert.True(ts.t, ts.alive[series], "@%s %s ends, and never had a value", at, series)
		assert.Equal(ts.t, 1, m.Gauge().DataPoints().Len(), "@%s the end of %s is alone in its Metric", at, series)
		delete(ts.alive, series)
		ts.ending = true
	} else {
		assert.False(ts.t, ts.ending, "@%s %s comes after an end", at, series)
		ts.alive[series] = true
	}
	ts.points[at] = append(ts.points[at], p)
}

// readDerived lists derived points.
func readDerived(derived []pmetric.Metrics) []point {
	var points []point
	for _, md := range derived {
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					for _, dp := range m.Gauge().DataPoints().All() {
						points = append(points, readDerivedPoint(m.Name(), dp))
					}
				}
			}
		}
	}
	return points
}

func readDerivedPoint(name string, dp pmetric.NumberDataPoint) point {
	return point{name: name, labels: textOf(dp.Attributes()), value: dp.DoubleValue(), ended: dp.Flags().NoRecordedValue()}
}

func textOf(m pcommon.Map) map[string]string {
	text := map[string]string{}
	for k, v := range m.All() {
		text[k] = v.AsString()
	}
	return text
}
