// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstartconnector

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/scenariotest"
	"github.com/llmfleet/llmfleet/internal/window"
)

// readFacts makes log records of facts, as the k8s_fleet receiver does. They are
// news if the heading says live.
func (s *stage) readFacts(x scenariotest.Step) plog.Logs {
	s.t.Helper()
	ld := plog.NewLogs()
	bare, _ := words(s.t, strings.Join(x.Words, " "))
	for line := range strings.Lines(x.Body) {
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := s.readFact(bare[0], strings.TrimSpace(line))
		if slices.Contains(bare, "live") {
			f.Learned = window.Instant(time.Now().UnixNano())
		}
		rl := ld.ResourceLogs().AppendEmpty()
		emit.WriteFactResource(f, rl.Resource())
		emit.WriteFact(f, rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty())
	}
	return ld
}

// readFact reads a line: a time since the story began, the fact, and what else is
// told.
func (s *stage) readFact(pod, line string) *lifecycle.Fact {
	s.t.Helper()
	bare, of := words(s.t, line)
	require.Len(s.t, bare, 2, line)
	name, ok := lifecycle.NameOf("llmfleet." + bare[1])
	require.True(s.t, ok, line)
	f := &lifecycle.Fact{Pod: pod, Name: name, At: s.instant(bare[0]), Attempt: -1, Container: of["container"], Reason: of["reason"], Message: of["message"], Copy: of["copy"]}
	f.Took, f.Waited, f.Cached = duration(s.t, of["took"]), duration(s.t, of["waited"]), of["cached"] == "true"
	f.Count, f.ExitCode = number(s.t, of["count"]), number(s.t, of["exit"])
	if of["attempt"] != "" {
		f.Attempt = number(s.t, of["attempt"])
	}
	if of["until"] != "" {
		f.Until = s.instant(of["until"])
	}
	kind, clock, _ := strings.Cut(of["clock"], ":")
	f.Clock = lifecycle.Clock{Kind: map[string]lifecycle.ClockKind{"node": lifecycle.Node, "engine": lifecycle.Engine}[kind], Of: clock}
	if of["name"] != "" {
		f.About = readPod(s.t, of)
	}
	return f
}

func readPod(t *testing.T, of map[string]string) *lifecycle.Pod {
	t.Helper()
	p := &lifecycle.Pod{
		Name: of["name"], Namespace: of["namespace"], Node: of["node"], Model: of["model"], Engine: of["engine"], GPUModel: of["gpu"],
		GPUs: number(t, of["gpus"]), Group: of["group"], Leader: of["leader"], GroupSize: number(t, of["size"]),
	}
	p.WorkloadKind, p.Workload, _ = strings.Cut(of["workload"], "/")
	for name := range strings.SplitSeq(of["containers"], ",") {
		name, role, _ := strings.Cut(name, ":")
		if name != "" {
			p.Containers = append(p.Containers, lifecycle.Container{
				Name: name, Role: map[string]lifecycle.ContainerRole{"init": lifecycle.Init, "sidecar": lifecycle.Sidecar}[role],
			})
		}
	}
	return p
}

func (s *stage) instant(text string) window.Instant {
	s.t.Helper()
	return window.Instant(s.began.Add(duration(s.t, text)).UnixNano())
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}

func number(t *testing.T, text string) int {
	t.Helper()
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// readLines makes log records of an engine's lines, as they come from a container:
// the heading has the resource's attributes.
func readLines(t *testing.T, x scenariotest.Step) plog.Logs {
	t.Helper()
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	putWords(t, x.Words, rl.Resource().Attributes())
	records := rl.ScopeLogs().AppendEmpty().LogRecords()
	for line := range strings.Lines(x.Body) {
		record := records.AppendEmpty()
		record.Body().SetStr(strings.TrimSpace(line))
		record.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		record.SetObservedTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	}
	return ld
}

func putWords(t *testing.T, of []string, to pcommon.Map) {
	t.Helper()
	_, attributes := words(t, strings.Join(of, " "))
	for key, value := range attributes {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			to.PutInt(key, n)
			continue
		}
		to.PutStr(key, value)
	}
}

// readEvents makes log records of Kubernetes' events, as the k8s_events receiver of
// the collector's contrib distribution does: a line has the event's attributes, and
// in the end its message.
func (s *stage) readEvents(x scenariotest.Step) plog.Logs {
	s.t.Helper()
	ld := plog.NewLogs()
	for line := range strings.Lines(x.Body) {
		head, message, ok := strings.Cut(strings.TrimSpace(line), " | ")
		require.True(s.t, ok, line)
		bare, of := words(s.t, head)
		rl := ld.ResourceLogs().AppendEmpty()
		resource := rl.Resource().Attributes()
		resource.PutStr("k8s.object.kind", "Pod")
		putWords(s.t, x.Words, resource)
		record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		record.Body().SetStr(message)
		record.SetTimestamp(pcommon.Timestamp(s.instant(bare[0])))
		record.SetObservedTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		record.Attributes().PutStr("k8s.event.reason", bare[1])
		for key, value := range of {
			if key == "k8s.object.fieldpath" {
				resource.PutStr(key, value)
				continue
			}
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				record.Attributes().PutInt(key, n)
			} else {
				record.Attributes().PutStr(key, value)
			}
		}
	}
	return ld
}

// readSpans makes spans of the lines from..to name, with the heading's attributes on
// their resource.
func (s *stage) readSpans(x scenariotest.Step) ptrace.Traces {
	s.t.Helper()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	putWords(s.t, x.Words, rs.Resource().Attributes())
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	for line := range strings.Lines(x.Body) {
		times, name, ok := strings.Cut(strings.TrimSpace(line), " ")
		require.True(s.t, ok, line)
		from, to, _ := strings.Cut(times, "..")
		span := spans.AppendEmpty()
		span.SetName(name)
		span.SetTraceID(pcommon.TraceID{15: 1})
		span.SetSpanID(pcommon.SpanID{7: byte(spans.Len())})
		span.SetStartTimestamp(pcommon.Timestamp(s.instant(from)))
		span.SetEndTimestamp(pcommon.Timestamp(s.instant(to)))
	}
	return td
}

// readPage makes gauges of lines as name{label="value"} number.
func readPage(t *testing.T, x scenariotest.Step) pmetric.Metrics {
	t.Helper()
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	putWords(t, x.Words, rm.Resource().Attributes())
	all := rm.ScopeMetrics().AppendEmpty().Metrics()
	for _, f := range scenariotest.Figures(t, x.Body) {
		m := all.AppendEmpty()
		m.SetName(f.Name)
		point := m.SetEmptyGauge().DataPoints().AppendEmpty()
		point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		point.SetDoubleValue(f.Value)
		for key, value := range f.Labels {
			point.Attributes().PutStr(key, value)
		}
	}
	return md
}
