// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package drawntest

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// What a fleet tells, as vLLM names it. Requests are counted by their finished_reason, of which stop and error occur.
const (
	TTFT           = "vllm:time_to_first_token_seconds"
	ITL            = "vllm:inter_token_latency_seconds"
	Requests       = "vllm:request_success_total"
	finishedReason = "finished_reason"
	stop           = "stop"
	failed         = "error"
)

// latencies are log-normal: the median in seconds, and the standard deviation of the logarithm.
var latencies = []struct {
	metric        string
	signal        fleet.Signal
	median, sigma float64
}{
	{TTFT, fleet.TTFT, 0.3, 0.6},
	{ITL, fleet.ITL, 0.03, 0.3},
}

// Plan is a fleet of so many replicas, each of which finishes so many requests in a pane. Noise is the standard deviation
// of what makes pods differ, and panes of one pod, on the log scale.
func Plan(replicas int, requests, noise float64) fleetsim.Drawn {
	plan := fleetsim.Drawn{Name: "drawn", Replicas: replicas, Rate: requests, ErrorRatio: 0.002, PodNoise: noise, DriftNoise: noise}
	for _, l := range latencies {
		plan.Latencies = append(plan.Latencies, fleetsim.DrawnLatency{
			Bounds: fleetsim.Bounds(fleetsim.VLLM, l.signal), Mean: l.median * math.Exp(l.sigma*l.sigma/2),
			CV: math.Sqrt(math.Expm1(l.sigma * l.sigma)), Distribution: fleetsim.ShapeLognormal,
		})
	}
	return plan
}

// Fleet is a drawn fleet, and what each of its replicas has counted so far.
type Fleet struct {
	plan     fleetsim.Drawn
	drawing  *fleetsim.Drawing
	replicas []totals
}

// totals are one replica's counts since it started.
type totals struct {
	latencies        [][]uint64 // one count a bucket, not cumulative
	finished, failed uint64
}

// New makes a fleet of a Plan that has counted nothing yet.
func New(plan fleetsim.Drawn, seed uint64) (*Fleet, error) {
	drawing, err := fleetsim.Draw(plan, seed)
	if err != nil {
		return nil, err
	}
	f := &Fleet{plan: plan, drawing: drawing, replicas: make([]totals, plan.Replicas)}
	for i := range f.replicas {
		for _, l := range plan.Latencies {
			f.replicas[i].latencies = append(f.replicas[i].latencies, make([]uint64, len(l.Bounds)+1))
		}
	}
	return f, nil
}

// Next lets a pane pass.
func (f *Fleet) Next() {
	f.drawing.Next()
	for i := range f.replicas {
		r := &f.replicas[i]
		for l, counts := range r.latencies {
			for b, c := range f.drawing.Counts(i, l) {
				counts[b] += c
			}
		}
		finished, failed := f.drawing.Requests(i)
		r.finished += finished
		r.failed += failed
	}
}

// Tell writes what a replica has counted on its page: into those metrics of the page that it tells.
func (f *Fleet) Tell(replica int, page pmetric.Metrics) {
	r := &f.replicas[replica]
	for _, m := range page.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		for l := range latencies {
			if m.Name() == latencies[l].metric {
				tell(m.Histogram().DataPoints().At(0), f.plan.Latencies[l].Bounds, r.latencies[l])
			}
		}
		if m.Name() != Requests {
			continue
		}
		for _, point := range m.Sum().DataPoints().All() {
			reason, _ := point.Attributes().Get(finishedReason)
			switch reason.Str() {
			case stop:
				point.SetDoubleValue(float64(r.finished - r.failed))
			case failed:
				point.SetDoubleValue(float64(r.failed))
			default:
				point.SetDoubleValue(0)
			}
		}
	}
}

// tell writes a histogram. Its sum is what it would be if all observations lay in the middle of their buckets.
func tell(point pmetric.HistogramDataPoint, bounds []float64, counts []uint64) {
	var count uint64
	var sum float64
	for b, c := range counts {
		count += c
		lower, upper := bounds[max(b, 1)-1], bounds[min(b, len(bounds)-1)]
		sum += float64(c) * (lower + upper) / 2
	}
	point.SetCount(count)
	point.SetSum(sum)
	point.ExplicitBounds().FromRaw(bounds)
	point.BucketCounts().FromRaw(counts)
}

// Page is a page with the metrics that a fleet tells, and nothing else.
func Page() pmetric.Metrics {
	page := pmetric.NewMetrics()
	metrics := page.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	for _, l := range latencies {
		m := metrics.AppendEmpty()
		m.SetName(l.metric)
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		m.Histogram().DataPoints().AppendEmpty()
	}
	m := metrics.AppendEmpty()
	m.SetName(Requests)
	requests := m.SetEmptySum()
	requests.SetIsMonotonic(true)
	requests.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	for _, reason := range []string{stop, failed} {
		requests.DataPoints().AppendEmpty().Attributes().PutStr(finishedReason, reason)
	}
	return page
}
