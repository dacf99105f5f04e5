// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"text/tabwriter"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// row is one replica against its fleet. A figure that was not exported is NaN.
type row struct {
	model, replica   string
	ttft             float64 // p95, seconds
	ratio, low, high float64 // of ttft p95
	itlRatio         float64 // of p95
	observations     float64 // of ttft
	waiting, running float64 // requests
}

// awaitRows fetches until there are ratios, and the same number of them twice:
// a page may be read while a result is still being written. It returns no rows
// when ctx is done or the collector has ended first.
func awaitRows(ctx context.Context, ended <-chan struct{}, fetch func() ([]row, error)) ([]row, error) {
	deadline := time.After(patience)
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	seen := 0
	for {
		select {
		case <-ctx.Done():
			return nil, nil
		case <-ended:
			return nil, nil
		case <-deadline:
			return nil, fmt.Errorf("there is no latency ratio after %v: is the machine too busy?", patience)
		case <-poll.C:
		}
		rows, err := fetch()
		if err != nil {
			continue // the collector is not up yet
		}
		rated := 0
		for i := range rows {
			if !math.IsNaN(rows[i].ratio) {
				rated++
			}
		}
		if rated > 0 && rated == seen {
			return rows, nil
		}
		seen = rated
	}
}

func fetchRows(ctx context.Context, url string) ([]row, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", url, response.Status)
	}
	return readRows(response.Body)
}

// readRows makes rows of a Prometheus page of derived metrics, slowest first.
func readRows(page io.Reader) ([]row, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(page)
	if err != nil {
		return nil, fmt.Errorf("read the derived metrics: %w", err)
	}
	rows := map[[2]string]*row{}
	collect := func(family string, labels map[string]string, field func(*row) *float64) {
		for _, point := range families[family].GetMetric() {
			if got := labelsOf(point); matches(got, labels) {
				*field(rowOf(rows, got)) = point.GetGauge().GetValue()
			}
		}
	}
	ttft := map[string]string{"signal": "ttft", "quantile": "0.95"}
	collect("llmfleet_replica_latency_seconds", ttft, func(r *row) *float64 { return &r.ttft })
	collect("llmfleet_replica_latency_ratio", ttft, func(r *row) *float64 { return &r.ratio })
	collect("llmfleet_replica_latency_low_ratio", ttft, func(r *row) *float64 { return &r.low })
	collect("llmfleet_replica_latency_high_ratio", ttft, func(r *row) *float64 { return &r.high })
	collect("llmfleet_replica_latency_ratio", map[string]string{"signal": "itl", "quantile": "0.95"}, func(r *row) *float64 { return &r.itlRatio })
	collect("llmfleet_replica_observations", map[string]string{"signal": "ttft"}, func(r *row) *float64 { return &r.observations })
	collect("llmfleet_replica_requests", map[string]string{"state": "waiting"}, func(r *row) *float64 { return &r.waiting })
	collect("llmfleet_replica_requests", map[string]string{"state": "running"}, func(r *row) *float64 { return &r.running })
	return slices.SortedFunc(values(rows), slowestFirst), nil
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

// rowOf finds or makes the row of a point's replica, shown by its pod's name.
func rowOf(rows map[[2]string]*row, labels map[string]string) *row {
	key := [2]string{labels["model_name"], cmp.Or(labels["pod"], labels["replica"])}
	if rows[key] == nil {
		none := math.NaN()
		rows[key] = &row{key[0], key[1], none, none, none, none, none, none, none, none}
	}
	return rows[key]
}

func values(rows map[[2]string]*row) func(func(row) bool) {
	return func(yield func(row) bool) {
		for r := range maps.Values(rows) {
			if !yield(*r) {
				return
			}
		}
	}
}

// slowestFirst puts replicas without a ratio last.
func slowestFirst(a, b row) int {
	if aMissing, bMissing := math.IsNaN(a.ratio), math.IsNaN(b.ratio); aMissing != bMissing {
		if aMissing {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(b.ratio, a.ratio), cmp.Compare(a.model, b.model), cmp.Compare(a.replica, b.replica))
}

func printTable(out io.Writer, rows []row) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MODEL\tREPLICA\tTTFT P95\tRATIO\t[LOW, HIGH]\tITL P95 RATIO\tOBSERVATIONS\tWAITING/RUNNING")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t[%s, %s]\t%s\t%s\t%s/%s\n", r.model, r.replica,
			figure("%.0f ms", 1000*r.ttft), figure("%.2f", r.ratio), figure("%.2f", r.low), figure("%.2f", r.high),
			figure("%.2f", r.itlRatio), figure("%.0f", r.observations), figure("%.1f", r.waiting), figure("%.1f", r.running))
	}
	return table.Flush()
}

func figure(format string, v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf(format, v)
}
