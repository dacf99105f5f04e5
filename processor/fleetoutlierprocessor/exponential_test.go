// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// showing is what one replica shows of its TTFT at its n-th page, one page every
// 10 s from 0 on.
type showing func(n uint64, m pmetric.Metric)

// exponential shows counts of buckets of a scale, from the index first up.
func exponential(m pmetric.Metric, scale, first int32, counts ...uint64) {
	h := m.SetEmptyExponentialHistogram()
	h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	p := h.DataPoints().AppendEmpty()
	p.SetScale(scale)
	p.Positive().SetOffset(first)
	p.Positive().BucketCounts().FromRaw(counts)
	for _, c := range counts {
		p.SetCount(p.Count() + c)
	}
	p.SetSum(0.4 * float64(p.Count()))
}

// explicit shows counts of the buckets up to 1/4 s, 1/2 s, 1 s and above.
func explicit(m pmetric.Metric, counts ...uint64) {
	h := m.SetEmptyHistogram()
	h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	p := h.DataPoints().AppendEmpty()
	p.ExplicitBounds().FromRaw([]float64{0.25, 0.5, 1})
	p.BucketCounts().FromRaw(counts)
	p.SetSum(0.4 * float64(counts[1]))
}

// quick answers 10 requests between two pages, each in (1/4 s, 1/2 s].
func quick(n uint64, m pmetric.Metric) { exponential(m, 0, -2, 10*n) }

// show makes a page.
func show(s showing, replica string, n int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", replica)
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("vllm:time_to_first_token_seconds")
	s(uint64(n), m)
	at := pcommon.NewTimestampFromTime(time.Now())
	if m.Type() == pmetric.MetricTypeHistogram {
		p := m.Histogram().DataPoints().At(0)
		p.SetTimestamp(at)
		p.Attributes().PutStr("model_name", "m")
	} else {
		p := m.ExponentialHistogram().DataPoints().At(0)
		p.SetTimestamp(at)
		p.Attributes().PutStr("model_name", "m")
	}
	return md
}

// tellMedians lets replicas show pages until 30 s, the end of the first full
// window, and returns the newest figures of the 0.5 quantile by metric and
// replica ("" for the fleet), and the telemetry.
func tellMedians(t *testing.T, replicas map[string]showing) (figures map[string]map[string]float64, telemetry scenariotest.Counts) {
	t.Helper()
	figures = map[string]map[string]float64{}
	synctest.Test(t, func(t *testing.T) {
		config := subject.Defaults()
		config.Interval, config.Window = 10*time.Second, 30*time.Second
		config.Quantiles, config.Signals = []float64{0.5}, []string{"ttft"}
		stage := subject.Stage(t, config)
		stage.Raise()
		for n := range 4 {
			scenariotest.Wait(stage.Began.Add(time.Duration(10*n) * time.Second))
			for replica, s := range replicas {
				stage.Consume(show(s, replica, n))
			}
		}
		scenariotest.Wait(stage.Began.Add(config.Window + config.Lateness + time.Second))
		telemetry = stage.Counts()
		stage.Shutdown()
		for _, p := range stage.Told(t).Points() {
			if p.Ended {
				continue
			}
			if figures[p.Name] == nil {
				figures[p.Name] = map[string]float64{}
			}
			figures[p.Name][p.Labels["replica"]] = p.Value
		}
	})
	return figures, telemetry
}

const (
	ofReplica      = "llmfleet.replica.latency"
	ratioOfReplica = "llmfleet.replica.latency_ratio"
	ofFleet        = "llmfleet.fleet.latency"
	spreadOfFleet  = "llmfleet.fleet.latency_spread_ratio"
)

// TestSlowReplicaWithExponentialHistograms: a and b answer in (1/4 s, 1/2 s], c
// takes twice as long. Each has 30 observations in the window, so half of one
// lie in the lower half of its bucket, by logarithm. Of a's peers, b's 30 and
// c's, the median is where they meet. The fleet's median leaves 45 of 90 above
// it, and so 15 of the 60 in the lower bucket.
func TestSlowReplicaWithExponentialHistograms(t *testing.T) {
	figures, telemetry := tellMedians(t, map[string]showing{
		"a": quick, "b": quick,
		"c": func(n uint64, m pmetric.Metric) { exponential(m, 0, -1, 10*n) },
	})
	for replica, want := range map[string]float64{"a": -1.5, "b": -1.5, "c": -0.5} {
		assert.InEpsilon(t, math.Exp2(want), figures[ofReplica][replica], 1e-9)
	}
	for replica, want := range map[string]float64{"a": -0.5, "b": -0.5, "c": 1} {
		assert.InEpsilon(t, math.Exp2(want), figures[ratioOfReplica][replica], 1e-9)
	}
	assert.InEpsilon(t, math.Exp2(-1.25), figures[ofFleet][""], 1e-9)
	assert.InEpsilon(t, math.Exp2(0.75), figures[spreadOfFleet][""], 1e-9)
	assert.InDelta(t, 12, telemetry[`observations{dialect="vllm",signal="ttft"}`], 0)
}

// TestFallingScaleLosesNothing: an SDK puts pairs of buckets together when a
// latency is too far from the others. c had 5 in each half of (1/4 s, 1/2 s]
// between two pages, and shows only their sum from 20 s on.
func TestFallingScaleLosesNothing(t *testing.T) {
	figures, telemetry := tellMedians(t, map[string]showing{
		"a": quick, "b": quick,
		"c": func(n uint64, m pmetric.Metric) {
			if n < 2 {
				exponential(m, 1, -4, 5*n, 5*n)
			} else {
				exponential(m, 0, -20, append(append([]uint64{0}, make([]uint64, 17)...), 10*n)...)
			}
		},
	})
	assert.InDelta(t, 30, figures["llmfleet.replica.observations"]["c"], 0)
	assert.InEpsilon(t, math.Exp2(-1.5), figures[ofReplica]["c"], 1e-9)
	assert.InEpsilon(t, 1, figures[ratioOfReplica]["c"], 1e-9)
	assert.Zero(t, telemetry["resets"])
}

// TestRisingScaleIsARestart: c begins anew at 20 s, with finer buckets. What it
// shows then has all happened since: 10 before the restart, 100 and 20 after.
func TestRisingScaleIsARestart(t *testing.T) {
	figures, telemetry := tellMedians(t, map[string]showing{
		"a": quick, "b": quick,
		"c": func(n uint64, m pmetric.Metric) {
			if n < 2 {
				exponential(m, 0, -2, 10*n)
			} else {
				exponential(m, 1, -4, 0, 100+20*(n-2))
			}
		},
	})
	assert.InDelta(t, 130, figures["llmfleet.replica.observations"]["c"], 0)
	assert.InDelta(t, 1, telemetry["resets"], 0)
}

// TestExponentialAndExplicitAreNotCompared: they share no bounds, not even
// where the numbers are equal. c's own figure stands.
func TestExponentialAndExplicitAreNotCompared(t *testing.T) {
	figures, telemetry := tellMedians(t, map[string]showing{
		"a": quick, "b": quick,
		"c": func(n uint64, m pmetric.Metric) { explicit(m, 0, 10*n, 0, 0) },
	})
	assert.InEpsilon(t, 0.25+0.25*15/30, figures[ofReplica]["c"], 1e-9)
	assert.NotContains(t, figures[ratioOfReplica], "c")
	assert.InEpsilon(t, 1, figures[ratioOfReplica]["a"], 1e-9)
	assert.InEpsilon(t, math.Exp2(-1.5), figures[ofFleet][""], 1e-9)
	assert.InDelta(t, 1, telemetry[`withheld{reason="no_common_bounds"}`], 0)
}

// TestAllInTheZeroBucketIsNoMeasurement: c shows that it answered, and not when.
func TestAllInTheZeroBucketIsNoMeasurement(t *testing.T) {
	figures, telemetry := tellMedians(t, map[string]showing{
		"a": quick, "b": quick,
		"c": func(n uint64, m pmetric.Metric) {
			exponential(m, 0, 0)
			p := m.ExponentialHistogram().DataPoints().At(0)
			p.SetZeroThreshold(0.001)
			p.SetZeroCount(10 * n)
			p.SetCount(10 * n)
		},
	})
	assert.NotContains(t, figures[ofReplica], "c")
	assert.InDelta(t, 30, figures["llmfleet.replica.observations"]["c"], 0)
	assert.NotZero(t, telemetry[`withheld{reason="lowest_bucket"}`])
}
