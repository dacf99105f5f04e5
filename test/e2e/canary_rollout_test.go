// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/test/binarytest"
)

// The pipeline metrics/in has what the scrapes gave: a processor that may change it gets a copy of its own.
const canaryConfig = `
receivers:
  prometheus:
    config:
      scrape_configs:
        - job_name: vllm
          scrape_interval: 1s
          scrape_timeout: 1s
          http_sd_configs: [{url: "{{ .Pods }}", refresh_interval: 1s}]
processors:
  canary_delta: {pane: {{ .Pane }}, lateness: {{ .Pane }}}
  attributes: {actions: [{key: no.such.attribute, action: delete}]}
  filter: {metrics: {metric: ['not IsMatch(name, "^(llmfleet[.]|vllm:time_to_first_token_seconds|vllm:request_generation_tokens)")']}}
connectors:
  fleet_events:
  forward:
exporters:
  otlp_http/in: {metrics_endpoint: "{{ .Metrics }}/in", compression: none}
  otlp_http/out: {metrics_endpoint: "{{ .Metrics }}/out", compression: none}
  otlp_http/events: {logs_endpoint: "{{ .Logs }}/v1/logs", compression: none}
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
    metrics/in: {receivers: [prometheus], processors: [attributes], exporters: [otlp_http/in]}
    metrics: {receivers: [prometheus], processors: [canary_delta], exporters: [otlp_http/out, fleet_events, forward]}
    metrics/stored: {receivers: [forward], processors: [filter], exporters: [prometheus, prometheus_remote_write]}
    logs: {receivers: [fleet_events], exporters: [otlp_http/events]}
`

const (
	canaryPane  = 4 * time.Second
	canaryFrom  = 20 * time.Second
	oldRevision = "1f0c9b2"
	newRevision = "7a31e04"
)

// rollout replaces three of twenty replicas by pods of a new revision, whose caches are cold at first.
func rollout(revision fleetsim.Fault) fleetsim.Scenario {
	revision.Kind, revision.Mode, revision.Revision = fleetsim.NewRevision, fleetsim.Replace, newRevision
	revision.Replicas, revision.From, revision.WarmUp = []int{17, 18, 19}, canaryFrom, 6*time.Second
	return fleetsim.Scenario{
		Seed: 1,
		Fleets: []fleetsim.Fleet{{
			Name: "chat", Engine: fleetsim.VLLM, ModelName: "test/chat-8b", Replicas: 20, Revisions: []string{oldRevision},
			Latency: fleetsim.Latency{
				Base: 12 * time.Millisecond, PerRunning: 100 * time.Microsecond, PerPrefillToken: 40 * time.Microsecond,
				PodNoise: 0.02, DriftNoise: 0.02,
			},
			Prompt:         fleetsim.Tokens{Mean: 1000, CV: new(0.5)},
			Output:         fleetsim.Tokens{Mean: 20, CV: new(0.3), Max: 60},
			PrefixHitRatio: 0.3,
			Arrivals:       fleetsim.Arrivals{Rate: 120},
		}},
		Faults: []fleetsim.Fault{revision},
	}
}

// canaryRun is a rollout under way, through the built collector.
type canaryRun struct {
	prometheus *server
	collector  *binarytest.Process
	metrics    *metricSink
	events     *logSink
}

func startCanary(t *testing.T, revision fleetsim.Fault) *canaryRun {
	t.Helper()
	run := &canaryRun{metrics: startMetricSink(t), events: startLogSink(t)}
	values := map[string]any{
		"Pane": canaryPane, "Metrics": run.metrics.url, "Logs": run.events.url,
		"Exporter": binarytest.LoopbackAddress(binarytest.FreePort(t)),
	}
	run.prometheus = startPrometheus(t, render(t, tenantsPrometheusConfig, values))
	values["Prometheus"] = run.prometheus.address
	values["Pods"] = "http://" + startFleet(t, rollout(revision))[0].Address + "/targets"
	run.collector = binarytest.Start(t, binarytest.Collector(t), "--config="+binarytest.WriteFile(t, "config.yaml", render(t, canaryConfig, values)))
	return run
}

// analyse measures the shipped metric once a pane, as Argo Rollouts does, until the run has ended.
func (c *canaryRun) analyse(t *testing.T) phase {
	t.Helper()
	run := analysisRun{metric: shippedTemplate(t).metric(t, map[string]string{
		"prometheus": "http://" + c.prometheus.address, "model": "test/chat-8b", "canary": newRevision, "namespace": fleetsim.Namespace,
	})}
	tick := time.NewTicker(canaryPane)
	defer tick.Stop()
	for range tick.C {
		require.True(t, c.collector.Running(), "the collector ended")
		measured, said := run.metric.measure()
		t.Log(measured, said)
		if end := run.add(measured); end != running {
			return end
		}
	}
	return running
}

// TestCanaryFails: a revision that answers later and shorter fails within fifteen panes after its burn-in, and the gate says
// so.
func TestCanaryFails(t *testing.T) {
	t.Parallel()
	run := startCanary(t, fleetsim.Fault{Factor: 1, PrefillFactor: 1.5, OutputFactor: 0.7, PromptFactor: 1})
	assert.Equal(t, failed, run.analyse(t))
	for _, measure := range []string{"ttft", "output_length"} {
		require.Eventually(t, func() bool { return run.metrics.verdicts()[measure].last() == "fail" }, time.Minute, canaryPane, "%s does not fail", measure)
	}

	overall := run.metrics.verdicts()["overall"]
	t.Log(overall)
	assert.Equal(t, []string{"inconclusive", "fail"}, overall.said(), "no pass before")
	compared := run.metrics.at(overall[1].at, "llmfleet.canary.duration")
	require.Len(t, compared, 1)
	assert.LessOrEqual(t, compared[0].value, (15 * canaryPane).Seconds())
	driver := run.metrics.at(overall[1].at, "llmfleet.canary.driver")
	driver = slices.DeleteFunc(driver, func(p numberOut) bool { return p.value != 1 })
	require.Len(t, driver, 1)
	assert.Contains(t, []string{"ttft", "itl"}, driver[0].attributes["measure"], "longer prefills make tokens of others wait, too")

	run.assertFigures(t)
	run.assertSeries(t)
	run.assertTold(t)
}

// TestCanaryPasses: the same rollout of the same code passes, and the gate says so.
func TestCanaryPasses(t *testing.T) {
	t.Parallel()
	run := startCanary(t, fleetsim.Fault{Factor: 1, PrefillFactor: 1, OutputFactor: 1, PromptFactor: 1})
	assert.Equal(t, successful, run.analyse(t))
	overall := run.metrics.verdicts()["overall"]
	t.Log(overall)
	assert.Equal(t, []string{"inconclusive", "pass"}, overall.said())
	run.assertSeries(t)
	run.assertTold(t)
}

// assertFigures: what is said of both arms is what Prometheus answers for the very time in which they were compared.
func (c *canaryRun) assertFigures(t *testing.T) {
	t.Helper()
	last := numberOut{}
	require.Eventually(t, func() bool {
		last = c.metrics.latest("llmfleet.canary.duration")
		return last.value >= (8 * canaryPane).Seconds()
	}, time.Minute, time.Second, "the comparison does not go on")
	require.Eventually(t, func() bool {
		stored := c.prometheus.at(last.at, `llmfleet_canary_duration_seconds{by=""}`)
		return len(stored) == 1 && float64(stored[0].Value) == last.value
	}, time.Minute, 100*time.Millisecond, "what came out was not stored")
	of := func(metric, measure, statistic string) float64 {
		return c.prometheus.one(last.at, fmt.Sprintf(`llmfleet_canary_%s{by="",measure=%q,statistic=%q}`, metric, measure, statistic))
	}
	quantile := func(q float64, family, revision string) float64 {
		return c.prometheus.one(last.at, fmt.Sprintf(`histogram_quantile(%v, sum by (le) (increase(%s_bucket{by="",model_revision=%q}[%.0fs] anchored)))`,
			q, family, revision, last.value))
	}
	for _, m := range []struct{ of, measure, family string }{
		{"latency_%svalue_seconds", "ttft", "vllm:time_to_first_token_seconds"},
		{"length_%svalue", "output_length", "vllm:request_generation_tokens"},
	} {
		for statistic, q := range map[string]float64{"p50": 0.5, "p95": 0.95} {
			canary, baseline := quantile(q, m.family, newRevision), quantile(q, m.family, oldRevision)
			about := fmt.Sprint(m.measure, " ", statistic, " at ", last.at)
			assert.InEpsilon(t, canary, of(fmt.Sprintf(m.of, ""), m.measure, statistic), 1e-9, about)
			assert.InEpsilon(t, baseline, of(fmt.Sprintf(m.of, "baseline_"), m.measure, statistic), 1e-9, about)
			assert.InEpsilon(t, canary/baseline, of("ratio", m.measure, statistic), 1e-9, about)
		}
	}
	assert.LessOrEqual(t, of("low_ratio", "ttft", "p50"), of("ratio", "ttft", "p50"))
	assert.InDelta(t, 1.3, of("ratio", "ttft", "mean"), 0.1, "as injected")
	assert.InDelta(t, 0.7, of("ratio", "output_length", "mean"), 0.05, "as injected")
}

// canarySeries are the series that every comparison of engines without errors has in Prometheus.
var canarySeries = []string{
	"verdict", "reason", "driver", "evidence", "observations", "ratio", "low_ratio", "high_ratio",
	"replicas", "age_seconds", "duration_seconds",
	"latency_value_seconds", "latency_baseline_value_seconds", "latency_delta_seconds", "latency_boundary_seconds",
	"share_value_ratio", "share_baseline_value_ratio", "share_delta_ratio",
	"length_value", "length_baseline_value", "length_delta", "length_boundary",
	"rate_value_per_second", "rate_baseline_value_per_second", "rate_delta_per_second",
}

// assertSeries: all series have the labels of the fleet and the names of the variants, and come with a scrape as they do by
// remote write.
func (c *canaryRun) assertSeries(t *testing.T) {
	t.Helper()
	of := model.LabelSet{
		"namespace": fleetsim.Namespace, "model_name": "test/chat-8b", "engine_name": "vllm", "canary": newRevision, "baseline": oldRevision,
	}
	names := map[string]map[string]bool{"": {}, "scrape": {}}
	for _, sample := range c.prometheus.at(time.Now(), `{__name__=~"llmfleet_.+"}`) {
		labels := maps.Clone(model.LabelSet(sample.Metric))
		name := strings.TrimPrefix(string(labels["__name__"]), "llmfleet_canary_")
		names[string(labels["by"])][name] = true
		for _, own := range []model.LabelName{
			"__name__", "by", "job", "instance", "measure", "statistic", "arm", "verdict", "reason",
		} {
			delete(labels, own)
		}
		assert.Equal(t, of, labels, name)
	}
	for by, found := range names {
		for _, told := range []string{"latency_boundary_seconds", "length_boundary"} { // where there is some evidence of a difference
			found[told] = true
		}
		assert.ElementsMatch(t, canarySeries, slices.Collect(maps.Keys(found)), "by %q", by)
	}
	one := c.prometheus.at(time.Now(), `sum by (by) (llmfleet_canary_verdict{measure="overall"})`)
	require.Len(t, one, 2)
	for _, sample := range one {
		assert.EqualValues(t, 1, sample.Value, "exactly one verdict is given")
	}
}

// assertTold: each turn of the overall verdict is one record, and so is each measure's that fails apart from it; and what was
// scraped came out as it was.
func (c *canaryRun) assertTold(t *testing.T) {
	t.Helper()
	c.collector.Stop(t)
	turned := c.metrics.verdicts()
	failedAt := time.Time{}
	for _, turn := range turned["overall"] {
		if turn.verdict == "fail" {
			failedAt = turn.at
		}
	}
	var want []string
	for measure, turns := range turned {
		for i, turn := range turns {
			if i > 0 && measure == "overall" || measure != "overall" && turn.verdict == "fail" && !turn.at.Equal(failedAt) {
				want = append(want, fmt.Sprint("llmfleet.canary.verdict.", turn.verdict, " ", measure, " ", turn.at))
			}
		}
	}
	var told []string
	for _, e := range c.events.all() {
		t.Log(e.sentence)
		told = append(told, fmt.Sprint(e.name, " ", e.attributes["measure"], " ", e.at))
		assert.Equal(t, newRevision, e.attributes["canary"])
		assert.Equal(t, oldRevision, e.attributes["baseline"])
	}
	assert.ElementsMatch(t, want, told)

	in, out := c.metrics.requests("/in"), c.metrics.requests("/out")
	assert.NotEmpty(t, in)
	assert.Equal(t, in, out, "what was scraped, by hash")
}
