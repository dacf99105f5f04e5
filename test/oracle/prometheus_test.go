// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"math"
	"strconv"

	"github.com/prometheus/common/model"
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

// The queries of record, for all models. increase is the exact increase over a window, in place of the extrapolating rate.
const (
	increase = `increase(vllm:time_to_first_token_seconds_bucket[5m] anchored)`

	// perReplica is the 0.95 quantile of every judged replica.
	perReplica = `histogram_quantile(0.95, sum by (le, pod, model_name) (` + increase + `
		and on (pod, model_name) present_over_time(vllm:num_requests_running[5m])
		and on (pod, model_name) history_full_window))`

	// perFleet is the 0.95 quantile of each fleet as a whole.
	perFleet = `histogram_quantile(0.95, sum by (le, model_name) (` + increase + `))`

	// spread is the first query of record.
	spread = `max by (model_name) (` + perReplica + `) / ` + perFleet

	// imbalance is the second query of record.
	imbalance = `max by (model_name) (vllm:num_requests_waiting) / clamp_min(avg by (model_name) (vllm:num_requests_waiting), 1)`
)

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
	series := podSeries(app, h, member)
	for i := range member.scrapes {
		s := &member.scrapes[i]
		if s.outcome == stillFailed {
			continue
		}
		for k, one := range series {
			one.Append(s.at, s.sample(k))
		}
	}
	judged := app.Series(labels.FromStrings(model.MetricNameLabel, fullWindow, "model_name", member.model, "pod", member.name))
	for _, at := range h.evaluations() {
		if !member.firstPage().After(at.Add(-window)) {
			judged.Append(at, 1)
		}
	}
}

// podSeries makes the series of a pod, in the order of scrape.sample.
func podSeries(app *prometheustest.Appender, h *history, member *pod) []*prometheustest.Series {
	series := func(name string, pairs ...string) *prometheustest.Series {
		all := append([]string{model.MetricNameLabel, name, "model_name", member.model, "pod", member.name}, pairs...)
		return app.Series(labels.FromStrings(all...))
	}
	made := []*prometheustest.Series{series(waiting), series(running)}
	for _, bound := range h.bounds {
		made = append(made, series(ttft+"_bucket", "le", strconv.FormatFloat(bound, 'g', -1, 64)))
	}
	return append(made, series(ttft+"_bucket", "le", "+Inf"))
}

// sample returns the value of the k-th series of podSeries, or the stale marker.
func (s *scrape) sample(k int) float64 {
	switch {
	case s.outcome != scraped:
		return math.Float64frombits(value.StaleNaN)
	case k == 0:
		return s.waiting
	case k == 1:
		return s.running
	default:
		return float64(s.buckets[k-2])
	}
}

// expectation is everything that Prometheus says about the histories it was loaded with.
func expectation(p *prometheustest.Prometheus) figures {
	all := figures{}
	all.ask(p, replicaLatency, perReplica)
	all.ask(p, fleetLatency, perFleet)
	all.ask(p, fleetSpread, spread)
	all.ask(p, fleetImbalance, imbalance)
	for _, at := range all {
		for key, latency := range at {
			if fleet, ok := at[figure{fleetLatency, key.model, ""}]; ok && key.metric == replicaLatency && fleet > 0 {
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
