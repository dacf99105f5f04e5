// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

type linked struct {
	pod string
	lifecycle.Link
}

func readTraces(l *Lifecycle, td ptrace.Traces) (facts []lifecycle.Fact, links []linked) {
	l.ReadTraces(td, func(f *lifecycle.Fact) { facts = append(facts, *f) }, func(pod string, link lifecycle.Link) { links = append(links, linked{pod, link}) })
	return facts, links
}

// spanOf is a page with one span.
func spanOf(t *testing.T, resource map[string]any, name string, start, end window.Instant, attributes map[string]any) ptrace.Traces {
	t.Helper()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	require.NoError(t, rs.Resource().Attributes().FromRaw(resource))
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName(name)
	span.SetTraceID(pcommon.TraceID{1})
	span.SetSpanID(pcommon.SpanID{2})
	span.SetStartTimestamp(pcommon.Timestamp(start))
	span.SetEndTimestamp(pcommon.Timestamp(end))
	require.NoError(t, span.Attributes().FromRaw(attributes))
	return td
}

// TestSpansOfLoading: the ends of vLLM's spans are facts, and each is linked; the
// same name is nothing elsewhere.
func TestSpansOfLoading(t *testing.T) {
	start, end := when(t, "2026-08-05T08:42:28.5Z"), when(t, "2026-08-05T08:43:00Z")
	worker := map[string]any{"k8s.pod.uid": "uid-1", "k8s.container.name": "engine", "vllm.process_id": int64(128), "vllm.process_name": "Worker_TP1"}
	begun := lifecycle.Fact{
		Pod: "uid-1", Name: lifecycle.WeightsStarted, At: start, Clock: lifecycle.Clock{Kind: lifecycle.Engine, Of: "uid-1"},
		Container: "engine", Attempt: -1, Copy: "Worker_TP1", About: &lifecycle.Pod{Engine: "vllm"},
	}
	ended := begun
	ended.Name, ended.At, ended.Took = lifecycle.WeightsFinished, end, 31500*time.Millisecond
	facts, links := readTraces(lifecycleReader(), spanOf(t, worker, "Load model", start, end, nil))
	assert.Equal(t, []lifecycle.Fact{begun, ended}, facts)
	assert.Equal(t, []linked{{"uid-1", lifecycle.Link{Trace: [16]byte{1}, Span: [8]byte{2}, Name: "Load model"}}}, links)

	for name, td := range map[string]ptrace.Traces{
		"another span":          spanOf(t, worker, "Overall Loading", start, end, nil),
		"of another instrument": spanOf(t, map[string]any{"k8s.pod.uid": "uid-1"}, "Load model", start, end, nil),
	} {
		facts, links := readTraces(lifecycleReader(), td)
		assert.Empty(t, facts, name)
		assert.Empty(t, links, name)
	}

	delete(worker, "k8s.pod.uid") // passed on to be counted; there is nothing to link
	facts, links = readTraces(lifecycleReader(), spanOf(t, worker, "Load model", start, end, nil))
	assert.Len(t, facts, 2)
	assert.Empty(t, links)
}

// TestFirstTokenOfRequests: the earliest token counts, in whatever order requests
// end.
func TestFirstTokenOfRequests(t *testing.T) {
	l := lifecycleReader()
	start := when(t, "2026-08-05T08:42:28Z")
	request := func(pod string, after time.Duration, ttft any) []lifecycle.Fact {
		facts, _ := readTraces(l, spanOf(t, map[string]any{"k8s.pod.uid": pod}, "llm_request", start.Add(after), start.Add(after+time.Minute),
			map[string]any{"gen_ai.latency.time_to_first_token": ttft}))
		return facts
	}
	facts := request("uid-1", 10*time.Second, 0.25)
	require.Len(t, facts, 1)
	assert.Equal(t, lifecycle.FirstToken, facts[0].Name)
	assert.Equal(t, when(t, "2026-08-05T08:42:38.25Z"), facts[0].At)
	assert.Empty(t, request("uid-1", 20*time.Second, 0.1))
	assert.Len(t, request("uid-1", 5*time.Second, 0.1), 1)
	assert.Empty(t, request("uid-1", 5*time.Second, 0.1))
	assert.Len(t, request("uid-2", 30*time.Second, 0.1), 1)
	assert.Empty(t, request("uid-3", 0, -1.0))
	assert.Empty(t, request("uid-3", 0, "soon"))
	assert.Empty(t, request("", 0, 0.1))
}
