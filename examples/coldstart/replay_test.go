// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/connector/coldstartconnector"
	"github.com/llmfleet/llmfleet/examples/internal/demotest"
)

// grain is what Kubernetes cuts off times, twice in a stage.
const grain = time.Second

// replayed plays a recording to the connector as config.yaml has it, and returns
// what is printed of the trace that comes.
func replayed(t *testing.T, file string) (printed string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		played, err := readRecording(file)
		require.NoError(t, err)
		traces := new(consumertest.TracesSink)
		factory := coldstartconnector.NewFactory()
		config := demotest.Settings[*coldstartconnector.Config](t, "connectors::cold_start", factory.CreateDefaultConfig())
		c, err := factory.CreateLogsToTraces(t.Context(), connectortest.NewNopSettings(factory.Type()), config, traces)
		require.NoError(t, err)
		require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
		played.moveTo(time.Now())
		require.NoError(t, c.ConsumeLogs(t.Context(), played.logs))
		time.Sleep(config.Wait + 2*config.Interval)
		require.NoError(t, c.Shutdown(context.WithoutCancel(t.Context())))
		all := ptrace.NewTraces()
		for _, part := range traces.AllTraces() {
			part.ResourceSpans().MoveAndAppendTo(all.ResourceSpans())
		}
		told, err := readStart(all)
		require.NoError(t, err)
		var out bytes.Buffer
		require.NoError(t, told.print(&out))
		printed = out.String()
	})
	return printed
}

// row is a line of the waterfall.
type row struct {
	label, bar string
	from, took time.Duration
}

var rowText = regexp.MustCompile(`(?m)^ *(\S.*?) {2,}(\d\S*) +(\d\S*)(?: +(\S+))?$`)

func rowsOf(t *testing.T, printed string) (rows []row) {
	t.Helper()
	_, table, _ := strings.Cut(printed, "TOOK\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, groups := range rowText.FindAllStringSubmatch(table, -1) {
		r := row{label: groups[1], bar: groups[4]}
		var err error
		r.from, err = time.ParseDuration(groups[2])
		require.NoError(t, err, groups[0])
		r.took, err = time.ParseDuration(groups[3])
		require.NoError(t, err, groups[0])
		rows = append(rows, r)
	}
	require.Len(t, rows, strings.Count(table, "\n")+1, "all lines are rows")
	return rows
}

// moments are when the recording says that something happened: found by the name
// of a fact and its container's, or by words of a line.
func moments(t *testing.T, file string) func(words ...string) time.Time {
	t.Helper()
	type told struct {
		at   time.Time
		text string
	}
	var all []told
	opened, err := os.Open(file)
	require.NoError(t, err)
	defer opened.Close()
	for decoder := json.NewDecoder(opened); ; {
		var request struct {
			ResourceLogs []struct {
				ScopeLogs []struct {
					LogRecords []struct {
						TimeUnixNano, EventName string
						Body                    struct{ StringValue string }
					}
				}
			}
		}
		err := decoder.Decode(&request)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		for _, rl := range request.ResourceLogs {
			for _, r := range rl.ScopeLogs[0].LogRecords {
				nanoseconds, err := strconv.ParseInt(r.TimeUnixNano, 10, 64)
				require.NoError(t, err)
				all = append(all, told{time.Unix(0, nanoseconds), r.EventName + " " + r.Body.StringValue})
			}
		}
	}
	return func(words ...string) time.Time {
		found := time.Time{}
		for _, r := range all { // of several, the last
			matches := true
			for _, word := range words {
				matches = matches && strings.Contains(r.text, word)
			}
			if matches {
				found = r.at
			}
		}
		require.False(t, found.IsZero(), "%v is not in %s", words, file)
		return found
	}
}

// expected is what a recording says of a stage: its row lies between two moments.
type expected struct {
	label    string
	from, to time.Time
	bar      string // what it is drawn with
}

func checkRows(t *testing.T, began time.Time, printed string, all []expected) {
	t.Helper()
	rows := rowsOf(t, printed)
	for _, want := range all {
		found := false
		for _, r := range rows {
			if r.label != want.label || (r.from-want.from.Sub(began)).Abs() > grain {
				continue
			}
			found = true
			assert.InDelta(t, want.to.Sub(want.from).Seconds(), r.took.Seconds(), grain.Seconds(), r.label)
			assert.Equal(t, want.bar, strings.Trim(r.bar, want.bar)+want.bar, r.label)
		}
		assert.True(t, found, "no %s from %s on in\n%s", want.label, want.from.Sub(began), printed)
	}
}

func TestAColdStartIsExplained(t *testing.T) {
	at := moments(t, "cold.json")
	printed := replayed(t, "cold.json")
	began, ready := at("replica.desired"), at("pod.ready")
	pulled, agent := at("image.pulled", "(engine)"), at("image.pulled", "(agent)")
	took, waited := 158204*time.Millisecond, 11600*time.Millisecond // of the kubelet's sentence
	fetched := at("Time spent downloading")
	fetching := fetched.Add(-79600 * time.Millisecond)
	loaded, compiled, captured := at("Model loading took"), at("torch.compile took"), at("Graph capturing finished")
	compiling, capturing := compiled.Add(-38700*time.Millisecond), captured.Add(-21*time.Second)
	serving := at("Application startup complete.")
	cached := at("GPU KV cache size")
	checkRows(t, began, printed, []expected{
		{"decision", began, at("pod.created"), "█"},
		{"scheduling", at("pod.created"), at("node.requested"), "█"},
		{"node.provision", at("node.requested"), at("node.ready"), "█"},
		{"scheduling", at("node.ready"), at("pod.scheduled"), "█"},
		{"unattributed", at("pod.scheduled"), at("image.pull_started", "(engine)"), "?"},
		{"image.pull_wait (engine)", pulled.Add(-took - waited), pulled.Add(-took), "█"},
		{"image.pull (engine)", pulled.Add(-took), pulled, "█"},
		{"container.create (engine)", pulled, at("container.started", "(engine)"), "█"},
		{"image.pull (agent)", agent.Add(-5812 * time.Millisecond), agent, "░"},
		{"container.create (agent)", agent, at("container.started", "(agent)"), "░"},
		{"engine.boot (engine)", at("container.started", "(engine)"), at("Initializing a V1"), "█"},
		{"unattributed", at("Initializing a V1"), at("Starting to load"), "?"},
		{"model.download (engine)", fetching, fetched, "█"},
		{"weights.load (engine)", fetched, loaded, "█"},
		{"unattributed", loaded, compiling, "?"},
		{"compile (engine)", compiling, compiled, "█"},
		{"kv_cache.init (engine)", compiled, cached, "█"},
		{"unattributed", cached, capturing, "?"},
		{"graph.capture (engine)", capturing, captured, "█"},
		{"warmup (engine)", captured, serving, "█"},
		{"ready (engine)", serving, ready, "█"},
		{"first_token", ready, at("first_token"), "+"},
	})
	assert.Contains(t, printed, "Start: cold, ready after "+ready.Sub(began).String()+"\n")
	assert.Contains(t, printed, "Trace: 7d3f0c529b1e4c7a8f642a5d90e1b7c3, the pod's uid\n")
	assert.Contains(t, printed, "\nWaited for    image.pull 2m38.2s (34 %), model.download 1m19.6s (17 %), node.provision 1m7s (14 %)\n")
	assert.Contains(t, printed, "as nobody told llmfleet.pod.sandbox_ready\n")
	assert.Contains(t, printed, "\nWasted        0s (0 %)\n")
}

func TestAFailedAttemptIsWasted(t *testing.T) {
	at := moments(t, "restart.json")
	printed := replayed(t, "restart.json")
	began, exited, ready := at("pod.created"), at("container.exited"), at("pod.ready")
	restarted := at("container.started") // the second time
	started := began.Add(4 * time.Second)
	checkRows(t, began, printed, []expected{
		{"sandbox", at("pod.scheduled"), at("pod.sandbox_ready"), "█"},
		{"attempt (engine)", started, exited, "─"},
		{"crash_loop (engine)", exited, at("container.created"), "█"},
		{"engine.boot (engine, restart 1)", restarted, at("Initializing a V1"), "█"},
		{"weights.load (engine, restart 1)", at("Starting to load"), at("Model loading took"), "█"},
		{"ready (engine, restart 1)", at("Application startup complete."), ready, "█"},
	})
	assert.Contains(t, printed, "Start: hot, ready after "+ready.Sub(began).String()+"\n")
	assert.Contains(t, printed, "\nWasted        "+at("container.created").Sub(started).String()+" (34 %)\n")
	assert.Contains(t, printed, "the wait after it: Error, exit code 1\n")
}

func TestWaterfallsFitATerminal(t *testing.T) {
	for _, file := range []string{"cold.json", "restart.json"} {
		for line := range strings.Lines(replayed(t, file)) {
			assert.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 110, line)
		}
	}
}
