// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package emit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"pgregory.net/rapid"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// sink takes what a writer sends.
type sink struct {
	batches []pmetric.Metrics
	err     error
}

func (s *sink) next(_ context.Context, md pmetric.Metrics) error {
	s.batches = append(s.batches, md)
	return s.err
}

// point is one point that arrived, in order.
type point struct {
	series string // metric and labels
	value  float64
	ended  bool
	alone  bool // the only point of its Metric
	at     pcommon.Timestamp
}

// take returns what arrived since the last call.
func (s *sink) take() []point {
	var points []point
	for _, md := range s.batches {
		metrics := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
		for _, m := range metrics.All() {
			for _, p := range m.Gauge().DataPoints().All() {
				labels := p.Attributes().AsRaw()
				series := m.Name()
				for _, k := range slices.Sorted(maps.Keys(labels)) {
					series += fmt.Sprintf(" %s=%v", k, labels[k])
				}
				points = append(points, point{
					series: series, value: p.DoubleValue(), ended: p.Flags().NoRecordedValue(),
					alone: m.Gauge().DataPoints().Len() == 1, at: p.Timestamp(),
				})
			}
		}
	}
	s.batches = nil
	return points
}

// seriesOf are those of the points that have a value, or of those that end one.
func seriesOf(points []point, ended bool) []string {
	names := []string{}
	for _, p := range points {
		if p.ended == ended {
			names = append(names, p.series)
		}
	}
	return names
}

func newWriter(s *sink) *Writer {
	return NewWriter(Options{
		Component: fleetOutlier, ScopeName: "scope", Version: "1.2.3", Instance: "host", Next: s.next,
	})
}

func label(name, value string) fleet.Label { return fleet.Label{Name: name, Value: value} }

func TestPointsSayWhatTheyAre(t *testing.T) {
	var s sink
	w := newWriter(&s)
	slot := w.Slot(ReplicaLatency, label("signal", "ttft"), label("quantile", "0.95"))
	w.Begin(1_767_268_800_000_000_000)
	labels := []fleet.Label{label("model_name", "m"), label("replica", "a")}
	w.About(t.Context(), labels)
	labels[0].Value = "borrowed"
	w.Set(slot, 0.25)
	require.NoError(t, w.End(t.Context()))

	require.Len(t, s.batches, 1)
	rm := s.batches[0].ResourceMetrics().At(0)
	assert.Equal(t, map[string]any{"service.name": "llmfleet", "service.instance.id": "host"}, rm.Resource().Attributes().AsRaw())
	scope := rm.ScopeMetrics().At(0)
	assert.Equal(t, "scope", scope.Scope().Name())
	assert.Equal(t, "1.2.3", scope.Scope().Version())
	metric := scope.Metrics().At(0)
	assert.Equal(t, "llmfleet.replica.latency", metric.Name())
	assert.Equal(t, "s", metric.Unit())
	assert.NotEmpty(t, metric.Description())
	require.Equal(t, pmetric.MetricTypeGauge, metric.Type())
	got := metric.Gauge().DataPoints().At(0)
	assert.Equal(t, map[string]any{"model_name": "m", "replica": "a", "signal": "ttft", "quantile": "0.95"}, got.Attributes().AsRaw())
	assert.Equal(t, pcommon.Timestamp(1_767_268_800_000_000_000), got.Timestamp())
	assert.Equal(t, pmetric.NumberDataPointValueTypeDouble, got.ValueType())
	assert.InDelta(t, 0.25, got.DoubleValue(), 0)
	assert.False(t, got.Flags().NoRecordedValue())

	s.batches = nil
	w.Begin(1_767_268_830_000_000_000)
	require.NoError(t, w.End(t.Context()))
	assert.Equal(t, []string{"llmfleet.replica.latency model_name=m quantile=0.95 replica=a signal=ttft"},
		seriesOf(s.take(), true), "the end has the same labels, whatever became of the caller's")
}

// evaluation writes the values of one slot for replicas by name.
func evaluation(t *testing.T, w *Writer, slot Slot, at window.Instant, values map[string]float64) {
	t.Helper()
	w.Begin(at)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		w.About(t.Context(), []fleet.Label{label("replica", name)})
		w.Set(slot, values[name])
	}
	require.NoError(t, w.End(t.Context()))
}

func TestSeriesEndsOnce(t *testing.T) {
	for name, values := range map[string]map[string]float64{
		"replica gone":    {"b": 1},
		"no number":       {"a": math.NaN(), "b": 1},
		"infinite":        {"a": math.Inf(1), "b": 1},
		"infinitely less": {"a": math.Inf(-1), "b": 1},
	} {
		t.Run(name, func(t *testing.T) {
			var s sink
			w := newWriter(&s)
			slot := w.Slot(ReplicaKVUsage)
			evaluation(t, w, slot, 10, map[string]float64{"a": 1, "b": 1})
			assert.Empty(t, seriesOf(s.take(), true))

			evaluation(t, w, slot, 20, values)
			points := s.take()
			assert.Equal(t, []string{"llmfleet.replica.kv_usage_ratio replica=b"}, seriesOf(points, false))
			assert.Equal(t, []string{"llmfleet.replica.kv_usage_ratio replica=a"}, seriesOf(points, true))
			end := points[len(points)-1]
			assert.True(t, end.ended, "after the values")
			assert.True(t, end.alone, "in a Metric of its own")
			assert.Equal(t, pcommon.Timestamp(20), end.at)
			assert.Zero(t, end.value)

			evaluation(t, w, slot, 30, values)
			assert.Empty(t, seriesOf(s.take(), true), "an end is told once")
			evaluation(t, w, slot, 40, map[string]float64{"a": 2, "b": 1})
			assert.Len(t, seriesOf(s.take(), false), 2, "a series may begin again")
		})
	}
}

func TestWithheldFigureEndsItsSeriesAlone(t *testing.T) {
	var s sink
	w := newWriter(&s)
	value, ratio := w.Slot(ReplicaLatency), w.Slot(ReplicaLatencyRatio)
	about := func(at window.Instant, slots ...Slot) []point {
		w.Begin(at)
		w.About(t.Context(), []fleet.Label{label("replica", "a")})
		for _, slot := range slots {
			w.Set(slot, 1)
		}
		require.NoError(t, w.End(t.Context()))
		return s.take()
	}
	about(10, value, ratio)
	points := about(20, value)
	assert.Equal(t, []string{"llmfleet.replica.latency replica=a"}, seriesOf(points, false))
	assert.Equal(t, []string{"llmfleet.replica.latency_ratio replica=a"}, seriesOf(points, true))
	assert.Empty(t, seriesOf(about(30, value), true))
	points = about(40)
	assert.Equal(t, []string{"llmfleet.replica.latency replica=a"}, seriesOf(points, true))
}

func TestNoEndWhileAnotherWritesTheSameLabels(t *testing.T) {
	// A StatefulSet's new pod has its predecessor's labels: first both are
	// there, then one.
	var s sink
	w := newWriter(&s)
	slot := w.Slot(ReplicaKVUsage)
	labels := []fleet.Label{label("replica", "engine-0")}
	write := func(at window.Instant, values ...float64) []point {
		w.Begin(at)
		for _, v := range values {
			w.About(t.Context(), labels)
			w.Set(slot, v)
		}
		require.NoError(t, w.End(t.Context()))
		return s.take()
	}
	write(10, 1)
	both := write(20, math.NaN(), 2)
	require.Len(t, both, 1, "the former tells nothing any more, the new one does")
	assert.InDelta(t, 2, both[0].value, 0)
	both = write(30, 3, 4)
	require.Len(t, both, 1, "one point a series and evaluation")
	assert.InDelta(t, 3, both[0].value, 0)
	assert.Empty(t, seriesOf(write(40, 5), true))
	assert.Len(t, seriesOf(write(50), true), 1)
}

func TestBatchesAreBounded(t *testing.T) {
	const replicas = 1000
	var s sink
	w := newWriter(&s)
	var slots []Slot
	for i := range 13 {
		slots = append(slots, w.Slot(ReplicaLatency, label("signal", fmt.Sprint(i))))
	}
	w.Begin(10)
	for r := range replicas {
		w.About(t.Context(), []fleet.Label{label("replica", fmt.Sprint(r))})
		for _, slot := range slots {
			w.Set(slot, 1)
		}
	}
	require.NoError(t, w.End(t.Context()))
	assertBatches(t, &s, replicas*len(slots))
	points := s.take()
	names := seriesOf(points, false)
	slices.Sort(names)
	assert.Len(t, slices.Compact(names), replicas*len(slots))

	w.Begin(20)
	require.NoError(t, w.End(t.Context()))
	assertBatches(t, &s, replicas*len(slots))
	for _, p := range s.take() {
		require.True(t, p.ended)
		require.True(t, p.alone)
	}
	assert.Empty(t, w.series, "ended series are forgotten")

	w.Begin(30)
	require.NoError(t, w.End(t.Context()))
	assert.Empty(t, s.batches, "nothing to say, nothing sent")
}

// assertBatches asserts that as many points came, in as few batches as their
// limit allows but for what a replica may leave free at the end of each.
func assertBatches(t *testing.T, s *sink, points int) {
	t.Helper()
	sum := 0
	for _, md := range s.batches {
		assert.LessOrEqual(t, md.DataPointCount(), 4096)
		sum += md.DataPointCount()
	}
	assert.Equal(t, points, sum)
	assert.Len(t, s.batches, (points+4095)/4096)
}

func TestErrorsOfAllBatchesAreReturnedOnce(t *testing.T) {
	s := sink{err: errors.New("full")}
	w := newWriter(&s)
	slot := w.Slot(ReplicaKVUsage)
	w.Begin(10)
	for r := range 2 * batchPoints {
		w.About(t.Context(), []fleet.Label{label("replica", fmt.Sprint(r))})
		w.Set(slot, 1)
	}
	err := w.End(t.Context())
	require.ErrorIs(t, err, s.err)
	assert.Equal(t, 2, strings.Count(err.Error(), "full"))

	s.err = nil
	w.Begin(20)
	require.NoError(t, w.End(t.Context()))
}

// TestFlushKeepsTogether: label sets that would be parted by a full batch are not
// after a flush; one that sends nothing is none.
func TestFlushKeepsTogether(t *testing.T) {
	for _, flushes := range []bool{false, true} {
		var s sink
		w := newWriter(&s)
		slot := w.Slot(ReplicaKVUsage)
		write := func(from, to int) {
			for r := range to - from {
				w.About(t.Context(), []fleet.Label{label("replica", fmt.Sprint(from+r))})
				w.Set(slot, 1)
			}
		}
		w.Begin(10)
		w.Flush(t.Context())
		write(0, batchPoints-10)
		if flushes {
			w.Flush(t.Context())
		}
		write(batchPoints, batchPoints+20)
		require.NoError(t, w.End(t.Context()))
		var sizes []int
		for _, md := range s.batches {
			sizes = append(sizes, md.DataPointCount())
		}
		want := []int{batchPoints, 10}
		if flushes {
			want = []int{batchPoints - 10, 20}
		}
		assert.Equal(t, want, sizes)
	}
}

// Whatever is written in whatever order: values are what was set, ends are
// what was there in the evaluation before and is not now.
func TestWriterIsADifferenceOfSets(t *testing.T) {
	numbers := rapid.SampledFrom([]float64{0, 1, -2.5, math.NaN(), math.Inf(1), math.Inf(-1)})
	rapid.Check(t, func(t *rapid.T) {
		var s sink
		w := newWriter(&s)
		slots := []Slot{w.Slot(ReplicaLatency), w.Slot(ReplicaLatencyRatio), w.Slot(ReplicaLoadRatio), w.Slot(FleetCoverage)}
		names := []string{ReplicaLatency, ReplicaLatencyRatio, "", FleetCoverage} // load_ratio is off
		before := map[string]float64{}
		for at := range rapid.IntRange(1, 8).Draw(t, "evaluations") {
			now := map[string]float64{}
			w.Begin(window.Instant(at + 1))
			for range rapid.IntRange(0, 6).Draw(t, "scopes") {
				name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "scope")
				w.About(context.Background(), []fleet.Label{label("replica", name)})
				for i, slot := range slots {
					if !rapid.Bool().Draw(t, "set") {
						continue
					}
					value := numbers.Draw(t, "value")
					w.Set(slot, value)
					key := names[i] + " replica=" + name
					if _, written := now[key]; !written && names[i] != "" && !math.IsNaN(value) && !math.IsInf(value, 0) {
						now[key] = value
					}
				}
			}
			if err := w.End(context.Background()); err != nil {
				t.Fatal(err)
			}
			values, ends := map[string]float64{}, map[string]bool{}
			for _, p := range s.take() {
				_, doubled := values[p.series]
				switch {
				case doubled || ends[p.series]:
					t.Fatalf("two points of %s", p.series)
				case p.ended && p.alone:
					ends[p.series] = true
				case p.ended || len(ends) > 0:
					t.Fatalf("%s: an end in company, or before a value", p.series)
				default:
					values[p.series] = p.value
				}
			}
			if !maps.Equal(values, now) {
				t.Fatalf("values %v, want %v", values, now)
			}
			for key := range before {
				if _, there := now[key]; there == ends[key] {
					t.Fatalf("%s: there %v, ended %v", key, there, ends[key])
				}
				delete(ends, key)
			}
			if len(ends) > 0 {
				t.Fatalf("%v never were", ends)
			}
			before = now
		}
	})
}

func TestUnknownMetricIsAProgrammingError(t *testing.T) {
	assert.Panics(t, func() { newWriter(&sink{}).Slot("llmfleet.replica.latencies") })
}
