// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// sendMetrics sends metrics to a collector that listens for OTLP over HTTP. It has read them when this returns.
func sendMetrics(t *testing.T, address string, metrics pmetric.Metrics) {
	t.Helper()
	body, err := pmetricotlp.NewExportRequestFromMetrics(metrics).MarshalProto()
	require.NoError(t, err)
	response, err := http.Post("http://"+address+"/v1/metrics", "application/x-protobuf", bytes.NewReader(body))
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
}

// evaluations are the times of all evaluations that came out.
func evaluations(t *testing.T, metrics file) (ends []time.Time) {
	t.Helper()
	for _, p := range metrics.numbers(t, "llmfleet.fleet.replicas", "state", "judged") {
		ends = append(ends, p.at)
	}
	require.True(t, slices.IsSortedFunc(ends, time.Time.Compare))
	return ends
}

// saidOf is what came out: which flags turned, and all evidence.
func saidOf(t *testing.T, metrics file) (turns []turn, evidence map[judged]float64) {
	t.Helper()
	known := make(flags)
	evidence = make(map[judged]float64)
	for _, p := range metrics.metrics(t) {
		replica := p.attributes["replica"]
		switch p.metric {
		case "llmfleet.replica.outlier":
			if on := p.value == 1; known.note(replica, on) {
				turns = append(turns, turn{p.at, replica, on})
			}
		case "llmfleet.replica.outlier_evidence":
			evidence[judged{p.at, replica}] = p.value
		}
	}
	return turns, evidence
}

// eventOut is a log record that came out.
type eventOut struct {
	name, sentence string
	at             time.Time
	attributes     map[string]any
}

func (f file) events(t *testing.T) (all []eventOut) {
	t.Helper()
	f.lines(t, func(line []byte) {
		logs, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(line)
		require.NoError(t, err)
		all = append(all, eventsOf(logs)...)
	})
	return all
}

// eventsOf are the records of one request.
func eventsOf(logs plog.Logs) (all []eventOut) {
	for _, rl := range logs.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, r := range sl.LogRecords().All() {
				all = append(all, eventOut{r.EventName(), r.Body().AsString(), r.Timestamp().AsTime(), r.Attributes().AsRaw()})
			}
		}
	}
	return all
}

// sentenceOf has the numbers that led to an onset, or to a clear.
var sentenceOf = map[bool]*regexp.Regexp{
	true: regexp.MustCompile(`^Replica serving/drawn-\d+ of test/chat-8b \(vllm\) is an outlier: ` +
		`((ttft|itl) p\d+ [\d.]+ m?s, \d\.\d+ times that of its peers, on \d+ observations; )+evidence \d\.\d+; likely cause: [a-z ]+\.$`),
	false: regexp.MustCompile(`^Replica serving/drawn-\d+ of test/chat-8b \(vllm\) is no longer an outlier, after \d+s: ` +
		`((ttft|itl) p\d+ [\d.]+ m?s, \d\.\d+ times that of its peers, on \d+ observations; )+evidence 0(\.\d+)?\.$`),
}

// assertTold: each turn was told as one event, whose sentence and attributes have the numbers that led to it.
func assertTold(t *testing.T, events file, turns []turn, evidence map[judged]float64) {
	t.Helper()
	var told []turn
	onsets := map[string]time.Time{}
	for _, e := range events.events(t) {
		t.Log(e.sentence)
		replica, _ := e.attributes["replica"].(string)
		on := e.name == "llmfleet.replica.outlier.onset"
		told = append(told, turn{e.at, replica, on})
		assert.Regexp(t, sentenceOf[on], e.sentence)
		assert.Equal(t, evidence[judged{e.at, replica}], e.attributes["llmfleet.replica.outlier_evidence"])
		if on {
			onsets[replica] = e.at
			continue
		}
		assert.Equal(t, "llmfleet.replica.outlier.clear", e.name)
		assert.Equal(t, e.at.Sub(onsets[replica]).Seconds(), e.attributes["llmfleet.event.duration"], "known after the restart")
	}
	slices.SortFunc(told, func(a, b turn) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.replica, b.replica)) })
	assert.Equal(t, turns, told)
}
