// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package scenariotest

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Told is what was derived, by its own time since simulated time began.
type Told map[time.Duration][]Point

// Points are all that was told, in the order of their times.
func (told Told) Points() (points []Point) {
	for _, at := range slices.Sorted(maps.Keys(told)) {
		points = append(points, told[at]...)
	}
	return points
}

// readTold reads derived metrics and holds them against what is true of every
// output: who writes it, that evaluations go forward, that each tells one finite
// value a series, and that a series ends once, alone in its Metric and after all
// values.
func readTold(t T, began time.Time, derived []pmetric.Metrics) Told {
	t.Helper()
	r := tellings{t: t, began: began, here: map[string]bool{}, told: Told{}, alive: map[string]bool{}}
	for _, md := range derived {
		r.read(md)
	}
	return r.told
}

// tellings reads evaluation after evaluation.
type tellings struct {
	t      T
	began  time.Time
	last   time.Duration
	ending bool            // in the evaluation being read, a series has ended
	here   map[string]bool // series of the evaluation being read
	told   Told
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
		ts.last, ts.ending, ts.here = at, false, map[string]bool{}
	}
	p := PointOf(m.Name(), dp)
	series := p.Series()
	assert.False(ts.t, math.IsNaN(p.Value) || math.IsInf(p.Value, 0), "@%s %s %v", at, series, p.Value)
	assert.False(ts.t, ts.here[series], "@%s %s: one point a series", at, series)
	ts.here[series] = true
	for _, forbidden := range []string{"instance", "job", ""} {
		assert.NotContains(ts.t, p.Labels, forbidden, series)
	}
	if p.Ended {
		assert.True(ts.t, ts.alive[series], "@%s %s ends, and never had a value", at, series)
		assert.Equal(ts.t, 1, m.Gauge().DataPoints().Len(), "@%s the end of %s is alone in its Metric", at, series)
		delete(ts.alive, series)
		ts.ending = true
	} else {
		assert.False(ts.t, ts.ending, "@%s %s comes after an end", at, series)
		ts.alive[series] = true
	}
	ts.told[at] = append(ts.told[at], p)
}
