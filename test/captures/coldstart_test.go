// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build captures

package captures

import (
	"bufio"
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/internal/judge/coldstart"
	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

const (
	startedPod       = "3f0c6b1e-52f1-4c8e-9a44-7c2f5d1b8e60"
	startedContainer = "engine"
)

// clock is a time of the day on which the log was written.
func clock(t *testing.T, text string) window.Instant {
	t.Helper()
	at, err := time.Parse(time.DateTime, "2026-08-05 "+text)
	require.NoError(t, err)
	return window.Instant(at.UnixNano())
}

// kubernetesTells is what Kubernetes would have said of the pod whose engine has
// written the log: its first line is of 08:38:58, and it serves from 08:50:39 on.
func kubernetesTells(t *testing.T) (facts []lifecycle.Fact) {
	t.Helper()
	object := func(name lifecycle.Name, at string) {
		facts = append(facts, lifecycle.Fact{Pod: startedPod, Name: name, At: clock(t, at), Grain: time.Second})
	}
	event := func(at, path, reason, message string) {
		e := lifecycle.Event{
			Pod: startedPod, FieldPath: path, Reason: reason, Message: message, Component: "kubelet", Host: "npu-1",
			First: clock(t, at), Last: clock(t, at), Count: 1,
		}
		if reason == "Scheduled" {
			e.Component, e.Host = "default-scheduler", ""
		}
		fact, ok := e.Fact()
		require.True(t, ok, message)
		facts = append(facts, fact)
	}
	const path = "spec.containers{" + startedContainer + "}"
	object(lifecycle.Created, "08:37:58")
	event("08:37:59", "", "Scheduled", "Successfully assigned serving/qwen to npu-1")
	object(lifecycle.SandboxReady, "08:38:01")
	event("08:38:01", path, "Pulling", `Pulling image "vllm-ascend:v0.22.1"`)
	event("08:38:51", path, "Pulled", `Successfully pulled image "vllm-ascend:v0.22.1" in 50.012s (50.012s including waiting). Image size: 8589934592 bytes.`)
	event("08:38:51", path, "Created", "Created container: "+startedContainer)
	event("08:38:52", path, "Started", "Started container "+startedContainer)
	object(lifecycle.Ready, "08:50:44")
	return facts
}

// engineTells is what the lines of the log tell.
func engineTells(t *testing.T, log []byte) (facts []lifecycle.Fact) {
	t.Helper()
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("k8s.pod.uid", startedPod)
	rl.Resource().Attributes().PutStr("k8s.container.name", startedContainer)
	rl.Resource().Attributes().PutStr("k8s.container.restart_count", "0")
	records := rl.ScopeLogs().AppendEmpty().LogRecords()
	read := clock(t, "09:00:00")
	for lines := bufio.NewScanner(bytes.NewReader(log)); lines.Scan(); {
		record := records.AppendEmpty()
		record.SetObservedTimestamp(pcommon.Timestamp(read))
		record.Body().SetStr(lines.Text())
	}
	reader := intake.NewLifecycle(intake.LifecycleOptions{Dialects: dialect.Builtin(), MaxPods: 10})
	reader.ReadLogs(ld, read, func(f *lifecycle.Fact) { facts = append(facts, *f) })
	return facts
}

// TestAStartIsAttributed: of a pod whose engine has written the log, and of which
// Kubernetes tells the usual, at least 95 % of the start are stages that are known;
// what is left is told as unattributed.
func TestAStartIsAttributed(t *testing.T) {
	log := read(t, pages(t, "vllm-startup-*.log")[0])
	book := coldstart.New(coldstart.Options{MaxPods: 10, TTL: 2 * time.Hour, Grace: time.Minute, MaxAge: 2 * time.Hour})
	now := clock(t, "09:00:00")
	for _, f := range append(kubernetesTells(t), engineTells(t, log)...) {
		book.Note(&f, now)
	}
	starts := book.Close(now.Add(2 * time.Minute)).Starts
	require.Len(t, starts, 1)
	start := starts[0]
	assert.Equal(t, coldstart.Served, start.Outcome)
	assert.Equal(t, 12*time.Minute+46*time.Second, start.Total)

	// Times as the log has them.
	lasted := map[coldstart.Stage]time.Duration{}
	for _, s := range start.Spans {
		lasted[s.Stage] += s.End.Sub(s.Start)
	}
	for stage, took := range map[coldstart.Stage]time.Duration{
		coldstart.EngineBoot:   clock(t, "08:41:37").Sub(clock(t, "08:38:52")),
		coldstart.Compile:      63900 * time.Millisecond,
		coldstart.GraphCapture: 128 * time.Second,
		coldstart.Warmup:       clock(t, "08:50:39").Sub(clock(t, "08:46:16")),
		coldstart.ImagePull:    50 * time.Second,
	} {
		assert.InDelta(t, took.Seconds(), lasted[stage].Seconds(), 1, stage)
	}
	assert.Equal(t, coldstart.Warmup, start.Dominant, "four minutes of which the log says nothing but that graphs were there")

	assert.Equal(t, start.Unattributed, lasted[coldstart.Unattributed], "the remainder is explicit")
	ratio := 1 - start.Unattributed.Seconds()/start.Total.Seconds()
	t.Logf("coldstart_attributed_ratio %.4g 1 >=0.95 # %v of %v unattributed", ratio, start.Unattributed, start.Total)
	assert.GreaterOrEqual(t, ratio, 0.95)
}
