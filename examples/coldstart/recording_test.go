// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func recorded(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "start.json")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Two requests, as a file exporter appends them.
const twoRequests = `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"60000000000","observedTimeUnixNano":"61000000000",
  "attributes":[{"key":"llmfleet.fact.until","value":{"stringValue":"1970-01-01T00:01:30Z"}}]}]}]}]}
{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"120000000000"},{"body":{"stringValue":"without a time"}}]}]}]}
`

func TestARecordingIsMovedAsAWhole(t *testing.T) {
	r, err := readRecording(recorded(t, twoRequests))
	require.NoError(t, err)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, at := range []time.Time{now.Add(-time.Hour), now} { // a second move goes on from the first
		r.moveTo(at)
	}
	require.Equal(t, 3, r.logs.LogRecordCount())
	first := r.logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
	second := r.logs.ResourceLogs().At(1).ScopeLogs().At(0).LogRecords()
	assert.Equal(t, now.Add(-time.Minute), first.Timestamp().AsTime())
	assert.Equal(t, now.Add(-59*time.Second), first.ObservedTimestamp().AsTime())
	until, _ := first.Attributes().Get("llmfleet.fact.until")
	assert.Equal(t, now.Add(-30*time.Second).Format(time.RFC3339), until.Str())
	assert.Equal(t, now, second.At(0).Timestamp().AsTime())
	assert.Zero(t, second.At(0).ObservedTimestamp(), "nobody told it")
	assert.Zero(t, second.At(1).Timestamp())
}

func TestWhatIsNoRecordingIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "no log record that has a time",
		`{"resourceLogs":[]}`:   "no log record that has a time",
		`{"resourceLogs":[]`:    "unexpected EOF",
		`{"resourceLogs":true}`: "read ",
	} {
		_, err := readRecording(recorded(t, text))
		require.ErrorContains(t, err, want, text)
	}
	_, err := readRecording(filepath.Join(t.TempDir(), "none.json"))
	require.ErrorContains(t, err, "name the file with -recording")
}
