// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/llmfleet/llmfleet/examples/internal/demo"
)

// figures are what the collector has derived.
type figures struct {
	replicas map[string]*figure    // by pod
	states   map[fleetKey][]string // other than judged that any of its replicas is in
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
func (r replica) judgedIn(got *figures) bool {
	f := got.replicas[r.pod]
	return f != nil && !math.IsNaN(f.outlier) && !math.IsNaN(f.ratio) && (!r.itl || !math.IsNaN(f.itlRatio))
}

// progress is complete when each of the replicas is judged and an onset was told.
func (f *figures) progress(replicas []replica, told int) demo.Progress {
	pending := slices.ContainsFunc(replicas, func(r replica) bool { return !r.judgedIn(f) })
	switch {
	case !pending && told > 0:
		return demo.Complete
	case f.compared():
		return demo.Begun
	}
	return demo.Nothing
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

// readFigures finds them on the page of derived metrics.
func readFigures(page demo.Page) figures {
	f := figures{replicas: map[string]*figure{}, states: map[fleetKey][]string{}}
	collect := func(family string, want map[string]string, field func(*figure) *float64) {
		page.Gauges(family, want, func(labels map[string]string, value float64) { *field(f.replica(labels)) = value })
	}
	ttft := map[string]string{"signal": "ttft", "quantile": "0.95"}
	collect("llmfleet_replica_outlier", nil, func(r *figure) *float64 { return &r.outlier })
	collect("llmfleet_replica_outlier_evidence", nil, func(r *figure) *float64 { return &r.evidence })
	collect("llmfleet_replica_stuck", nil, func(r *figure) *float64 { return &r.stuck })
	collect("llmfleet_replica_latency_seconds", ttft, func(r *figure) *float64 { return &r.ttft })
	collect("llmfleet_replica_latency_ratio", ttft, func(r *figure) *float64 { return &r.ratio })
	collect("llmfleet_replica_latency_ratio", map[string]string{"signal": "itl", "quantile": "0.95"}, func(r *figure) *float64 { return &r.itlRatio })
	page.Gauges("llmfleet_replica_outlier_cause", nil, func(labels map[string]string, value float64) {
		if value == 1 {
			f.replica(labels).cause = labels["cause"]
		}
	})
	page.Gauges("llmfleet_fleet_replicas", nil, func(labels map[string]string, value float64) {
		if state := labels["state"]; state != "judged" && value > 0 {
			key := fleetKey{labels["model_name"], labels["engine_name"]}
			f.states[key] = append(f.states[key], state)
		}
	})
	return f
}

// replica finds or makes the figure of a point's replica.
func (f *figures) replica(labels map[string]string) *figure {
	pod := cmp.Or(labels["pod"], labels["replica"])
	if f.replicas[pod] == nil {
		f.replicas[pod] = newFigure()
	}
	return f.replicas[pod]
}
