// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/test/binarytest"
)

// nodeAgent scrapes the pages of one node, and sends them on. While nobody takes them, they wait.
const nodeAgent = `
receivers:
  prometheus:
    config:
      scrape_configs:
        - job_name: node
          scrape_interval: {{ .Every }}
          scrape_timeout: {{ .Every }}
          static_configs:
{{- range .Targets }}
            - targets: ["{{ .Address }}"]
              labels: {namespace: fleetsim, pod: "{{ .Pod }}"}
{{- end }}
processors:
  batch: {timeout: 100ms}
exporters:
  otlp_grpc:
    endpoint: "{{ .To }}"
    tls: {insecure: true}
    sending_queue: {num_consumers: 1}
    retry_on_failure: {initial_interval: 100ms, max_interval: 1s}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    metrics: {receivers: [prometheus], processors: [batch], exporters: [otlp_grpc]}
`

// routerHere is what of the example's router is another where all run on one host.
const routerHere = `
receivers: {otlp: {protocols: {grpc: {endpoint: "{{ .Listen }}"}, http: {endpoint: "{{ .ListenHTTP }}"}}}}
exporters: {load_balancing: {resolver: {static: {hostnames: [{{ .Gateways }}]}}}}
service: {telemetry: {metrics: {level: none}}}
`

// gatewayHere is what of the example's gateway is another here. Seconds stand for minutes, and all that is derived goes to
// Prometheus with the gateway's name, beside some of the engines' own metrics.
const gatewayHere = `
receivers: {otlp: {protocols: {grpc: {endpoint: "{{ .Listen }}"}}}}
processors:
  fleet_identity: {interval: 2s, forget_after: 6s}
  fleet_outlier: {interval: 2s, window: 10s, lateness: 2s, departed_after: 6s, alarm: {pane: 4s, warmup: 12s, clear_after: 10s}}
  filter/derived:
    metrics:
      metric: ['not IsMatch(name, "^(llmfleet[.].*|up|vllm:num_requests_running|DCGM_FI_DEV_GPU_UTIL)$")']
exporters:
  prometheus_remote_write:
    http: {endpoint: "http://{{ .Prometheus }}/api/v1/write", tls: {insecure: true}}
    target_info: {enabled: false}
    disable_scope_info: true
    external_labels: {gateway: "{{ .Name }}"}
    max_batch_request_parallelism: 1 # Prometheus takes the samples of a series in order only
    remote_write_queue: {num_consumers: 1}
  file/events: {path: "{{ .Folder }}/events", flush_interval: 100ms}
extensions: {file_storage: {directory: "{{ .Folder }}/storage"}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    metrics: {exporters: [prometheus_remote_write, fleet_events]}
`

const departedAfter = 6 * time.Second

// tiers are agents, routers and gateways under way.
type tiers struct {
	t          *testing.T
	prometheus *server
	gateways   map[string]*gatewayTier
	routers    []*routerTier
}

type gatewayTier struct {
	address string
	folder  string
	process *binarytest.Process
}

type routerTier struct {
	grpc, http string
	process    *binarytest.Process
}

// startGateway starts one more gateway, which gets nothing yet.
func (s *tiers) startGateway(name string) {
	s.t.Helper()
	g := &gatewayTier{address: freeAddress(s.t), folder: s.t.TempDir()}
	s.gateways[name] = g
	here := render(s.t, gatewayHere, map[string]string{"Listen": g.address, "Prometheus": s.prometheus.address, "Name": name, "Folder": g.folder})
	g.process = startTier(s.t, "gateway", here, g.address)
}

// route gives the routers a list of gateways. They restart with it one after the other, as a Deployment's pods do.
func (s *tiers) route(gateways ...string) {
	s.t.Helper()
	var addresses []string
	for _, name := range gateways {
		addresses = append(addresses, fmt.Sprintf("%q", s.gateways[name].address))
	}
	for _, r := range s.routers {
		if r.process != nil {
			r.process.Stop(s.t)
		}
		here := render(s.t, routerHere, map[string]string{"Listen": r.grpc, "ListenHTTP": r.http, "Gateways": strings.Join(addresses, ", ")})
		r.process = startTier(s.t, "router", here, r.grpc)
	}
}

// startAgent starts the agent of one node.
func startAgent(t *testing.T, targets []target, every time.Duration, to string) {
	t.Helper()
	config := render(t, nodeAgent, map[string]any{"Targets": targets, "Every": every, "To": to})
	binarytest.Start(t, binarytest.Collector(t), "--config="+binarytest.WriteFile(t, "agent.yaml", config))
}

// events are what all gateways told.
func (s *tiers) events() (all []eventOut) {
	s.t.Helper()
	for _, g := range s.gateways {
		all = append(all, file{filepath.Join(g.folder, "events")}.events(s.t)...)
	}
	return all
}

// startTier runs an example of two tiers with some settings of its own, and waits until it listens.
func startTier(t *testing.T, example, here, address string, more ...string) *binarytest.Process {
	t.Helper()
	args := append([]string{
		"--config=../../examples/scaleout/" + example + ".yaml",
		"--config=" + binarytest.WriteFile(t, "here.yaml", here),
	}, more...)
	process := binarytest.Start(t, binarytest.Collector(t), args...)
	awaitListening(t, address)
	return process
}

// awaitListening waits until somebody takes connections at an address.
func awaitListening(t *testing.T, address string) {
	t.Helper()
	require.Eventually(t, func() bool {
		connection, err := net.Dial("tcp", address)
		return err == nil && connection.Close() == nil
	}, time.Minute, 50*time.Millisecond, "nobody listens at %s", address)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	return binarytest.LoopbackAddress(binarytest.FreePort(t))
}
