// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"pgregory.net/rapid"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// TestAnyPages feeds requests that no engine would send, and some that it would,
// and holds what is told against what is true of every output: checkOutput, and
// checkFigures.
func TestAnyPages(t *testing.T) {
	rapid.Check(t, func(draw *rapid.T) {
		requests := rapid.SliceOfN(rapid.Custom(drawRequest), 10, 60).Draw(draw, "requests")
		failures := &failures{}
		synctest.Test(t, func(t *testing.T) {
			stage := subject.Stage(t, anyConfig())
			stage.Raise()
			so := totals{}
			for _, r := range requests {
				scenariotest.Wait(time.Now().Add(r.after))
				stage.Consume(r.metrics(time.Now(), so))
			}
			scenariotest.Wait(time.Now().Add(stage.Config.Window))
			assert.LessOrEqual(failures, stage.Counts()["members"], float64(2*stage.Config.MaxReplicas),
				"as many departed ones may come back at once")
			stage.Shutdown()
			failures.of(func() {
				checkFigures(failures, stage.Told(failures).Points())
			})
		})
		if len(failures.texts) > 0 {
			draw.Fatalf("%s", strings.Join(failures.texts, "\n"))
		}
	})
}

func anyConfig() *Config {
	config := subject.Defaults()
	config.Interval, config.Window = 10*time.Second, 30*time.Second
	config.MinObservations, config.MaxReplicas = 1, 4
	departedAfter := 40 * time.Second
	config.DepartedAfter = &departedAfter
	config.Alarm.Pane, config.Alarm.Warmup, config.Alarm.ClearAfter = 20*time.Second, 20*time.Second, 20*time.Second
	config.Alarm.FalseAlarmsPerWeek = mostBudget // the easiest to raise
	config.Metrics = emit.Switches{}
	for _, m := range emit.Of(componentType) {
		config.Metrics[m.Name] = emit.Switch{Enabled: true}
	}
	return config
}

// checkFigures holds single points against what they can be.
func checkFigures(t scenariotest.T, points []scenariotest.Point) {
	t.Helper()
	for _, p := range points {
		switch p.Name {
		case "llmfleet.replica.kv_usage_ratio", "llmfleet.fleet.kv_usage_ratio", "llmfleet.fleet.coverage_ratio":
			assert.LessOrEqual(t, p.Value, 1.0, p.Series())
		case "llmfleet.replica.outlier", "llmfleet.replica.stuck", "llmfleet.replica.outlier_cause", "llmfleet.replica.outlier_signal":
			assert.Contains(t, []float64{0, 1}, p.Value, p.Series())
		}
		assert.GreaterOrEqual(t, p.Value, 0.0, p.Series())
		if strings.HasPrefix(p.Name, "llmfleet.replica.") {
			assert.NotEmpty(t, p.Labels["replica"], p.Series())
		}
		assert.NotEmpty(t, p.Labels["model_name"], p.Series())
		assert.NotEmpty(t, p.Labels["engine_name"], p.Series())
	}
}

// failures keeps what checks find, for rapid to make the case smaller.
type failures struct{ texts []string }

type stop struct{}

func (*failures) Helper() {}

func (f *failures) Errorf(format string, args ...any) {
	f.texts = append(f.texts, fmt.Sprintf(format, args...))
}

func (*failures) FailNow() { panic(stop{}) }

// of runs checks, the first fatal one of which ends them.
func (f *failures) of(checks func()) {
	defer func() {
		if r := recover(); r != nil && r != any(stop{}) {
			panic(r)
		}
	}()
	checks()
}

// totals is what each histogram series has counted so far.
type totals map[string][]uint64

// add adds counts, or begins anew.
func (so totals) add(series string, counts []uint64, anew bool) []uint64 {
	if anew || len(so[series]) != len(counts) {
		so[series] = make([]uint64, len(counts))
	}
	for i, c := range counts {
		so[series][i] += c
	}
	return so[series]
}

// request is one resource's metrics, drawn.
type request struct {
	after   time.Duration // the one before
	ahead   time.Duration // of the clock
	target  string
	up      float64 // negative: none
	series  []series
	process float64
}

// series is one point of a request.
type series struct {
	name, model, rank string
	kind              pmetric.MetricType
	unrecorded, delta bool
	anew              bool // a histogram does not go on from its total
	value             float64
	start             time.Duration // before the point
	layout            int
	counts            []uint64
}

var (
	anyNames = []string{
		"vllm:num_requests_waiting", "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:num_queue_reqs",
		"vllm:time_to_first_token_seconds", "ray_vllm_inter_token_latency_seconds", "vllm:time_per_output_token_seconds", "other",
	}
	anyKinds = []pmetric.MetricType{
		pmetric.MetricTypeGauge, pmetric.MetricTypeHistogram, pmetric.MetricTypeSum, pmetric.MetricTypeSummary,
		pmetric.MetricTypeExponentialHistogram, pmetric.MetricTypeEmpty,
	}
	anyValues  = []float64{0, 0.5, 1, 3, 1e9, -1, 1.7, math.NaN(), math.Inf(1), math.Inf(-1), 1e300, math.SmallestNonzeroFloat64}
	anyLayouts = [][]float64{
		{0.1, 0.2, 0.4}, {0.1, 0.4, 0.8}, {0.3}, {}, {0, 0.1}, {0.2, 0.1}, {0.1, 0.1}, {math.NaN()}, {0.1, math.Inf(1)}, {1e-300, 1e300},
	}
)

func drawRequest(t *rapid.T) request {
	seconds := rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -5, 5, 60, -60, -400, 100_000})
	return request{
		after:   time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 5, 5, 5, 5, 5, 5, 10, 10, 10, 31, 31, 400}).Draw(t, "after")) * time.Second,
		ahead:   time.Duration(seconds.Draw(t, "ahead")) * time.Second,
		target:  rapid.SampledFrom([]string{"a", "a", "a", "b", "b", "b", "c", "d", "e", ""}).Draw(t, "target"),
		up:      rapid.SampledFrom([]float64{1, 1, 0, -1, math.NaN()}).Draw(t, "up"),
		process: rapid.SampledFrom([]float64{0, 1e9, 1e9 + 1, math.NaN()}).Draw(t, "process"),
		series:  rapid.SliceOfN(rapid.Custom(drawSeries), 0, 5).Draw(t, "series"),
	}
}

func drawSeries(t *rapid.T) series {
	s := series{
		name:       rapid.SampledFrom(anyNames).Draw(t, "name"),
		model:      rapid.SampledFrom([]string{"m", "m", "m", "m", "m", "m", "m", "n", "", "undefined"}).Draw(t, "model"),
		rank:       rapid.SampledFrom([]string{"", "", "", "", "", "0", "1"}).Draw(t, "rank"),
		unrecorded: rapid.IntRange(0, 9).Draw(t, "unrecorded") == 9,
		delta:      rapid.IntRange(0, 9).Draw(t, "delta") == 9,
		anew:       rapid.IntRange(0, 19).Draw(t, "anew") == 19,
		value:      rapid.SampledFrom(anyValues).Draw(t, "value"),
		start:      time.Duration(rapid.IntRange(-5, 60).Draw(t, "start")) * time.Second,
	}
	s.kind = pmetric.MetricTypeGauge
	if strings.HasSuffix(s.name, "_seconds") {
		s.kind = rapid.SampledFrom([]pmetric.MetricType{
			pmetric.MetricTypeHistogram, pmetric.MetricTypeHistogram, pmetric.MetricTypeHistogram, pmetric.MetricTypeExponentialHistogram,
		}).Draw(t, "buckets")
	}
	if rapid.IntRange(0, 9).Draw(t, "odd") == 9 {
		s.kind = rapid.SampledFrom(anyKinds).Draw(t, "kind")
	}
	if rapid.IntRange(0, 29).Draw(t, "other layout") == 29 {
		s.layout = rapid.IntRange(1, len(anyLayouts)-1).Draw(t, "layout")
	}
	width := len(anyLayouts[s.layout]) + rapid.SampledFrom([]int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 2}).Draw(t, "width")
	count := rapid.Uint64Range(0, 100)
	if rapid.IntRange(0, 29).Draw(t, "absurd") == 29 {
		count = rapid.SampledFrom([]uint64{0, math.MaxUint32, 1 << 62, math.MaxUint64, math.MaxUint64 - 3})
	}
	s.counts = rapid.SliceOfN(count, width, width).Draw(t, "counts")
	return s
}

func (r *request) metrics(now time.Time, so totals) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	if r.target != "" {
		rm.Resource().Attributes().PutStr("service.instance.id", r.target)
	}
	at := pcommon.NewTimestampFromTime(now.Add(r.ahead))
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
	for i := range r.series {
		r.series[i].write(metrics.AppendEmpty(), at, r.target, so)
	}
	if r.up >= 0 {
		scenariotest.AddGauge(metrics, at, "up", r.up)
	}
	if r.process != 0 {
		scenariotest.AddGauge(metrics, at, "process_start_time_seconds", r.process)
	}
	return md
}

func (s *series) write(m pmetric.Metric, at pcommon.Timestamp, target string, so totals) {
	m.SetName(s.name)
	labels := fmt.Sprintf("model_name=%q,engine=%q,ReplicaId=%q", s.model, s.rank, s.rank)
	switch s.kind {
	case pmetric.MetricTypeGauge:
		s.writeNumber(m.SetEmptyGauge().DataPoints().AppendEmpty(), at, labels)
	case pmetric.MetricTypeSum:
		s.writeNumber(m.SetEmptySum().DataPoints().AppendEmpty(), at, labels)
	case pmetric.MetricTypeSummary:
		m.SetEmptySummary().DataPoints().AppendEmpty()
	case pmetric.MetricTypeExponentialHistogram:
		s.writeExponential(m.SetEmptyExponentialHistogram(), at, target, labels, so)
	case pmetric.MetricTypeHistogram:
		h := m.SetEmptyHistogram()
		h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		if s.delta {
			h.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		}
		point := h.DataPoints().AppendEmpty()
		point.SetTimestamp(at)
		point.SetStartTimestamp(at - pcommon.Timestamp(s.start))
		point.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(s.unrecorded))
		point.ExplicitBounds().FromRaw(anyLayouts[s.layout])
		point.BucketCounts().FromRaw(so.add(target+s.name+labels, s.counts, s.anew || s.delta))
		point.SetSum(s.value)
		scenariotest.PutLabels(point.Attributes(), labels)
	}
}

// writeExponential makes scale, range and zero bucket of what else is drawn.
func (s *series) writeExponential(h pmetric.ExponentialHistogram, at pcommon.Timestamp, target, labels string, so totals) {
	h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	if s.delta {
		h.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	}
	point := h.DataPoints().AppendEmpty()
	point.SetTimestamp(at)
	point.SetStartTimestamp(at - pcommon.Timestamp(s.start))
	point.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(s.unrecorded))
	scales := []int32{3, 2, -10, 20, 21}
	point.SetScale(scales[s.layout%len(scales)])
	point.Positive().SetOffset(int32(len(s.counts)) << (7 * s.layout % 31))
	if bounds := anyLayouts[s.layout]; s.layout > 0 && len(bounds) > 0 {
		point.SetZeroThreshold(bounds[0])
	}
	point.Positive().BucketCounts().FromRaw(so.add(target+s.name+labels+"exponential", s.counts, s.anew || s.delta))
	for _, c := range point.Positive().BucketCounts().All() {
		point.SetCount(point.Count() + c)
	}
	point.SetSum(s.value)
	scenariotest.PutLabels(point.Attributes(), labels)
}

func (s *series) writeNumber(point pmetric.NumberDataPoint, at pcommon.Timestamp, labels string) {
	point.SetTimestamp(at)
	point.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(s.unrecorded))
	point.SetDoubleValue(s.value)
	scenariotest.PutLabels(point.Attributes(), labels)
}
