// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/binarytest"
)

const agentConfig = `
receivers:
  prometheus:
    config:
      scrape_configs:
        - job_name: engines
          scrape_interval: 1s
          scrape_timeout: 1s
          static_configs:
{{- range .Targets }}
            - targets: ["{{ .Address }}"]
              labels: {namespace: default, pod: "{{ .Pod }}"}
{{- end }}
exporters:
  file: {path: {{ .Folder }}/sent.json, flush_interval: 500ms}
  otlp_grpc:
    endpoint: {{ .Gateway }}
    tls: {insecure: true}
    sending_queue: {num_consumers: 1} # pages stay in their order
    retry_on_failure: {initial_interval: 500ms, max_interval: 1s}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {metrics: {receivers: [prometheus], exporters: [file, otlp_grpc]}}
`

const otlpGatewayConfig = `
receivers: {otlp: {protocols: {grpc: {endpoint: "{{ .Gateway }}"}}}}
processors:
  fleet_outlier:
    interval: 2s
    window: 20s
    lateness: 2s
    alarm: {pane: 6s, warmup: 20s, clear_after: 1m}
    storage: file_storage
exporters:
  file: {path: {{ .Folder }}/{{ .Output }}, flush_interval: 500ms}
extensions:
  file_storage: {directory: {{ .Folder }}/storage, create_directory: true}
service:
  extensions: [file_storage]
  telemetry: {metrics: {level: none}}
  pipelines: {metrics: {receivers: [otlp], processors: [fleet_outlier], exporters: [file]}}
`

// TestOTLPFromAgents: an agent scrapes, a gateway judges what the agent sends, and finds the slow replica. The gateway is
// restarted: the agent keeps what it cannot send. Nothing is lost or comes twice, no time is told of twice, the alarm
// stays, and nobody else is blamed.
func TestOTLPFromAgents(t *testing.T) {
	values := map[string]any{
		"Targets": startFleet(t, crowded), "Folder": t.TempDir(), "Gateway": binarytest.LoopbackAddress(binarytest.FreePort(t)),
	}
	in := func(name string) file { return file{filepath.Join(values["Folder"].(string), name)} }
	gateway := func(output string) *binarytest.Process {
		values["Output"] = output
		return binarytest.Start(t, binarytest.Collector(t), "--config="+binarytest.WriteFile(t, "gateway.yaml", render(t, otlpGatewayConfig, values)))
	}
	first := gateway("first.json")
	agent := binarytest.Start(t, binarytest.Collector(t), "--config="+binarytest.WriteFile(t, "agent.yaml", render(t, agentConfig, values)))
	require.Eventually(t, func() bool { return len(blamed(t, in("first.json"))) > 0 }, 3*time.Minute, time.Second, "the slow replica was not found")

	first.Stop(t)
	retries := regexp.MustCompile(`Exporting failed. Will retry`)
	require.Eventually(t, func() bool { return retries.MatchString(agent.Output()) }, time.Minute, 200*time.Millisecond, "the agent did not notice")
	second := gateway("second.json")
	require.Eventually(t, func() bool { return len(evaluations(t, in("second.json"))) > 20 }, 2*time.Minute, time.Second, "nothing was judged any more")
	agent.Stop(t)
	second.Stop(t)

	only := []string{"default/" + slowReplica}
	assert.Equal(t, only, blamed(t, in("first.json")))
	assert.Equal(t, only, blamed(t, in("second.json")))
	told := append(in("first.json").metrics(t), in("second.json").metrics(t)...)
	assert.Equal(t, []float64{0, 1}, courseOf(told, "default/"+slowReplica), "an onset, and no other")
	assertOnce(t, told)
	sent, arrived := samplesOf(in("sent.json").metrics(t)), samplesOf(told)
	assert.Greater(t, len(sent), 4*60)
	assert.Equal(t, sent, arrived)
}

// blamed are the replicas that were ever called outliers, in the order of the first time.
func blamed(t *testing.T, out file) (all []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, p := range out.numbers(t, "llmfleet.replica.outlier") {
		if replica := p.attributes["replica"]; p.value == 1 && !seen[replica] {
			seen[replica] = true
			all = append(all, replica)
		}
	}
	return all
}

// courseOf are the values of a replica's flag, without repetitions.
func courseOf(told []numberOut, replica string) (course []float64) {
	for _, p := range told {
		if p.metric == "llmfleet.replica.outlier" && p.attributes["replica"] == replica && (len(course) == 0 || course[len(course)-1] != p.value) {
			course = append(course, p.value)
		}
	}
	return course
}

// assertOnce: of no derived series a figure is told twice for one time.
func assertOnce(t *testing.T, told []numberOut) {
	t.Helper()
	seen := map[string]bool{}
	for _, p := range told {
		if !strings.HasPrefix(p.metric, "llmfleet.") {
			continue
		}
		key := fmt.Sprint(p.metric, p.attributes, p.at)
		assert.False(t, seen[key], "%s is told twice", key)
		seen[key] = true
	}
	assert.NotEmpty(t, seen)
}

// samplesOf are how often each replica's counter of tokens came, by time.
func samplesOf(points []numberOut) map[judged]int {
	samples := map[judged]int{}
	for _, p := range points {
		if p.metric == "vllm:generation_tokens_total" {
			samples[judged{p.at, p.attributes["pod"]}]++
		}
	}
	return samples
}
