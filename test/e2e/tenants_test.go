// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/fleetsim/gateway"
	"github.com/llmfleet/llmfleet/test/binarytest"
)

const tenantsConfig = `
receivers:
  otlp: {protocols: {http: {endpoint: "{{ .OTLP }}"}}}
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
  tenant_share: {pane: 3s, window: 9s, lateness: 1s, half_life: 5m}
connectors:
  tenant_usage:
    interval: 1s
    top: {{ .Top }}
    tenant: {from: [tenant.id], id: plain}
    events: {window: 5s}
  fleet_events:
exporters:
  otlp_grpc/jaeger: {endpoint: "{{ .Jaeger }}", tls: {insecure: true}}
  otlp_http/sink: {logs_endpoint: "{{ .Sink }}/v1/logs", compression: none}
  prometheus: {endpoint: "{{ .Exporter }}", without_scope_info: true}
  prometheus_remote_write:
    http: {endpoint: "http://{{ .Prometheus }}/api/v1/write", tls: {insecure: true}}
    target_info: {enabled: false}
    disable_scope_info: true
    max_batch_request_parallelism: 1 # Prometheus takes the samples of a series in order only
    remote_write_queue: {num_consumers: 1}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [tenant_usage, otlp_grpc/jaeger]}
    metrics:
      receivers: [prometheus, tenant_usage]
      processors: [tenant_share]
      exporters: [prometheus, prometheus_remote_write, fleet_events]
    logs: {receivers: [tenant_usage, fleet_events], exporters: [otlp_http/sink]}
`

// tenantsPrometheusConfig scrapes the collector, beside what it writes by itself.
const tenantsPrometheusConfig = `
scrape_configs:
  - job_name: scraped
    honor_labels: true
    scrape_interval: 1s
    scrape_timeout: 1s
    static_configs: [{targets: ["{{ .Exporter }}"], labels: {by: scrape}}]
`

const (
	burstTenant = "initech"
	burstFrom   = 75 * time.Second
	topTenants  = 8
)

// shared is a fleet of 24 tenants, one of which bursts.
var shared = fleetsim.Scenario{
	Seed: 1,
	Fleets: []fleetsim.Fleet{{
		Name: "chat", Engine: fleetsim.VLLM, ModelName: "test/chat-8b", Replicas: 4,
		Limits: fleetsim.Limits{MaxNumBatchedTokens: 2048},
		Latency: fleetsim.Latency{
			Base: 15 * time.Millisecond, PerRunning: 20 * time.Microsecond, PerPrefillToken: 40 * time.Microsecond,
			PodNoise: 0.02, DriftNoise: 0.02,
		},
		Prompt:         fleetsim.Tokens{Mean: 1000, CV: new(0.5)},
		Output:         fleetsim.Tokens{Mean: 10, CV: new(0.5), Max: 400},
		PrefixHitRatio: 0.2,
		Arrivals:       fleetsim.Arrivals{Rate: 32},
		Tenants: fleetsim.Tenants{
			Count: 20, Tiers: []string{"standard"},
			Named: []fleetsim.Tenant{
				{Name: "acme", Share: 0.2, Tier: "gold"},
				{Name: "globex", Share: 0.12, Tier: "gold"},
				{Name: "umbrella", Share: 0.08},
				{Name: burstTenant, Share: 0.05},
			},
		},
	}},
	Faults: []fleetsim.Fault{{Kind: fleetsim.TrafficSurge, Tenant: burstTenant, Factor: 4, PromptFactor: 6, From: burstFrom}},
}

// TestTenants: a gateway's spans and the engines' pages go through the built collector. Prometheus and the log records both
// hold every token, Jaeger the requests, and the tenant that bursts, and no other, is called noisy.
func TestTenants(t *testing.T) {
	t.Parallel()
	jaeger, sink := startJaeger(t), startLogSink(t)
	values := map[string]any{
		"OTLP":     binarytest.LoopbackAddress(binarytest.FreePort(t)),
		"Exporter": binarytest.LoopbackAddress(binarytest.FreePort(t)),
		"Jaeger":   jaeger.OTLP, "Sink": sink.url, "Top": topTenants,
	}
	prometheus := startPrometheus(t, render(t, tenantsPrometheusConfig, values))
	values["Prometheus"] = prometheus.address
	traffic := startTraffic(t, shared, "http://"+values["OTLP"].(string))
	values["Targets"] = traffic.targets
	collector := binarytest.Start(t, binarytest.Collector(t), "--config="+binarytest.WriteFile(t, "config.yaml", render(t, tenantsConfig, values)))

	onset := awaitOnset(t, sink)
	assertCulprit(t, prometheus, traffic.start, onset)
	sent := traffic.stop(t)
	t.Logf("sent: %v", sent)
	require.Eventually(t, func() bool { return assert.ObjectsAreEqual(sent, prometheus.increases(t)) },
		30*time.Second, time.Second, "in Prometheus: %v", prometheus.increases(t))
	assertRequests(t, jaeger)
	collector.Stop(t) // tells the window that is still open
	assert.Equal(t, sent, sink.usage())
}

// account is what was counted by type of tokens, and requests by outcome.
type account map[string]uint64

// traffic is a fleet under way, and the gateway before it.
type traffic struct {
	start   time.Time
	targets []target
	spans   *gateway.Exporter
	end     func() // stops the fleet, then sends what is left

	mu   sync.Mutex
	sent account
}

// startTraffic serves a fleet in real time, and sends a gateway's spans of its requests, until it is stopped.
func startTraffic(t *testing.T, scenario fleetsim.Scenario, endpoint string) *traffic {
	t.Helper()
	f := &traffic{sent: account{}}
	var err error
	f.spans, err = gateway.New(gateway.Options{Endpoint: endpoint})
	require.NoError(t, err)
	served := serveFleet(t, scenario, f.spans.Add, f.count)
	f.start, f.targets = served.start, served.targets
	ctx, cancel := context.WithCancel(context.Background())
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		f.spans.Run(ctx)
	}()
	f.end = sync.OnceFunc(func() {
		served.stop()
		cancel()
		<-sent
	})
	t.Cleanup(f.end)
	return f
}

// count adds up what the requests took.
func (f *traffic) count(ended []fleetsim.RequestRecord) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range ended {
		r := &ended[i]
		f.sent["input_uncached"] += uint64(r.Prompt - r.Cached)
		f.sent["input_cached"] += uint64(r.Cached)
		f.sent["output"] += uint64(r.Output)
		if r.Status == http.StatusOK {
			f.sent["ok"]++
		}
	}
}

// stop ends the traffic, and returns what was sent in all.
func (f *traffic) stop(t *testing.T) account {
	t.Helper()
	f.end()
	_, dropped := f.spans.Counts()
	require.Zero(t, dropped, "spans that the collector did not take")
	return f.sent
}

// awaitOnset waits until a noisy neighbour is told.
func awaitOnset(t *testing.T, sink *logSink) eventOut {
	t.Helper()
	require.Eventually(t, func() bool { return len(sink.named("llmfleet.tenant.noisy.onset")) > 0 },
		burstFrom+2*time.Minute, 500*time.Millisecond, "nobody is noisy")
	onset := sink.named("llmfleet.tenant.noisy.onset")[0]
	t.Log(onset.sentence)
	return onset
}

// assertCulprit: it is the tenant that bursts, since it does; Prometheus says so too, however it came to know.
func assertCulprit(t *testing.T, prometheus *server, start time.Time, onset eventOut) {
	t.Helper()
	assert.Equal(t, burstTenant, onset.attributes["tenant"])
	assert.Regexp(t, `^Tenant initech of test/chat-8b is a noisy neighbour: [\d.]+ % of the uncached input, usually [\d.]+ %; `+
		`inter-token latency [\d.]+ ms, [\d.]+ ms without what it sends beyond its usual; since \d\d:\d\d:\d\d UTC\.$`, onset.sentence)
	assert.Less(t, onset.attributes["llmfleet.tenant.usual_share_ratio"], 0.2, "it had 5 % of the requests")
	assert.Greater(t, onset.attributes["llmfleet.tenant.token_share_ratio.input_uncached"], 0.2, "of half of the input")
	lasts, ok := onset.attributes["llmfleet.tenant.noisy_duration"].(float64)
	require.True(t, ok)
	since := onset.at.Add(-time.Duration(lasts * float64(time.Second)))
	// More and more requests come for ten seconds until all of the burst do.
	assert.WithinRange(t, since, start.Add(burstFrom-2*3*time.Second), start.Add(burstFrom+10*time.Second+2*3*time.Second))

	for _, by := range []string{`by=""`, `by="scrape"`} {
		query := "llmfleet_tenant_noisy{" + by + "} == 1"
		require.Eventually(t, func() bool { return len(prometheus.at(time.Now(), query)) > 0 }, settle, 100*time.Millisecond, query)
		noisy := prometheus.at(time.Now(), "count by (tenant) (max_over_time(llmfleet_tenant_noisy{"+by+"}[5m]) == 1)")
		require.Len(t, noisy, 1)
		assert.Equal(t, model.LabelValue(burstTenant), noisy[0].Metric["tenant"])
	}
}

// increases are those of all accounts of tenants that were written, over all of the test. A counter that falls is one that
// began anew.
func (s *server) increases(t *testing.T) account {
	t.Helper()
	sum := account{}
	for _, counter := range []struct{ name, of string }{
		{"llmfleet_tenant_tokens_total", "token_type"},
		{"llmfleet_tenant_requests_total", "outcome"},
	} {
		result, _, err := s.api.Query(context.Background(), counter.name+`{by=""}[10m]`, time.Now())
		require.NoError(t, err)
		named := map[model.LabelValue]bool{}
		for _, series := range result.(model.Matrix) {
			named[series.Metric["tenant"]] = true
			before := 0.0
			for _, sample := range series.Values {
				value := float64(sample.Value)
				if value < before {
					before = 0
				}
				sum[string(series.Metric[model.LabelName(counter.of)])] += uint64(value - before)
				before = value
			}
		}
		assert.True(t, len(named) == 0 || named["__other__"], "%s tells of no other tenants", counter.name)
	}
	for name, n := range sum {
		if n == 0 {
			delete(sum, name)
		}
	}
	return sum
}

// usage is what all records of tenants add up to.
func (s *logSink) usage() account {
	sum := account{}
	for _, r := range s.named("llmfleet.tenant.usage") {
		for _, kind := range []string{"tokens.input_uncached", "tokens.input_cached", "tokens.output", "requests.ok", "requests.error", "requests.throttled"} {
			if n, ok := r.attributes["llmfleet.tenant."+kind].(int64); ok && n > 0 {
				_, name, _ := strings.Cut(kind, ".")
				sum[name] += uint64(n)
			}
		}
	}
	return sum
}

// assertRequests: the requests of a tenant are found by its name, with what they took.
func assertRequests(t *testing.T, jaeger *traceStore) {
	t.Helper()
	for _, tenant := range []string{burstTenant, "tenant-1"} {
		spans := jaeger.spans("ai-gateway", "tenant.id", tenant)
		require.NotEmpty(t, spans, tenant)
		for _, span := range spans {
			assert.Equal(t, tenant, span["tenant.id"])
			input, err := strconv.Atoi(span["gen_ai.usage.input_tokens"])
			assert.NoError(t, err, fmt.Sprint(span))
			assert.Positive(t, input)
		}
	}
}
