// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// figures are what the collector has derived.
type figures struct {
	replicas map[string]*figure    // by pod
	states   map[fleetKey][]string // other than judged that any of its replicas is in
	told     int                   // onsets and clears
}

// figure is one replica against its fleet. What was not exported is NaN.
type figure struct {
	outlier, stuck float64 // flags
	evidence       float64
	cause          string
	ttft           float64 // p95, seconds
	ratio          float64 // of ttft p95
	itlRatio       float64 // of p95
}

// fleetKey tells the fleets of a scenario apart on the page.
type fleetKey struct{ model, engine string }

// newFigure has nothing measured.
func newFigure() *figure {
	none := math.NaN()
	return &figure{outlier: none, stuck: none, evidence: none, ttft: none, ratio: none, itlRatio: none}
}

// replica is one of those whose figures are awaited.
type replica struct {
	pod string
	itl bool // whether its engine measures inter-token latency
}

// judgedIn tells whether there is a verdict, and the latencies that there are
// have been compared.
func (r replica) judgedIn(got figures) bool {
	f := got.replicas[r.pod]
	return f != nil && !math.IsNaN(f.outlier) && !math.IsNaN(f.ratio) && (!r.itl || !math.IsNaN(f.itlRatio))
}

// awaitVerdicts looks until each of the replicas is judged and an onset was told,
// and once more, because a page may be read while a result is still being
// written. There may never be an outlier: it waits for one no longer than
// suspense after the first ratios, and gives what there is. It gives nothing when
// ctx is done or the collector has ended.
func awaitVerdicts(ctx context.Context, ended <-chan struct{}, replicas []replica, look func() (figures, error)) (figures, error) {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	var newest figures
	var failed error // of the newest look
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
			return figures{}, errors.Join(fmt.Errorf("there is no latency ratio after %v: is the machine too busy?", patience), failed)
		case <-poll.C:
		}
		var got figures
		if got, failed = look(); failed != nil {
			continue // the collector is not up yet
		}
		pending := slices.ContainsFunc(replicas, func(r replica) bool { return !r.judgedIn(got) })
		if complete && !pending {
			return got, nil
		}
		newest, complete = got, !pending && got.told > 0
		if !begun && got.compared() {
			begun = true
			deadline.Reset(suspense)
		}
	}
}

// compared tells whether any replica has a ratio.
func (f *figures) compared() bool {
	for _, r := range f.replicas {
		if !math.IsNaN(r.ratio) {
			return true
		}
	}
	return false
}

// suspect is the replica of which there is most evidence; "" if there is none.
func (f *figures) suspect() (pod string, evidence float64) {
	for _, name := range slices.Sorted(maps.Keys(f.replicas)) {
		if e := f.replicas[name].evidence; e > evidence {
			pod, evidence = name, e
		}
	}
	return pod, evidence
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
	collect("llmfleet_replica_outlier", nil, func(r *figure) *float64 { return &r.outlier })
	collect("llmfleet_replica_outlier_evidence", nil, func(r *figure) *float64 { return &r.evidence })
	collect("llmfleet_replica_stuck", nil, func(r *figure) *float64 { return &r.stuck })
	collect("llmfleet_replica_latency_seconds", ttft, func(r *figure) *float64 { return &r.ttft })
	collect("llmfleet_replica_latency_ratio", ttft, func(r *figure) *float64 { return &r.ratio })
	collect("llmfleet_replica_latency_ratio", map[string]string{"signal": "itl", "quantile": "0.95"}, func(r *figure) *float64 { return &r.itlRatio })
	for _, point := range families["llmfleet_replica_outlier_cause"].GetMetric() {
		if point.GetGauge().GetValue() == 1 {
			labels := labelsOf(point)
			f.replica(labels).cause = labels["cause"]
		}
	}
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
