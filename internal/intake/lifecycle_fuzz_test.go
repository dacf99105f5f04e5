// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// FuzzLifecycle reads any logs, spans and metrics, twice, as a sender tries again.
// What is read stays as it was, facts say what facts may, and no more is
// remembered than there is room for.
func FuzzLifecycle(f *testing.F) {
	lifecycleSeeds(f)
	received := when(f, "2026-08-05T09:00:00Z")
	f.Fuzz(func(t *testing.T, logs, spans, metrics []byte) {
		ld, logsErr := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(logs)
		td, spansErr := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(spans)
		md, metricsErr := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(metrics)
		if logsErr != nil || spansErr != nil || metricsErr != nil {
			return
		}
		sent := bytesOf(t, ld, td, md)
		const room = 2
		l := NewLifecycle(LifecycleOptions{Dialects: dialect.Builtin(), MaxPods: room})
		for range 2 {
			l.ReadLogs(ld, received, func(f *lifecycle.Fact) { sane(t, f) })
			l.ReadTraces(td, func(f *lifecycle.Fact) { sane(t, f) }, func(pod string, _ lifecycle.Link) { assert.NotEmpty(t, pod) })
			l.ReadMetrics(md, func(f *lifecycle.Fact) { sane(t, f) })
		}
		assert.Equal(t, sent, bytesOf(t, ld, td, md), "what was read is another's")
		for name, remembered := range map[string]int{
			"moments": len(l.moments.young), "engines": len(l.engines.young), "zones": len(l.zones.young),
			"tokens": len(l.tokens.young), "nodes": len(l.nodes.young), "measured": len(l.measured.young),
		} {
			assert.LessOrEqual(t, remembered, room, name)
		}
	})
}

// sane holds of every fact.
func sane(t *testing.T, f *lifecycle.Fact) {
	t.Helper()
	assert.NotEqual(t, lifecycle.Unknown, f.Name)
	assert.GreaterOrEqual(t, f.Took, time.Duration(0))
	assert.GreaterOrEqual(t, f.Waited, time.Duration(0))
	assert.GreaterOrEqual(t, f.Grain, time.Duration(0))
	assert.GreaterOrEqual(t, f.Attempt, -1)
}

// lifecycleSeeds adds a page of each kind that is read.
func lifecycleSeeds(f *testing.F) {
	f.Helper()
	told := when(f, "2026-08-05T08:42:28Z")
	pod := map[string]any{"k8s.pod.uid": "uid-1", "k8s.node.name": "gpu-1", "k8s.container.name": "engine", "k8s.container.restart_count": "1"}

	lines, line := logsOf(f, pod)
	line().Body().SetStr(graphsLine)
	record := line()
	record.SetTimestamp(pcommon.Timestamp(told))
	record.Body().SetEmptyMap().PutStr("log", graphsLine)

	events, event := logsOf(f, map[string]any{"k8s.object.kind": "Pod", "k8s.object.uid": "uid-1", "k8s.object.fieldpath": "spec.containers{engine}"})
	record = event()
	record.SetTimestamp(pcommon.Timestamp(told))
	record.Body().SetStr(`Successfully pulled image "x" in 796ms (1s including waiting). Image size: 1 bytes.`)
	record.Attributes().PutStr("k8s.event.reason", "Pulled")
	record.Attributes().PutInt("k8s.event.count", 3)
	record.Attributes().PutStr("k8s.event.start_time", "2026-08-05 08:42:20 +0000 UTC")
	require.NoError(f, line().Body().SetEmptyMap().FromRaw(map[string]any{"type": "ADDED", "object": map[string]any{
		"kind": "Event", "apiVersion": "events.k8s.io/v1", "regarding": map[string]any{"kind": "Pod", "uid": "uid-1"},
		"reason": "FailedScheduling", "note": "0/2 nodes are available", "eventTime": "2026-08-05T08:42:28.123456Z",
		"series": map[string]any{"count": float64(5), "lastObservedTime": "2026-08-05T08:47:28.000001Z"},
	}}))

	own := written(f, &lifecycle.Fact{
		Pod: "uid-1", Name: lifecycle.PullFinished, At: told, Learned: told + 1, Took: time.Minute, Count: 2, Until: told + 2,
		Container: "engine", About: &lifecycle.Pod{Name: "qwen-0", Containers: []lifecycle.Container{{Name: "engine"}}},
	})

	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	require.NoError(f, rs.Resource().Attributes().FromRaw(map[string]any{"k8s.pod.uid": "uid-1", "vllm.process_id": int64(128)}))
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	for _, name := range []string{"Load model", "llm_request"} {
		span := spans.AppendEmpty()
		span.SetName(name)
		span.SetStartTimestamp(pcommon.Timestamp(told))
		span.SetEndTimestamp(pcommon.Timestamp(told.Add(time.Minute)))
		span.Attributes().PutDouble(firstTokenAfter, 0.25)
	}

	md, add := metricsOf(f, "uid-1")
	add("kube_pod_info", told, 1, map[string]any{"uid": "uid-1", "node": "gpu-1"})
	add("kube_pod_created", told, float64(told/window.Instant(time.Second)), map[string]any{"uid": "uid-1"})
	add("sglang:startup_time_seconds", told, 17.5, map[string]any{"phase": "load_weight", "tp_rank": "0"})
	add("vllm:generation_tokens_total", told, 0, nil)
	add("vllm:generation_tokens_total", told+1, 7, nil)

	for _, ld := range []plog.Logs{lines, events, own} {
		sent := bytesOf(f, ld, td, md)
		f.Add(sent[0], sent[1], sent[2])
	}
}

// bytesOf is a request of each kind as it is sent.
func bytesOf(tb testing.TB, ld plog.Logs, td ptrace.Traces, md pmetric.Metrics) [3][]byte {
	tb.Helper()
	logs, err := (&plog.ProtoMarshaler{}).MarshalLogs(ld)
	require.NoError(tb, err)
	spans, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	require.NoError(tb, err)
	return [3][]byte{logs, spans, metricBytes(tb, md)}
}
