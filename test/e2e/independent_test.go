// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/binarytest"
)

// The queries of record as users have them, over the test's window.
const (
	ratedQuantile = `histogram_quantile(0.95, sum by (le, pod, model_name) (rate(vllm:time_to_first_token_seconds_bucket[20s])))`
	ratedSpread   = `max by (model_name) (` + ratedQuantile + `)
		/ histogram_quantile(0.95, sum by (le, model_name) (rate(vllm:time_to_first_token_seconds_bucket[20s])))`
)

const independentPrometheusConfig = `
scrape_configs:
  - job_name: vllm
    scrape_interval: 1s
    scrape_timeout: 1s
    static_configs:
{{- range .Targets }}
      - targets: ["{{ .Address }}"]
        labels: {namespace: default, pod: "{{ .Pod }}"}
{{- end }}
  - job_name: llmfleet
    honor_labels: true
    scrape_interval: 1s
    scrape_timeout: 1s
    static_configs: [{targets: ["{{ .Exporter }}"]}]
`

const independentCollectorConfig = `
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
  filter:
    metrics: {metric: ['not IsMatch(name, "^llmfleet[.]")']}
exporters:
  prometheus:
    endpoint: "{{ .Exporter }}"
    send_timestamps: true # so that each figure is stored at the T it speaks of
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    metrics: {receivers: [prometheus], processors: [fleet_outlier, filter], exporters: [prometheus]}
`

// TestIndependent: Prometheus and the collector each scrape the engines at their own instants. Their figures are close,
// and both name the slow replica.
func TestIndependent(t *testing.T) {
	t.Parallel()
	values := map[string]any{
		"Targets":  startFleet(t, calm),
		"Exporter": binarytest.LoopbackAddress(binarytest.FreePort(t)),
	}
	prometheus := startPrometheus(t, render(t, independentPrometheusConfig, values))
	config := render(t, independentCollectorConfig, values)
	binarytest.Start(t, binarytest.Collector(t), "--config="+binarytest.WriteFile(t, "config.yaml", config))

	const evaluations = 5
	samples := prometheus.awaitSamples("llmfleet_fleet_latency_spread_ratio", 1+evaluations)[1:]
	var deviations []float64
	for _, sample := range samples[:evaluations] {
		at := sample.Timestamp.Time()
		time.Sleep(time.Until(at.Add(settle)))
		rated := prometheus.one(at, ratedSpread)
		deviations = append(deviations, math.Abs(float64(sample.Value)/rated-1))
		assert.Equal(t, slowReplica, prometheus.slowest(at, ratedQuantile))
		assert.Equal(t, slowReplica, prometheus.slowest(at, "llmfleet_replica_latency_ratio"))
	}
	slices.Sort(deviations)
	// The median: in any one window, requests of the second by which the scrapes lie apart may weigh.
	assert.Less(t, deviations[evaluations/2], 0.05, "%v", deviations)
	t.Logf("deviations from Prometheus' own rate: %.4f", deviations)
}

// slowest names the pod of the largest answer.
func (s *server) slowest(at time.Time, query string) string {
	s.t.Helper()
	vector := s.at(at, "topk(1, "+query+")")
	require.Len(s.t, vector, 1)
	return string(vector[0].Metric[model.LabelName("pod")])
}
