// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/llmfleet/llmfleet/test/binarytest"
)

// The queries of record over the test's window of 20 s, with the exact increase in place of the extrapolating rate.
const (
	replicaQuantile = `histogram_quantile(0.95, sum by (le, pod, model_name) (increase(vllm:time_to_first_token_seconds_bucket[20s] anchored)))`
	fleetQuantile   = `histogram_quantile(0.95, sum by (le, model_name) (increase(vllm:time_to_first_token_seconds_bucket[20s] anchored)))`
	spread          = `max by (model_name) (` + replicaQuantile + `) / ` + fleetQuantile
	imbalance       = `max by (model_name) (vllm:num_requests_waiting) / clamp_min(avg by (model_name) (vllm:num_requests_waiting), 1)`
)

// settle is how long a sample may be on its way into Prometheus.
const settle = 5 * time.Second

const exactConfig = `
receivers:
  prometheus:
    config:
      scrape_configs:
        - job_name: vllm
          scrape_interval: 1s
          scrape_timeout: 1s
          static_configs:
{{- range .Targets }}
            - targets: ["{{ .Address }}"]
              labels: {namespace: default, pod: "{{ .Pod }}"}
{{- end }}
processors:
  fleet_outlier:
    interval: 2s
    window: 20s
    lateness: 2s
    signals: [ttft]
    quantiles: [0.95]
    compare_to: fleet
    group_by: [model_name]
    min_observations: 1
    min_replicas: 1
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
    metrics: {receivers: [prometheus], processors: [fleet_outlier], exporters: [prometheus_remote_write]}
`

// TestExact: the collector writes what it scraped and what it derived to one Prometheus, so both see the same, and the
// derived figures at every T are what Prometheus answers at T.
func TestExact(t *testing.T) {
	t.Parallel()
	prometheus := startPrometheus(t, "")
	config := render(t, exactConfig, map[string]any{"Targets": startFleet(t, crowded), "Prometheus": prometheus.address})
	binarytest.Start(t, binarytest.Collector(t), "--config="+binarytest.WriteFile(t, "config.yaml", config))

	const evaluations = 5
	for _, derived := range []struct{ metric, query string }{
		{"llmfleet_fleet_latency_spread_ratio", spread},
		{"llmfleet_fleet_latency_seconds", fleetQuantile},
		{"llmfleet_fleet_waiting_imbalance_ratio", imbalance},
		{`llmfleet_replica_latency_seconds{pod="` + slowReplica + `"}`, replicaQuantile + ` and on (pod) up{pod="` + slowReplica + `"}`},
	} {
		// At the first T some replicas may still be warming: they were first scraped up to a second apart.
		samples := prometheus.awaitSamples(derived.metric, 1+evaluations)[1:]
		for _, sample := range samples[:evaluations] {
			at := sample.Timestamp.Time()
			time.Sleep(time.Until(at.Add(settle)))
			want := prometheus.one(at, derived.query)
			assert.InDelta(t, want, float64(sample.Value), 1e-9*want, "%s at %s", derived.metric, at)
			t.Logf("%s at %s is %v", derived.metric, at.Format(time.TimeOnly), want)
		}
	}
}
