// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
)

// tellStart tells the collector of the start that examples/coldstart/cold.json has, as one of pod number n that ended just
// now and took stretched times as long; each edit changes what is told.
func (p *platform) tellStart(t *testing.T, n int, stretched float64, edits ...func(plog.LogRecord)) {
	t.Helper()
	logs := readLogs(t, "../../examples/coldstart/cold.json")
	for _, resource := range logs.ResourceLogs().All() {
		resource.Resource().Attributes().PutStr("k8s.pod.uid", fmt.Sprintf("7d3f0c52-9b1e-4c7a-8f64-%012d", n))
		resource.Resource().Attributes().PutStr("k8s.pod.name", fmt.Sprintf("qwen3-14b-%d", n))
	}
	stretch(logs, time.Now(), stretched)
	for _, edit := range edits {
		eachRecord(logs, edit)
	}
	body, err := plogotlp.NewExportRequestFromLogs(logs).MarshalProto()
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		response, err := http.Post(p.otlp+"/v1/logs", "application/x-protobuf", bytes.NewReader(body))
		return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
	}, time.Minute, 100*time.Millisecond, "the collector does not take logs")
}

// readLogs reads logs as the collector's file exporter writes them: OTLP in JSON, one request after the other.
func readLogs(t *testing.T, path string) plog.Logs {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	all := plog.NewLogs()
	for requests := json.NewDecoder(file); requests.More(); {
		var request json.RawMessage
		require.NoError(t, requests.Decode(&request), path)
		logs, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(request)
		require.NoError(t, err, path)
		logs.ResourceLogs().MoveAndAppendTo(all.ResourceLogs())
	}
	return all
}

// stretch has the newest record happen at a time, and every other so many times as long before it as it did.
func stretch(logs plog.Logs, newest time.Time, times float64) {
	var last pcommon.Timestamp
	eachRecord(logs, func(record plog.LogRecord) { last = max(last, record.Timestamp()) })
	moved := func(at time.Time) time.Time {
		return newest.Add(-time.Duration(times * float64(last.AsTime().Sub(at))))
	}
	const until = "llmfleet.fact.until" // the attribute of a fact that tells a time besides the record's own
	eachRecord(logs, func(record plog.LogRecord) {
		record.SetTimestamp(pcommon.NewTimestampFromTime(moved(record.Timestamp().AsTime())))
		record.SetObservedTimestamp(record.Timestamp())
		if told, ok := record.Attributes().Get(until); ok {
			if at, err := time.Parse(time.RFC3339Nano, told.Str()); err == nil {
				told.SetStr(moved(at).UTC().Format(time.RFC3339Nano))
			}
		}
	})
}

func eachRecord(logs plog.Logs, do func(plog.LogRecord)) {
	for _, resource := range logs.ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				do(record)
			}
		}
	}
}
