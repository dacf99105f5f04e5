// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"math"
	"slices"
	"strconv"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"

	"github.com/llmfleet/llmfleet/test/prometheustest"
)

// Names of the series that a vLLM page gives.
const (
	ttft    = "vllm:time_to_first_token_seconds"
	waiting = "vllm:num_requests_waiting"
	running = "vllm:num_requests_running"
)

// fullWindow is 1 at every evaluation at which a pod has been a member for a full window, written from the history's own
// record: PromQL cannot know that a young replica is not judged yet.
const fullWindow = "history_full_window"

// queries are the queries of record, for all models.
type queries struct {
	perReplica string // the 0.95 quantile of every judged replica
	comparable string // the same, on the buckets that its whole fleet has
	perFleet   string // the 0.95 quantile of each fleet as a whole
}

// increase is the exact increase over a window, in place of the extrapolating rate. Where a histogram is one series, those
// that gained nothing are left out of the fleet: their buckets, if coarser, would make all others coarse.
const (
	increase       = `increase(vllm:time_to_first_token_seconds_bucket[5m] anchored)`
	nativeIncrease = `increase(vllm:time_to_first_token_seconds[5m] anchored)`
	nativeFleet    = `sum by (model_name) (` + nativeIncrease + ` and on (pod, model_name) (histogram_count(` + nativeIncrease + `) > 0))`

	// judged is which replicas have been there for a full window.
	judged = `
		and on (pod, model_name) present_over_time(vllm:num_requests_running[5m])
		and on (pod, model_name) history_full_window`

	// imbalance is the second query of record.
	imbalance = `max by (model_name) (vllm:num_requests_waiting) / clamp_min(avg by (model_name) (vllm:num_requests_waiting), 1)`
)

var (
	ofClassic = queries{
		perReplica: `histogram_quantile(0.95, sum by (le, pod, model_name) (` + increase + judged + `))`,
		comparable: `histogram_quantile(0.95, sum by (le, pod, model_name) (` + increase + judged + `))`,
		perFleet:   `histogram_quantile(0.95, sum by (le, model_name) (` + increase + `))`,
	}
	ofNative = queries{
		perReplica: `histogram_quantile(0.95, sum by (pod, model_name) (` + nativeIncrease + judged + `))`,
		// Added to nothing of the fleet's, a histogram gets the fleet's buckets.
		comparable: `histogram_quantile(0.95, sum by (pod, model_name) (` + nativeIncrease + judged + `)
			+ on (model_name) group_left () 0 * ` + nativeFleet + `)`,
		perFleet: `histogram_quantile(0.95, ` + nativeFleet + `)`,
	}
)

// spread is the first query of record.
func (q *queries) spread() string {
	return `max by (model_name) (` + q.comparable + `) / ` + q.perFleet
}

// figure is one number: of a replica, or of a fleet where pod is empty.
type figure struct{ metric, model, pod string }

// figures are the numbers at each instant T, in Unix milliseconds.
type figures map[int64]map[figure]float64

func (f figures) set(at int64, key figure, v float64) {
	if f[at] == nil {
		f[at] = map[figure]float64{}
	}
	f[at][key] = v
}

// The names of the figures that are compared, spelled as fleet_outlier emits them.
const (
	replicaLatency = "llmfleet.replica.latency"
	replicaRatio   = "llmfleet.replica.latency_ratio"
	fleetLatency   = "llmfleet.fleet.latency"
	fleetSpread    = "llmfleet.fleet.latency_spread_ratio"
	fleetImbalance = "llmfleet.fleet.waiting_imbalance_ratio"
)

// load writes histories as Prometheus would have scraped them: samples, and stale markers where a scrape failed.
func load(p *prometheustest.Prometheus, histories []history) {
	p.Load(func(app *prometheustest.Appender) {
		for i := range histories {
			h := &histories[i]
			for j := range h.pods {
				loadPod(app, h, &h.pods[j])
			}
		}
	})
}

func loadPod(app *prometheustest.Appender, h *history, member *pod) {
	gauges, latencies := podSeries(app, h, member)
	for i := range member.scrapes {
		s := &member.scrapes[i]
		if s.outcome == stillFailed {
			continue
		}
		for k, v := range []float64{s.waiting, s.running} {
			gauges[k].Append(s.at, s.orStale(v))
		}
		for k, one := range latencies {
			switch {
			case h.form == classic && s.outcome == scraped:
				one.Append(s.at, float64(s.buckets[k]))
			case h.form == classic:
				one.Append(s.at, staleMarker)
			default:
				one.AppendHistogram(s.at, s.native(h))
			}
		}
	}
	full := app.Series(labels.FromStrings(model.MetricNameLabel, fullWindow, "model_name", member.model, "pod", member.name))
	for _, at := range h.evaluations() {
		if !member.firstPage().After(at.Add(-window)) {
			full.Append(at, 1)
		}
	}
}

// podSeries makes the series of a pod: those of waiting and running requests, and the one or more of its latency.
func podSeries(app *prometheustest.Appender, h *history, member *pod) (gauges, latencies []*prometheustest.Series) {
	series := func(name string, pairs ...string) *prometheustest.Series {
		all := append([]string{model.MetricNameLabel, name, "model_name", member.model, "pod", member.name}, pairs...)
		return app.Series(labels.FromStrings(all...))
	}
	gauges = []*prometheustest.Series{series(waiting), series(running)}
	if h.form != classic {
		return gauges, []*prometheustest.Series{series(ttft)}
	}
	for _, bound := range h.bounds {
		latencies = append(latencies, series(ttft+"_bucket", "le", strconv.FormatFloat(bound, 'g', -1, 64)))
	}
	return gauges, append(latencies, series(ttft+"_bucket", "le", "+Inf"))
}

var staleMarker = math.Float64frombits(value.StaleNaN)

// orStale returns a value of the page, or the stale marker if there is none.
func (s *scrape) orStale(v float64) float64 {
	if s.outcome != scraped {
		return staleMarker
	}
	return v
}

// native is the page's histogram as one native sample, or the stale marker if there is no page.
func (s *scrape) native(h *history) *histogram.Histogram {
	switch {
	case s.outcome != scraped:
		return &histogram.Histogram{Sum: staleMarker}
	case h.form == exponential:
		return s.exponential.native(s.sum)
	}
	counts := slices.Clone(s.buckets)
	for i := len(counts) - 1; i > 0; i-- {
		counts[i] -= counts[i-1]
	}
	custom := &histogram.Histogram{
		Schema: histogram.CustomBucketsSchema, CustomValues: h.bounds, Count: total(counts), Sum: s.sum,
		PositiveSpans:   []histogram.Span{{Length: uint32(len(counts))}},
		PositiveBuckets: deltas(counts),
	}
	return custom.Compact(0)
}

// comparableLatency is the latency of a replica on the buckets of its fleet. fleet_outlier does not emit it.
const comparableLatency = "comparable latency"

// expectation is everything that Prometheus says about the histories of a form that it was loaded with.
func expectation(p *prometheustest.Prometheus, f form) figures {
	q := ofNative
	if f == classic {
		q = ofClassic
	}
	all := figures{}
	all.ask(p, replicaLatency, q.perReplica)
	all.ask(p, comparableLatency, q.comparable)
	all.ask(p, fleetLatency, q.perFleet)
	all.ask(p, fleetSpread, q.spread())
	all.ask(p, fleetImbalance, imbalance)
	for _, at := range all {
		for key, latency := range at {
			if fleet, ok := at[figure{fleetLatency, key.model, ""}]; ok && key.metric == comparableLatency && fleet > 0 {
				at[figure{replicaRatio, key.model, key.pod}] = latency / fleet
			}
		}
	}
	return all
}

// ask evaluates an expression at every instant of a history and keeps the results as figures of the given name. NaN is
// how PromQL says undefined: such a figure is left out.
func (f figures) ask(p *prometheustest.Prometheus, metric, expression string) {
	for _, series := range p.Range(expression, epoch.Add(interval), epoch.Add(historyLength), interval) {
		key := figure{metric: metric, model: series.Metric.Get("model_name"), pod: series.Metric.Get("pod")}
		for _, point := range series.Floats {
			if !math.IsNaN(point.F) {
				f.set(point.T, key, point.F)
			}
		}
	}
}
