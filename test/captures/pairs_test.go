// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build captures

package captures

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/prometheustest"
)

// figure names one derived number.
type figure struct{ metric, signal, quantile, pod string }

// TestPairs: two engines were captured before and after a load. Served as two replicas of one model, first the page
// before and then the page after, they give the latencies and ratios that Prometheus computes from the same text.
func TestPairs(t *testing.T) {
	prometheus := prometheustest.New(t)
	var replicas []*replica
	var loaded [][]byte
	for _, path := range pages(t, "vllm-hust-*-pre.prom") {
		pre, post := read(t, path), read(t, strings.TrimSuffix(path, "-pre.prom")+"-post.prom")
		pod := strings.TrimSuffix(filepath.Base(path), "-pre.prom")
		scrape(t, prometheus, pod, pre, before)
		scrape(t, prometheus, pod, post, after)
		replicas = append(replicas, serve(t, pod, pre))
		loaded = append(loaded, post)
	}
	require.Len(t, replicas, 2, "the peers of a replica are taken to be the other one")

	c := startCollector(t, replicas...)
	const fullWindow = 14 // visits, one a second, after which no replica is warming
	for _, r := range replicas {
		require.Eventually(t, func() bool { return r.visits.Load() >= fullWindow }, time.Minute, 100*time.Millisecond)
	}
	for i, r := range replicas {
		r.page.Store(&loaded[i])
	}

	want := expectation(prometheus, replicas)
	got := c.awaitFigures(t)
	for key, value := range want {
		assert.InEpsilon(t, value, got[key], 1e-9, "%+v", key)
	}
	for key := range got {
		assert.Contains(t, want, key, "this figure ought to be withheld")
	}
	t.Logf("%d figures are equal", len(want))
}

// expectation is what Prometheus computes from the pages. Where a replica has all observations in the lowest bucket,
// neither it nor a comparison with it is expected. No quantile of these captures is above the top finite bound.
func expectation(p *prometheustest.Prometheus, replicas []*replica) map[figure]float64 {
	want := map[figure]float64{}
	for signal, family := range families {
		counts := ask(p, `sum by (pod) (increase(%s_count[5m] anchored))`, family)
		lowest := ask(p, `min by (pod) (increase(%s_bucket[5m] anchored))`, family)
		for pod, count := range counts {
			want[figure{"llmfleet.replica.observations", signal, "", pod}] = count
		}
		for _, quantile := range []string{"0.5", "0.95"} {
			perPod := ask(p, `histogram_quantile(%s, sum by (le, pod) (increase(%s_bucket[5m] anchored)))`, quantile, family)
			fleet := ask(p, `histogram_quantile(%s, sum by (le) (increase(%s_bucket[5m] anchored)))`, quantile, family)[""]
			want[figure{"llmfleet.fleet.latency", signal, quantile, ""}] = fleet
			slowest := 0.0
			for i, r := range replicas {
				own, peer := r.Pod, replicas[1-i].Pod
				if lowest[own] == counts[own] {
					continue
				}
				want[figure{"llmfleet.replica.latency", signal, quantile, own}] = perPod[own]
				slowest = max(slowest, perPod[own])
				if lowest[peer] < counts[peer] {
					want[figure{"llmfleet.replica.latency_ratio", signal, quantile, own}] = perPod[own] / perPod[peer]
				}
			}
			want[figure{"llmfleet.fleet.latency_spread_ratio", signal, quantile, ""}] = slowest / fleet
		}
	}
	return want
}

// awaitFigures waits for the evaluation after the first one that saw the load, and returns its figures. At the first one
// a replica may still have shown the page before.
func (c *collector) awaitFigures(t *testing.T) map[figure]float64 {
	t.Helper()
	var evaluations map[int64]map[figure]float64
	var first int64
	require.Eventually(t, func() bool {
		evaluations, first = c.figures(t)
		return first > 0 && evaluations[first+2*interval] != nil
	}, time.Minute, 500*time.Millisecond, "the collector derived nothing from the load")
	return evaluations[first+interval]
}

// interval is the time between two evaluations, nanoseconds.
const interval = int64(2 * time.Second)

// figures returns what each evaluation derived of latencies, and the first T with a latency of the fleet.
func (c *collector) figures(t *testing.T) (evaluations map[int64]map[figure]float64, first int64) {
	t.Helper()
	evaluations = map[int64]map[figure]float64{}
	for _, p := range c.points(t) {
		if !strings.Contains(p.metric, "latency") && p.metric != "llmfleet.replica.observations" {
			continue
		}
		if evaluations[p.at] == nil {
			evaluations[p.at] = map[figure]float64{}
		}
		evaluations[p.at][figure{p.metric, p.label("signal"), p.label("quantile"), p.label("pod")}] = p.value
		if p.metric == "llmfleet.fleet.latency" && (first == 0 || p.at < first) {
			first = p.at
		}
	}
	return evaluations, first
}

func (p *point) label(name string) string {
	text, _ := p.labels[name].(string)
	return text
}
