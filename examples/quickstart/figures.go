// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// figures are what the collector has derived.
type figures struct {
	replicas map[string]*figure    // by pod
	states   map[fleetKey][]string // other than judged that any of its replicas is in
}

// figure is one replica against its peers. What was not exported is NaN.
type figure struct {
	ttft             float64 // p95, seconds
	ratio, low, high float64 // of ttft p95
	itlRatio         float64 // of p95
	observations     float64 // of ttft
	waiting, running float64 // requests
}

// fleetKey tells the fleets of a scenario apart on the page.
type fleetKey struct{ model, engine string }

// newFigure has nothing measured.
func newFigure() *figure {
	none := math.NaN()
	return &figure{none, none, none, none, none, none, none, none}
}

// replica is one of those whose figures are awaited.
type replica struct {
	pod string
	itl bool // whether its engine measures inter-token latency
}

// ratedIn tells whether the latencies that there are have been compared.
func (r replica) ratedIn(got figures) bool {
	f := got.replicas[r.pod]
	return f != nil && !math.IsNaN(f.ratio) && (!r.itl || !math.IsNaN(f.itlRatio))
}

// awaitFigures fetches until each of the replicas has its ratios, and once more,
// because a page may be read while a result is still being written. Some may
// never get theirs: it waits for them no longer than stragglers, and gives what
// there is. It gives nothing when ctx is done or the collector has ended.
func awaitFigures(ctx context.Context, ended <-chan struct{}, replicas []replica, fetch func() (figures, error)) (figures, error) {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	var newest figures
	begun, complete := false, false
	for {
		select {
		case <-ctx.Done():
			return figures{}, nil
		case <-ended:
			return figures{}, nil
		case <-deadline.C:
			if begun {
				return newest, nil
			}
			return figures{}, fmt.Errorf("there is no latency ratio after %v: is the machine too busy?", patience)
		case <-poll.C:
		}
		got, err := fetch()
		if err != nil {
			continue // the collector is not up yet
		}
		rated := 0
		for _, r := range replicas {
			if r.ratedIn(got) {
				rated++
			}
		}
		if complete && rated == len(replicas) {
			return got, nil
		}
		newest, complete = got, rated == len(replicas)
		if rated > 0 && !begun {
			begun = true
			deadline.Reset(stragglers)
		}
	}
}

func fetchFigures(ctx context.Context, url string) (figures, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return figures{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return figures{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return figures{}, fmt.Errorf("%s answers %s", url, response.Status)
	}
	return readFigures(response.Body)
}

// readFigures reads a Prometheus page of derived metrics.
func readFigures(page io.Reader) (figures, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(page)
	if err != nil {
		return figures{}, fmt.Errorf("read the derived metrics: %w", err)
	}
	f := figures{replicas: map[string]*figure{}, states: map[fleetKey][]string{}}
	collect := func(family string, want map[string]string, field func(*figure) *float64) {
		for _, point := range families[family].GetMetric() {
			if labels := labelsOf(point); matches(labels, want) {
				*field(f.replica(labels)) = point.GetGauge().GetValue()
			}
		}
	}
	ttft := map[string]string{"signal": "ttft", "quantile": "0.95"}
	collect("llmfleet_replica_latency_seconds", ttft, func(r *figure) *float64 { return &r.ttft })
	collect("llmfleet_replica_latency_ratio", ttft, func(r *figure) *float64 { return &r.ratio })
	collect("llmfleet_replica_latency_low_ratio", ttft, func(r *figure) *float64 { return &r.low })
	collect("llmfleet_replica_latency_high_ratio", ttft, func(r *figure) *float64 { return &r.high })
	collect("llmfleet_replica_latency_ratio", map[string]string{"signal": "itl", "quantile": "0.95"}, func(r *figure) *float64 { return &r.itlRatio })
	collect("llmfleet_replica_observations", map[string]string{"signal": "ttft"}, func(r *figure) *float64 { return &r.observations })
	collect("llmfleet_replica_requests", map[string]string{"state": "waiting"}, func(r *figure) *float64 { return &r.waiting })
	collect("llmfleet_replica_requests", map[string]string{"state": "running"}, func(r *figure) *float64 { return &r.running })
	for _, point := range families["llmfleet_fleet_replicas"].GetMetric() {
		labels := labelsOf(point)
		if state := labels["state"]; state != "judged" && point.GetGauge().GetValue() > 0 {
			key := fleetKey{labels["model_name"], labels["engine_name"]}
			f.states[key] = append(f.states[key], state)
		}
	}
	return f, nil
}

// replica finds or makes the figure of a point's replica.
func (f *figures) replica(labels map[string]string) *figure {
	pod := cmp.Or(labels["pod"], labels["replica"])
	if f.replicas[pod] == nil {
		f.replicas[pod] = newFigure()
	}
	return f.replicas[pod]
}

func labelsOf(point *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range point.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}

func matches(labels, want map[string]string) bool {
	for name, value := range want {
		if labels[name] != value {
			return false
		}
	}
	return true
}
