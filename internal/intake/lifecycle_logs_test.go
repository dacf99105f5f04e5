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

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

func when(tb testing.TB, text string) window.Instant {
	tb.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(tb, err)
	return window.Instant(at.UnixNano())
}

// logsOf is a page of one resource; its records are to be filled.
func logsOf(tb testing.TB, resource map[string]any) (plog.Logs, func() plog.LogRecord) {
	tb.Helper()
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	require.NoError(tb, rl.Resource().Attributes().FromRaw(resource))
	records := rl.ScopeLogs().AppendEmpty().LogRecords()
	return ld, records.AppendEmpty
}

// TestEventsAsK8sEventsDeliversThem: the resource says of which object, the
// record's timestamp is eventTime or lastTimestamp.
func TestEventsAsK8sEventsDeliversThem(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, at string
		count    int64
		want     []lifecycle.Fact
	}{
		"once": {"Pod", "2026-08-05T08:42:28Z", 1, []lifecycle.Fact{{At: when(t, "2026-08-05T08:42:28Z"), Grain: time.Second}}},
		"several times": {"Pod", "2026-08-05T08:52:28Z", 5, []lifecycle.Fact{{
			At: when(t, "2026-08-05T08:42:20Z"), Grain: time.Second, Count: 5, Until: when(t, "2026-08-05T08:52:28Z"),
		}}},
		"finely":       {"Pod", "2026-08-05T08:42:28.25Z", 0, []lifecycle.Fact{{At: when(t, "2026-08-05T08:42:28.25Z")}}},
		"of no pod":    {"Node", "2026-08-05T08:42:28Z", 1, nil},
		"without time": {"Pod", "0001-01-01T00:00:00Z", 1, []lifecycle.Fact{{At: when(t, "2026-08-05T08:42:20Z"), Grain: time.Second}}},
	} {
		t.Run(name, func(t *testing.T) {
			ld, add := logsOf(t, map[string]any{
				"k8s.node.name": "gpu-1", "k8s.object.kind": tc.kind, "k8s.object.name": "qwen-0", "k8s.object.uid": "uid-1",
				"k8s.object.fieldpath": "spec.containers{engine}",
			})
			record := add()
			at, err := time.Parse(time.RFC3339Nano, tc.at)
			require.NoError(t, err)
			record.SetTimestamp(pcommon.NewTimestampFromTime(at))
			record.Body().SetStr(`Pulling image "vllm:v0.20"`)
			require.NoError(t, record.Attributes().FromRaw(map[string]any{
				"k8s.event.reason": "Pulling", "k8s.event.count": tc.count, "k8s.event.start_time": "2026-08-05 08:42:20 +0000 UTC",
			}))
			for i := range tc.want {
				f := &tc.want[i]
				f.Pod, f.Name, f.Container, f.Attempt = "uid-1", lifecycle.PullStarted, "engine", -1
				f.Clock = lifecycle.Clock{Kind: lifecycle.Node, Of: "gpu-1"}
				f.Reason, f.Message = "Pulling", `Pulling image "vllm:v0.20"`
			}
			assert.Equal(t, tc.want, readLogs(lifecycleReader(), ld, when(t, "2026-08-05T08:52:29Z")))
		})
	}
}

// TestEventsAsK8sObjectsDeliversThem: objects, in watch mode with what was done.
func TestEventsAsK8sObjectsDeliversThem(t *testing.T) {
	core := map[string]any{
		"kind": "Event", "apiVersion": "v1", "metadata": map[string]any{"creationTimestamp": "2026-08-05T08:42:30Z"},
		"involvedObject": map[string]any{"kind": "Pod", "uid": "uid-1", "fieldPath": "spec.containers{engine}"},
		"reason":         "Started", "message": "Container started", "source": map[string]any{"component": "kubelet", "host": "gpu-1"},
		"firstTimestamp": "2026-08-05T08:42:28Z", "lastTimestamp": "2026-08-05T08:44:28Z", "count": int64(2), "eventTime": nil,
	}
	series := map[string]any{
		"kind": "Event", "apiVersion": "events.k8s.io/v1", "metadata": map[string]any{"creationTimestamp": "2026-08-05T08:42:30Z"},
		"regarding": map[string]any{"kind": "Pod", "uid": "uid-1"},
		"reason":    "FailedScheduling", "note": "0/2 nodes are available", "reportingController": "default-scheduler", "reportingInstance": "master-0",
		"deprecatedFirstTimestamp": nil, "eventTime": "2026-08-05T08:42:28.123456Z",
		"series": map[string]any{"count": float64(5), "lastObservedTime": "2026-08-05T08:47:28.000001Z"},
	}
	started := lifecycle.Fact{
		Pod: "uid-1", Name: lifecycle.ContainerStarted, At: when(t, "2026-08-05T08:42:28Z"), Grain: time.Second, Count: 2, Until: when(t, "2026-08-05T08:44:28Z"),
		Clock: lifecycle.Clock{Kind: lifecycle.Node, Of: "gpu-1"}, Container: "engine", Attempt: -1, Reason: "Started", Message: "Container started",
	}
	unschedulable := lifecycle.Fact{
		Pod: "uid-1", Name: lifecycle.Unschedulable, At: when(t, "2026-08-05T08:42:28.123456Z"), Count: 5, Until: when(t, "2026-08-05T08:47:28.000001Z"),
		Attempt: -1, Reason: "FailedScheduling", Message: "0/2 nodes are available",
	}
	for name, tc := range map[string]struct {
		body map[string]any
		want []lifecycle.Fact
	}{
		"pulled":               {core, []lifecycle.Fact{started}},
		"watched":              {map[string]any{"type": "ADDED", "object": core}, []lifecycle.Fact{started}},
		"a series":             {map[string]any{"type": "MODIFIED", "object": series}, []lifecycle.Fact{unschedulable}},
		"over its time":        {map[string]any{"type": "DELETED", "object": core}, nil},
		"another object":       {map[string]any{"type": "ADDED", "object": map[string]any{"kind": "Pod"}}, nil},
		"the end of a listing": {map[string]any{"type": "PullEnd", "object": map[string]any{"kind": "Event"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ld, add := logsOf(t, map[string]any{"k8s.namespace.name": "serving"})
			require.NoError(t, add().Body().SetEmptyMap().FromRaw(tc.body))
			assert.Equal(t, tc.want, readLogs(lifecycleReader(), ld, when(t, "2026-08-05T08:48:00Z")))
		})
	}
}

const graphsLine = "(EngineCore pid=7) INFO 08-05 08:46:16 [gpu_model_runner.py:6722] Graph capturing finished in 128 secs, took 0.72 GiB"

// TestLinesOfEngines: the container runtime's time counts before the line's own,
// which is that of an unknown year and zone.
func TestLinesOfEngines(t *testing.T) {
	pod := map[string]any{
		"k8s.pod.uid": "uid-1", "k8s.pod.name": "qwen-0", "k8s.namespace.name": "serving", "k8s.node.name": "gpu-1",
		"k8s.container.name": "engine", "k8s.container.restart_count": "2", "k8s.deployment.name": "qwen",
	}
	observed := when(t, "2026-08-05T06:46:17Z") // the container's clock is two hours ahead of UTC
	about := &lifecycle.Pod{Name: "qwen-0", Namespace: "serving", Node: "gpu-1", WorkloadKind: "Deployment", Workload: "qwen", Engine: "vllm"}
	fact := lifecycle.Fact{
		Pod: "uid-1", Name: lifecycle.GraphsFinished, Container: "engine", Attempt: 2, Took: 128 * time.Second,
		Message: graphsLine, Copy: "EngineCore pid=7", About: about,
	}
	stamped, told := fact, fact
	stamped.At, stamped.Clock = when(t, "2026-08-05T06:46:16.5Z"), lifecycle.Clock{Kind: lifecycle.Node, Of: "gpu-1"}
	told.At, told.Grain, told.Clock = when(t, "2026-08-05T06:46:16Z"), time.Second, lifecycle.Clock{Kind: lifecycle.Engine, Of: "uid-1"}
	for name, tc := range map[string]struct {
		fill func(plog.LogRecord)
		want lifecycle.Fact
	}{
		"stamped by the runtime": {func(r plog.LogRecord) {
			r.SetTimestamp(pcommon.Timestamp(stamped.At))
			r.Body().SetStr(graphsLine)
		}, stamped},
		"by itself":  {func(r plog.LogRecord) { r.Body().SetStr(graphsLine) }, told},
		"in a field": {func(r plog.LogRecord) { r.Body().SetEmptyMap().PutStr("log", graphsLine) }, told},
	} {
		t.Run(name, func(t *testing.T) {
			ld, add := logsOf(t, pod)
			record := add()
			record.SetObservedTimestamp(pcommon.Timestamp(observed))
			tc.fill(record)
			assert.Equal(t, []lifecycle.Fact{tc.want}, readLogs(lifecycleReader(), ld, observed.Add(time.Hour)))
		})
	}
}

// TestLineOfNoPod: is passed on without a pod, to be counted.
func TestLineOfNoPod(t *testing.T) {
	ld, add := logsOf(t, nil)
	add().Body().SetStr(graphsLine)
	facts := readLogs(lifecycleReader(), ld, when(t, "2026-08-05T08:46:17Z"))
	require.Len(t, facts, 1)
	assert.Empty(t, facts[0].Pod)
	assert.Equal(t, -1, facts[0].Attempt)
}

// TestWordsOfAnyEngine: uvicorn's line counts where it is known which engine runs.
func TestWordsOfAnyEngine(t *testing.T) {
	l := lifecycleReader()
	read := func(container, text string) []lifecycle.Fact {
		ld, add := logsOf(t, map[string]any{"k8s.pod.uid": "uid-1", "k8s.container.name": container})
		add().Body().SetStr(text)
		return readLogs(l, ld, when(t, "2026-08-05T08:46:17Z"))
	}
	const uvicorn = "INFO:     Application startup complete."
	assert.Empty(t, read("engine", uvicorn))
	assert.Len(t, read("engine", graphsLine), 1)
	facts := read("engine", uvicorn)
	require.Len(t, facts, 1)
	assert.Equal(t, lifecycle.EngineReady, facts[0].Name)
	assert.Empty(t, read("proxy", uvicorn))
}

// TestNewsShowThemselves: what lay apart and is learned at once is replayed; what
// is learned as far apart as it happened is news, however far the clock is off.
func TestNewsShowThemselves(t *testing.T) {
	clock := lifecycle.Clock{Kind: lifecycle.Node, Of: "gpu-1"}
	at := func(seconds float64) window.Instant { return window.Instant(1e18 + seconds*1e9) }
	l := lifecycleReader()
	for _, step := range []struct {
		told, learned float64
		news          bool
	}{
		{0, 600, false},    // the first
		{30, 600.1, false}, // a file is read
		{200, 600.2, false},
		{545, 645, false}, // the first after the file's end: nothing to compare with
		{550, 650, false}, // too close to tell
		{560, 660.5, true},
		{561, 661, true},
		{900, 1000, true},
		{950, 1100, false}, // held up for 50 s
		{965, 1115, true},
		{0, 1116, false}, // replayed once more
	} {
		learned := l.news(clock, at(step.told), at(step.learned))
		assert.Equal(t, step.news, learned != 0, "%v", step)
		if step.news {
			assert.Equal(t, at(step.learned), learned)
		}
	}
	assert.Zero(t, l.news(clock, 0, at(1)))
	assert.Zero(t, l.news(clock, at(1), 0))
}

// TestLinesThatTellNothingCostNothing: every line of every engine passes here.
func TestLinesThatTellNothingCostNothing(t *testing.T) {
	l, ld := ordinaryLines(t)
	none := func(*lifecycle.Fact) { t.Error("a fact") }
	l.ReadLogs(ld, 1, none)
	perLine := testing.AllocsPerRun(10, func() { l.ReadLogs(ld, 1, none) }) / float64(ld.LogRecordCount())
	assert.Less(t, perLine, 0.1)
}

func BenchmarkLifecycleOrdinaryLines(b *testing.B) {
	l, ld := ordinaryLines(b)
	b.ReportAllocs()
	for b.Loop() {
		l.ReadLogs(ld, 1, func(*lifecycle.Fact) {})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*ld.LogRecordCount()), "ns/line")
}

func ordinaryLines(tb testing.TB) (*Lifecycle, plog.Logs) {
	tb.Helper()
	ld, add := logsOf(tb, map[string]any{"k8s.pod.uid": "uid-1", "k8s.container.name": "engine"})
	for range 250 {
		for _, text := range []string{
			`INFO:     10.0.0.1:41822 - "POST /v1/chat/completions HTTP/1.1" 200 OK`,
			"(APIServer pid=1) INFO 08-05 08:52:10 [loggers.py:257] Engine 000: Avg prompt throughput: 812.4 tokens/s, Avg generation throughput: 301.7 tokens/s, Running: 12 reqs",
			"[2026-08-05 08:42:28 TP0] Decode batch. #running-req: 8, #token: 4711, token usage: 0.02, gen throughput (token/s): 512.00",
			`{"level":"info","msg":"request done","latency":0.2}`,
		} {
			add().Body().SetStr(text)
		}
	}
	return lifecycleReader(), ld
}
