// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package emit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// WriteFact writes a fact as a log record: its name as the event name, its time
// as the timestamp, when it was learned as the observed timestamp, and a
// sentence for people as the body. The same fact has the same log.record.uid
// whoever tells it. Whose it is stands on the record's resource:
// WriteFactResource.
func WriteFact(f *lifecycle.Fact, to plog.LogRecord) {
	to.SetEventName(f.Name.String())
	to.SetTimestamp(timestamp(f.At))
	to.SetObservedTimestamp(timestamp(f.Learned))
	to.SetSeverityNumber(plog.SeverityNumberInfo)
	if isFailure(f.Name) {
		to.SetSeverityNumber(plog.SeverityNumberWarn)
	}
	to.SetSeverityText(to.SeverityNumber().String())
	to.Body().SetStr(sentence(f))
	m := to.Attributes()
	m.PutStr(lifecycle.KeyID, factID(f))
	if f.Learned == 0 {
		m.PutBool(lifecycle.KeyReplayed, true)
	}
	putText(m, lifecycle.KeyContainer, f.Container)
	if f.Attempt >= 0 {
		m.PutInt(lifecycle.KeyAttempt, int64(f.Attempt))
	}
	putText(m, lifecycle.KeyClock, f.Clock.Kind.String())
	putText(m, lifecycle.KeyClockOf, f.Clock.Of)
	putSeconds(m, lifecycle.KeyGrain, f.Grain)
	putSeconds(m, lifecycle.KeyDuration, f.Took)
	putSeconds(m, lifecycle.KeyWait, f.Waited)
	if f.Count != 0 {
		m.PutInt(lifecycle.KeyCount, int64(f.Count))
	}
	if f.Until != 0 {
		m.PutStr(lifecycle.KeyUntil, time.Unix(0, int64(f.Until)).UTC().Format(time.RFC3339Nano))
	}
	putText(m, lifecycle.KeyReason, f.Reason)
	putText(m, lifecycle.KeyMessage, f.Message)
	if f.Cached {
		m.PutBool(lifecycle.KeyCached, true)
	}
	if f.Name == lifecycle.ContainerExited {
		m.PutInt(lifecycle.KeyExitCode, int64(f.ExitCode))
	}
	putText(m, lifecycle.KeyCopy, f.Copy)
}

func timestamp(t window.Instant) pcommon.Timestamp {
	return pcommon.Timestamp(t) //nolint:gosec // since 1970
}

func putText(m pcommon.Map, key, value string) {
	if value != "" {
		m.PutStr(key, value)
	}
}

func putSeconds(m pcommon.Map, key string, d time.Duration) {
	if d != 0 {
		m.PutDouble(key, d.Seconds())
	}
}

// factID is the same for what tells facts apart.
func factID(f *lifecycle.Fact) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%d\n%d\n%s", f.Pod, f.Name, f.Container, f.Attempt, f.At, f.Copy))
	return hex.EncodeToString(sum[:16])
}

func isFailure(n lifecycle.Name) bool {
	switch n {
	case lifecycle.Unschedulable, lifecycle.ClaimFailed, lifecycle.VolumeFailed, lifecycle.PullFailed, lifecycle.PullBackOff,
		lifecycle.RestartBackOff, lifecycle.ProbeFailed, lifecycle.Failed:
		return true
	}
	return false
}

// sentence is the fact for people: what happened, to which container, how long it
// took, and what the source says of it.
func sentence(f *lifecycle.Fact) string {
	var b strings.Builder
	b.WriteString(sentences[f.Name])
	if f.Container != "" {
		b.WriteString(" (" + f.Container + ")")
	}
	switch {
	case f.Cached:
		b.WriteString(", it was there already")
	case f.Took > 0:
		b.WriteString(" after " + f.Took.Round(time.Millisecond).String())
	}
	if f.Name == lifecycle.ContainerExited {
		fmt.Fprintf(&b, " with code %d", f.ExitCode)
	}
	if f.Count > 1 {
		fmt.Fprintf(&b, ", %d times", f.Count)
	}
	switch {
	case f.Message != "":
		b.WriteString(": " + f.Message)
	case f.Reason != "":
		b.WriteString(": " + f.Reason)
	}
	return b.String()
}

var sentences = [...]string{
	lifecycle.Unknown: "Unknown fact",
	lifecycle.Desired: "More replicas asked for", lifecycle.Created: "Pod created",
	lifecycle.Unschedulable: "No place for the pod", lifecycle.NodeRequested: "Node requested",
	lifecycle.NodeCreated: "Node created", lifecycle.NodeReady: "Node ready",
	lifecycle.ClaimCreated: "Resource claim created", lifecycle.ClaimAllocated: "Resource claim allocated",
	lifecycle.ClaimFailed: "Devices of the resource claim not prepared", lifecycle.Scheduled: "Pod scheduled",
	lifecycle.VolumeAttached: "Volume attached", lifecycle.VolumeFailed: "Volume not attached or mounted",
	lifecycle.SandboxReady: "Pod sandbox ready", lifecycle.PullStarted: "Image pull started",
	lifecycle.PullFailed: "Image pull failed", lifecycle.PullBackOff: "Waiting before the next image pull",
	lifecycle.PullFinished: "Image pulled", lifecycle.ContainerCreated: "Container created",
	lifecycle.ContainerStarted: "Container started", lifecycle.ContainerExited: "Container exited",
	lifecycle.RestartBackOff: "Waiting before the next restart", lifecycle.Initialized: "Init containers done",
	lifecycle.ProbeFailed: "Probe failed", lifecycle.EngineInitializing: "Engine initializing",
	lifecycle.DownloadStarted: "Model download started", lifecycle.DownloadFinished: "Model downloaded",
	lifecycle.WeightsStarted: "Loading of weights started", lifecycle.WeightsFinished: "Weights loaded",
	lifecycle.CompileStarted: "Compilation started", lifecycle.CompileFinished: "Model compiled",
	lifecycle.ProfileFinished: "Memory profiled", lifecycle.KVCacheStarted: "Allocation of the KV cache started",
	lifecycle.KVCacheFinished: "KV cache allocated", lifecycle.GraphsStarted: "Graph capture started",
	lifecycle.GraphsFinished: "Graphs captured", lifecycle.WarmupFinished: "Engine warm",
	lifecycle.EngineReady: "Engine ready", lifecycle.Ready: "Pod ready", lifecycle.FirstToken: "First token",
	lifecycle.Failed: "Pod failed", lifecycle.Deleted: "Pod deleted",
}
