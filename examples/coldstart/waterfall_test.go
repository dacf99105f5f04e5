// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// span is one of a trace that a test makes.
type span struct {
	id, parent byte
	name       string
	from, to   time.Duration
	attributes map[string]any
	failure    string
}

func traceOf(t *testing.T, spans ...span) ptrace.Traces {
	t.Helper()
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	traces := ptrace.NewTraces()
	for _, s := range spans {
		rs := traces.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("k8s.pod.name", "chat-0")
		to := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		to.SetTraceID(pcommon.TraceID{7})
		to.SetSpanID(pcommon.SpanID{s.id})
		to.SetParentSpanID(pcommon.SpanID{s.parent})
		to.SetName(s.name)
		to.SetStartTimestamp(pcommon.NewTimestampFromTime(began.Add(s.from)))
		to.SetEndTimestamp(pcommon.NewTimestampFromTime(began.Add(s.to)))
		require.NoError(t, to.Attributes().FromRaw(s.attributes))
		if s.failure != "" {
			to.Status().SetCode(ptrace.StatusCodeError)
			to.Status().SetMessage(s.failure)
		}
	}
	return traces
}

// stageOf are the attributes of a stage.
func stageOf(name string, critical float64) map[string]any {
	return map[string]any{"llmfleet.coldstart.stage": name, "llmfleet.coldstart.critical": critical}
}

func printed(t *testing.T, traces ptrace.Traces) string {
	t.Helper()
	told, err := readStart(traces)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, told.print(&out))
	return out.String()
}

func TestBarsLieWhereTheTimeWent(t *testing.T) {
	gap := stageOf("unattributed", 11)
	gap["llmfleet.coldstart.missing"] = []any{"llmfleet.engine.initializing"}
	assert.Equal(t, `Pod:   unknown/chat-0 on unknown, unknown (unknown)
Start: warm, ready after 44s
Trace: 07000000000000000000000000000000, the pod's uid

STAGE               FROM       TOOK
image.pull            0s        22s  ██████████████████████
volume.attach        11s        11s             ░░░░░░░░░░░
scheduling           22s         0s
unattributed         22s        11s                        ???????????
warmup               33s        11s                                   ███████████

█ the replica waited for it  ░ beside that  ? nothing told explains it  + after it was ready

Total         44s
Waited for    image.pull 22s (50 %), warmup 11s (25 %)
Unattributed  11s (25 %)
              11s from 22s on, as nobody told llmfleet.engine.initializing
Wasted        0s (0 %)
`, printed(t, traceOf(t,
		span{3, 1, "warmup", 33 * time.Second, 44 * time.Second, stageOf("warmup", 11), ""}, // not in order
		span{1, 0, "replica.cold_start", 0, 44 * time.Second, map[string]any{"llmfleet.coldstart.class": "warm", "llmfleet.coldstart.unattributed": 11.0}, ""},
		span{2, 1, "image.pull", 0, 22 * time.Second, stageOf("image.pull", 22), ""},
		span{4, 1, "volume.attach", 11 * time.Second, 22 * time.Second, stageOf("volume.attach", 0), ""},
		span{5, 1, "scheduling", 22 * time.Second, 22 * time.Second, stageOf("scheduling", 0), ""},
		span{6, 1, "unattributed", 22 * time.Second, 33 * time.Second, gap, ""},
	)))
}

func TestAStartThatFailedSaysWhere(t *testing.T) {
	got := printed(t, traceOf(t,
		span{1, 0, "replica.cold_start", 0, time.Minute, map[string]any{"llmfleet.coldstart.outcome": "gone", "llmfleet.coldstart.wasted": 30.0}, "Evicted"},
		span{2, 1, "attempt", 0, 30 * time.Second, map[string]any{"k8s.container.name": "engine", "k8s.container.restart_count": 2}, "OOMKilled, exit code 137"},
		span{3, 2, "engine.boot", 0, 30 * time.Second, stageOf("engine.boot", 30), "OOMKilled, exit code 137"},
	))
	assert.Contains(t, got, "Start: of unknown class, gone after 1m0s: Evicted\n")
	assert.Contains(t, got, "\nattempt (engine, restart 2)         0s        30s  ──────────────────────\n  engine.boot ")
	assert.Contains(t, got, "\nWasted        30s (50 %)\n              attempt from 0s on, and the wait after it: OOMKilled, exit code 137\n")
}

func TestWithoutARootThereIsNoStart(t *testing.T) {
	_, err := readStart(traceOf(t, span{2, 1, "first_token", 0, time.Second, nil, ""}))
	require.ErrorContains(t, err, "was the pod's creation recorded?")
}

// broken takes nothing.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestWhatCannotBePrintedIsAnError(t *testing.T) {
	told, err := readStart(traceOf(t, span{1, 0, "replica.cold_start", 0, 0, nil, ""}))
	require.NoError(t, err)
	require.ErrorContains(t, told.print(broken{}), "no space left")
}
