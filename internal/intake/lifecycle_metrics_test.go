// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

func readMetrics(l *Lifecycle, md pmetric.Metrics) (facts []lifecycle.Fact) {
	l.ReadMetrics(md, func(f *lifecycle.Fact) { facts = append(facts, *f) })
	return facts
}

// metricsOf is a page of one resource, and what adds a gauge, or a counter whose
// name ends in _total, to it.
func metricsOf(tb testing.TB, pod string) (pmetric.Metrics, func(name string, at window.Instant, value float64, labels map[string]any) pmetric.NumberDataPoint) {
	tb.Helper()
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	if pod != "" {
		rm.Resource().Attributes().PutStr("k8s.pod.uid", pod)
	}
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
	return md, func(name string, at window.Instant, value float64, labels map[string]any) pmetric.NumberDataPoint {
		m := metrics.AppendEmpty()
		m.SetName(name)
		var points pmetric.NumberDataPointSlice
		if len(name) > 6 && name[len(name)-6:] == "_total" {
			m.SetEmptySum().SetIsMonotonic(true)
			points = m.Sum().DataPoints()
		} else {
			points = m.SetEmptyGauge().DataPoints()
		}
		point := points.AppendEmpty()
		point.SetDoubleValue(value)
		point.SetTimestamp(pcommon.Timestamp(at))
		require.NoError(tb, point.Attributes().FromRaw(labels))
		return point
	}
}

// TestTimesOfKubeStateMetrics: of the pods that its labels name, not of its own;
// later stages by the clock of the pod's node.
func TestTimesOfKubeStateMetrics(t *testing.T) {
	now := when(t, "2026-08-05T08:50:00Z")
	md, add := metricsOf(t, "uid-of-ksm")
	pod := map[string]any{"uid": "uid-1", "exported_pod": "qwen-0", "exported_namespace": "serving", "pod": "ksm-0", "namespace": "kube-system"}
	container := map[string]any{"uid": "uid-1", "pod": "qwen-0", "namespace": "serving", "container": "engine"}
	add("kube_pod_created", now, 1785919348, pod) // 2026-08-05T08:42:28Z
	add("kube_pod_status_scheduled_time", now, 1785919349, pod)
	add("kube_pod_status_initialized_time", now, 1785919350, pod)
	add("kube_pod_container_state_started", now, 1785919360, container)
	add("kube_pod_status_ready_time", now, 1785919400, pod)
	add("kube_pod_info", now, 1, map[string]any{"uid": "uid-1", "node": "gpu-1", "exported_pod": "qwen-0"})
	add("kube_pod_status_ready_time", now, 0, pod)
	add("kube_pod_status_ready_time", now, math.NaN(), pod)
	add("kube_pod_status_ready_time", now, math.Inf(1), pod)
	add("kube_pod_created", now, 7, pod).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))

	created := when(t, "2026-08-05T08:42:28Z")
	fact := func(name lifecycle.Name, after time.Duration, clock lifecycle.Clock, container string) lifecycle.Fact {
		return lifecycle.Fact{
			Pod: "uid-1", Name: name, At: created.Add(after), Grain: time.Second, Clock: clock, Container: container, Attempt: -1,
			About: &lifecycle.Pod{Name: "qwen-0", Namespace: "serving", Node: "gpu-1"},
		}
	}
	node := lifecycle.Clock{Kind: lifecycle.Node, Of: "gpu-1"}
	assert.Equal(t, []lifecycle.Fact{
		fact(lifecycle.Created, 0, lifecycle.Clock{}, ""),
		fact(lifecycle.Scheduled, time.Second, lifecycle.Clock{}, ""),
		fact(lifecycle.Initialized, 2*time.Second, node, ""),
		fact(lifecycle.ContainerStarted, 12*time.Second, node, "engine"),
		fact(lifecycle.Ready, 52*time.Second, node, ""),
	}, readMetrics(lifecycleReader(), md))
}

// TestDurationsOfSGLang: are told once for each rank, without a time; the whole
// start is that of the engine's being ready.
func TestDurationsOfSGLang(t *testing.T) {
	l := lifecycleReader()
	page := func(weights float64) []lifecycle.Fact {
		md, add := metricsOf(t, "uid-1")
		add("sglang:startup_time_seconds", 1e18, weights, map[string]any{"phase": "load_weight", "tp_rank": "0"})
		add("sglang:startup_time_seconds", 1e18, 60, map[string]any{"phase": "scheduler_e2e", "tp_rank": "0"})
		add("sglang:startup_time_seconds", 1e18, 75, map[string]any{"phase": "tokenizer_e2e"})
		return readMetrics(l, md)
	}
	facts := page(41.5)
	require.Len(t, facts, 2)
	assert.Equal(t, lifecycle.Fact{
		Pod: "uid-1", Name: lifecycle.WeightsFinished, Clock: lifecycle.Clock{Kind: lifecycle.Engine, Of: "uid-1"}, Attempt: -1,
		Took: 41500 * time.Millisecond, Reason: "load_weight", Copy: "0",
	}, facts[0])
	assert.Equal(t, lifecycle.EngineReady, facts[1].Name)
	assert.Equal(t, 75*time.Second, facts[1].Took)
	assert.Empty(t, page(41.5))
	assert.Len(t, page(43), 1)
}

// TestFirstTokenOfCounters: between the last time at zero and the first above it;
// nothing is known of who was never seen at zero.
func TestFirstTokenOfCounters(t *testing.T) {
	l := lifecycleReader()
	start := when(t, "2026-08-05T08:42:00Z")
	page := func(pod, name string, after time.Duration, values ...float64) []lifecycle.Fact {
		md, add := metricsOf(t, pod)
		for _, v := range values {
			add(name, start.Add(after), v, map[string]any{"model_name": "m"})
		}
		return readMetrics(l, md)
	}
	const tokens = "vllm:generation_tokens_total"
	assert.Empty(t, page("uid-1", tokens, 0, 0, 0))
	assert.Empty(t, page("uid-1", tokens, 15*time.Second, 0, 0))
	facts := page("uid-1", tokens, 30*time.Second, 0, 12)
	require.Len(t, facts, 1)
	assert.Equal(t, lifecycle.FirstToken, facts[0].Name)
	assert.Equal(t, start.Add(30*time.Second), facts[0].At)
	assert.Equal(t, 15*time.Second, facts[0].Took)
	assert.Empty(t, page("uid-1", tokens, 45*time.Second, 20, 20))
	assert.Empty(t, page("uid-1", tokens, time.Minute, 0, 0), "the engine restarted")
	assert.Empty(t, page("uid-1", tokens, 75*time.Second, 1, 1))

	assert.Empty(t, page("uid-2", tokens, 0, 5), "never seen without")
	assert.Empty(t, page("uid-3", "llmfleet.engine.generation_tokens_total", 0, 0))
	assert.Empty(t, page("uid-3", "llmfleet.engine.generation_tokens_total", time.Second, 1))
	assert.Empty(t, page("", tokens, 0, 0))
	assert.Empty(t, page("", tokens, time.Second, 1), "of no pod")
}

// TestFirstTokenOfHistograms: a time to first token was observed.
func TestFirstTokenOfHistograms(t *testing.T) {
	l := lifecycleReader()
	page := func(at window.Instant, count uint64, exponential, recorded bool) []lifecycle.Fact {
		md, add := metricsOf(t, "uid-1")
		add("ignored", at, 0, nil)
		m := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
		m.SetName("vllm:time_to_first_token_seconds")
		flags := pmetric.DefaultDataPointFlags.WithNoRecordedValue(!recorded)
		if exponential {
			point := m.SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
			point.SetTimestamp(pcommon.Timestamp(at))
			point.SetCount(count)
			point.SetFlags(flags)
		} else {
			point := m.SetEmptyHistogram().DataPoints().AppendEmpty()
			point.SetTimestamp(pcommon.Timestamp(at))
			point.SetCount(count)
			point.SetFlags(flags)
		}
		return readMetrics(l, md)
	}
	assert.Empty(t, page(1e18, 0, false, true))
	assert.Empty(t, page(1e18+2e9, 0, false, false), "an end of the series is no zero")
	facts := page(1e18+5e9, 1, true, true)
	require.Len(t, facts, 1)
	assert.Equal(t, 5*time.Second, facts[0].Took)
}

func BenchmarkLifecycleOrdinaryMetrics(b *testing.B) {
	l := lifecycleReader()
	md, add := metricsOf(b, "uid-1")
	for _, name := range []string{"vllm:num_requests_running", "vllm:generation_tokens_total", "vllm:kv_cache_usage_perc", "python_info", "DCGM_FI_DEV_GPU_TEMP"} {
		for range 40 {
			add(name, 1e18, 1, map[string]any{"model_name": "m", "engine": "0"})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		l.ReadMetrics(md, func(*lifecycle.Fact) {})
	}
}
