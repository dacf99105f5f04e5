// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// untilKey is the attribute of a fact that tells a time besides the record's own.
const untilKey = "llmfleet.fact.until"

// recording is what was told of a start: facts of Kubernetes, and lines of the
// engine's log.
type recording struct {
	logs   plog.Logs
	newest time.Time
}

// readRecording reads logs as the collector's file exporter writes them: OTLP in
// JSON, one request after the other.
func readRecording(path string) (recording, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return recording{}, fmt.Errorf("%w: run it from the repository's root, or name the file with -recording", err)
	}
	if err != nil {
		return recording{}, err
	}
	defer file.Close()
	r := recording{logs: plog.NewLogs()}
	for requests := json.NewDecoder(file); ; {
		var request json.RawMessage
		if err := requests.Decode(&request); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return recording{}, fmt.Errorf("read %s: %w", path, err)
		}
		logs, err := new(plog.JSONUnmarshaler).UnmarshalLogs(request)
		if err != nil {
			return recording{}, fmt.Errorf("read %s: %w", path, err)
		}
		logs.ResourceLogs().MoveAndAppendTo(r.logs.ResourceLogs())
	}
	r.each(func(record plog.LogRecord) {
		if at := record.Timestamp().AsTime(); at.After(r.newest) {
			r.newest = at
		}
	})
	if r.newest.IsZero() {
		return recording{}, fmt.Errorf("read %s: there is no log record that has a time", path)
	}
	return r, nil
}

// moveTo has the newest record happen at a time, and all others as long before it
// as they did.
func (r *recording) moveTo(at time.Time) {
	by := at.Sub(r.newest)
	r.each(func(record plog.LogRecord) {
		record.SetTimestamp(moved(record.Timestamp(), by))
		record.SetObservedTimestamp(moved(record.ObservedTimestamp(), by))
		if until, ok := record.Attributes().Get(untilKey); ok {
			if t, err := time.Parse(time.RFC3339Nano, until.Str()); err == nil {
				until.SetStr(t.Add(by).UTC().Format(time.RFC3339Nano))
			}
		}
	})
	r.newest = at
}

// moved leaves a time alone that nobody told.
func moved(t pcommon.Timestamp, by time.Duration) pcommon.Timestamp {
	if t == 0 {
		return 0
	}
	return pcommon.NewTimestampFromTime(t.AsTime().Add(by))
}

func (r *recording) each(do func(plog.LogRecord)) {
	for _, rl := range r.logs.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				do(record)
			}
		}
	}
}
