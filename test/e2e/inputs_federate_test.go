// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/binarytest"
)

// federatedPrometheusConfig scrapes the engines: nobody else does.
const federatedPrometheusConfig = `
scrape_configs:
  - job_name: engines
    scrape_interval: 2s
    scrape_timeout: 2s
    static_configs:
{{- range . }}
      - targets: ["{{ .Address }}"]
        labels: {namespace: default, pod: "{{ .Pod }}"}
{{- end }}
`

// federateJob reads from that Prometheus what it has of engines, so often that no sample is overtaken by the next.
const federateJob = `
receivers:
  prometheus:
    config:
      scrape_configs:
        - job_name: federate
          metrics_path: /federate
          scrape_interval: 500ms
          scrape_timeout: 500ms
          honor_labels: true
          track_timestamps_staleness: true
          params:
            "match[]":
              - '{__name__=~"vllm:.+",__name__!~".+_created"}'
              - '{__name__=~"up|process_start_time_seconds"}'
          static_configs: [{targets: ["{{ .Prometheus }}"]}]
`

const federateConfig = federateJob + `
processors:
  fleet_outlier:
    interval: 2s
    window: 20s
    lateness: 2s
    signals: [ttft]
    quantiles: [0.95]
    compare_to: fleet
    alarm: {pane: 6s, warmup: 20s, clear_after: 1m}
  filter:
    metrics: {metric: ['not IsMatch(name, "^llmfleet[.]")']}
exporters:
  prometheus_remote_write:
    http: {endpoint: "http://{{ .Prometheus }}/api/v1/write", tls: {insecure: true}}
    target_info: {enabled: false}
    disable_scope_info: true
    max_batch_request_parallelism: 1 # Prometheus takes the samples of a series in order only
    remote_write_queue: {num_consumers: 1}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    metrics: {receivers: [prometheus], processors: [fleet_outlier, filter], exporters: [prometheus_remote_write]}
`

// TestFederate: the collector scrapes no engine. It reads what a Prometheus has of them, and what it derives at every T is
// what that Prometheus answers at T of its own samples. It names the slow replica, by labels that join with the raw series.
func TestFederate(t *testing.T) {
	prometheus := startPrometheus(t, render(t, federatedPrometheusConfig, startFleet(t, crowded)))
	config := render(t, federateConfig, map[string]any{"Prometheus": prometheus.address})
	collector := binarytest.Start(t, binarytest.Collector(t), "--config="+binarytest.WriteFile(t, "config.yaml", config))

	const evaluations = 5
	of := fmt.Sprintf(`{namespace="default",pod=%q}`, slowReplica)
	for _, derived := range []struct{ metric, query string }{
		{"llmfleet_fleet_latency_spread_ratio", spread},
		{"llmfleet_fleet_latency_seconds", fleetQuantile},
		{"llmfleet_fleet_waiting_imbalance_ratio", imbalance},
		{"llmfleet_replica_latency_seconds" + of, replicaQuantile + ` and on (pod) up` + of},
	} {
		samples := prometheus.awaitSamples(derived.metric, 1+evaluations)[1:]
		for _, sample := range samples[:evaluations] {
			at := sample.Timestamp.Time()
			time.Sleep(time.Until(at.Add(settle)))
			want := prometheus.one(at, derived.query)
			assert.InDelta(t, want, float64(sample.Value), 1e-9*want, "%s at %s", derived.metric, at)
		}
	}
	require.Eventually(t, func() bool {
		return len(prometheus.at(time.Now(), "llmfleet_replica_outlier"+of+" == 1")) == 1
	}, 3*time.Minute, time.Second, "the slow replica was not found")
	assert.Len(t, prometheus.at(time.Now(), "llmfleet_replica_outlier"), 4, "of each replica one series, by one writer")
	assert.Len(t, prometheus.at(time.Now(), "llmfleet_replica_outlier == 1"), 1)
	assert.Len(t, prometheus.at(time.Now(), "llmfleet_replica_outlier * on (namespace, pod) group_left () up"), 4)
	collector.Stop(t)
	assert.NotRegexp(t, `out of order|duplicate sample`, collector.Output())
}

const federateEverythingConfig = federateJob + `
processors:
  fleet_identity:
    interval: 2s
    emit_canonical: true
  fleet_outlier: {interval: 2s, window: 20s, lateness: 2s}
  canary_delta: {pane: 2s, lateness: 2s}
  tenant_share: {pane: 2s, lateness: 2s}
exporters:
  file: {path: {{ .Folder }}/out.json, flush_interval: 500ms}
service:
  telemetry:
    metrics:
      level: normal
      readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: {{ .Port }}}}}}]
  pipelines:
    metrics: {receivers: [prometheus], processors: [fleet_identity, fleet_outlier, canary_delta, tenant_share], exporters: [file]}
`

// TestFederateReachesEveryProcessor: whatever reads engines reads federated ones. A counter or a histogram that had lost
// its type is told in the one spelling, with the very counts of its series.
func TestFederateReachesEveryProcessor(t *testing.T) {
	prometheus := startPrometheus(t, render(t, federatedPrometheusConfig, startFleet(t, calm)))
	folder, port := t.TempDir(), binarytest.FreePort(t)
	config := render(t, federateEverythingConfig, map[string]any{"Prometheus": prometheus.address, "Folder": folder, "Port": port})
	collector := binarytest.Start(t, binarytest.Collector(t), "--config="+binarytest.WriteFile(t, "config.yaml", config))

	for _, series := range []string{
		`otelcol_processor_fleet_outlier_observations\w*{dialect="vllm",[^}]*signal="ttft"`,
		`otelcol_processor_canary_delta_observations\w*{dialect="vllm",[^}]*signal="ttft"`,
		`otelcol_processor_canary_delta_observations\w*{dialect="vllm",[^}]*signal="finished"`,
		`otelcol_processor_tenant_share_observations\w*{dialect="vllm",[^}]*signal="itl"`,
		`otelcol_processor_tenant_share_observations\w*{dialect="vllm",[^}]*signal="generation_tokens"`,
	} {
		require.Eventually(t, func() bool { return ofItself(t, port, series) > 40 }, 2*time.Minute, time.Second, "%s", series)
	}
	ignored := func(reason string) float64 {
		return ofItself(t, port, `otelcol_processor_\w+_ignored\w*{[^}]*reason="`+reason+`"`)
	}
	for _, reason := range []string{"type", "incomplete", "bad_buckets", "no_model", "limit"} {
		assert.Zero(t, ignored(reason), reason)
	}
	// An engine may be up a moment before Prometheus shows the first of its series.
	silent := ignored("no_signals")
	require.Eventually(t, func() bool {
		return ofItself(t, port, `otelcol_processor_fleet_outlier_observations\w*{dialect="vllm",[^}]*signal="ttft"`) > 80
	}, time.Minute, time.Second)
	assert.InDelta(t, silent, ignored("no_signals"), 0, "no_signals")
	collector.Stop(t)

	out := file{filepath.Join(folder, "out.json")}
	assertSpelled(t, out, "vllm:time_to_first_token_seconds_count", "llmfleet.engine.ttft")
	assertSpelled(t, out, "vllm:generation_tokens_total", "llmfleet.engine.generation_tokens")
}

// assertSpelled: of each replica and time, the signal in the one spelling has the value of the raw series.
func assertSpelled(t *testing.T, out file, raw, canonical string) {
	t.Helper()
	type sample struct {
		pod string
		at  time.Time
	}
	want := map[sample]float64{}
	for _, p := range out.numbers(t, raw) {
		want[sample{p.attributes["pod"], p.at}] = p.value
		assert.Equal(t, "default/"+p.attributes["pod"], p.attributes["replica"])
	}
	spelled := out.numbers(t, canonical)
	assert.Greater(t, len(spelled), 20)
	for _, p := range spelled {
		assert.Equal(t, want[sample{p.attributes["pod"], p.at}], p.value, "%s at %s", p.attributes["pod"], p.at)
	}
}

// ofItself is what the collector tells of itself: the sum over the series that fit.
func ofItself(t *testing.T, port int, series string) (sum float64) {
	t.Helper()
	response, err := http.Get("http://" + binarytest.LoopbackAddress(port) + "/metrics")
	if err != nil {
		return 0 // it has not begun yet
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	for _, found := range regexp.MustCompile(`(?m)^`+series+`[^}]*} (\S+)$`).FindAllSubmatch(page, -1) {
		value, err := strconv.ParseFloat(string(found[1]), 64)
		require.NoError(t, err)
		sum += value
	}
	return sum
}

const federateOutageConfig = federateJob + `
processors:
  fleet_outlier: {interval: 2s, window: 20s, lateness: 2s, departed_after: 6s, alarm: null}
exporters:
  file: {path: {{ .Folder }}/out.json, flush_interval: 500ms}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    metrics: {receivers: [prometheus], processors: [fleet_outlier], exporters: [file]}
`

// TestFederateOutage: an engine that cannot be scraped is unreachable, as its own federated up says, though the federating
// server is up.
func TestFederateOutage(t *testing.T) {
	fleet := serveFleet(t, calm)
	prometheus := startPrometheus(t, render(t, federatedPrometheusConfig, fleet.targets))
	folder := t.TempDir()
	config := render(t, federateOutageConfig, map[string]any{"Prometheus": prometheus.address, "Folder": folder})
	binarytest.Start(t, binarytest.Collector(t), "--config="+binarytest.WriteFile(t, "config.yaml", config))
	out := file{filepath.Join(folder, "out.json")}

	last := func(state string) float64 {
		points := out.numbers(t, "llmfleet.fleet.replicas", "state", state)
		if len(points) == 0 {
			return -1
		}
		return points[len(points)-1].value
	}
	require.Eventually(t, func() bool { return last("judged") == 4 }, time.Minute, 500*time.Millisecond, "not all replicas were judged")
	fleet.stop()
	require.Eventually(t, func() bool { return last("unreachable") == 4 }, time.Minute, 500*time.Millisecond, "the engines were stopped")
	evaluations := len(out.numbers(t, "llmfleet.fleet.replicas", "state", "unreachable"))
	require.Eventually(t, func() bool {
		return len(out.numbers(t, "llmfleet.fleet.replicas", "state", "unreachable")) > evaluations+5
	}, time.Minute, 500*time.Millisecond, "nobody is told of any more")
	assert.Equal(t, 4.0, last("unreachable"), "longer than replicas may be silent: as targets, they are not gone")
}
