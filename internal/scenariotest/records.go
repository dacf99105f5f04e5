// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package scenariotest

import (
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
)

// Record is what is said of one log record.
type Record struct {
	At         time.Duration // of its heading, since simulated time began
	Stamp      time.Duration // its own time: that of its heading, or another that this names
	Severity   string        // "": INFO
	Event      string
	Body       string
	Attributes map[string]string // at least these; one that is "" is not there
}

// Records reads a section of them: under a time, with stamped= if their own time is
// another, paragraphs of severity and event, the sentence, and attributes.
func Records(t T, text string) []Record {
	t.Helper()
	all := []Record{}
	for _, block := range Blocks(t, text) {
		r := Record{At: block.Times[0], Stamp: block.Times[0]}
		for _, word := range block.Words {
			stamp, ok := strings.CutPrefix(word, "stamped=")
			require.True(t, ok, "%s", word)
			r.Stamp = readDuration(t, stamp)
		}
		for paragraph := range strings.SplitSeq(strings.TrimSpace(block.Body), "\n\n") {
			lines := strings.Split(paragraph, "\n")
			require.GreaterOrEqual(t, len(lines), 2, "%s", paragraph)
			severity, event, hasSeverity := strings.Cut(lines[0], " ")
			if !hasSeverity {
				severity, event = "INFO", severity
			}
			r.Severity, r.Event, r.Body, r.Attributes = severity, event, lines[1], map[string]string{}
			for _, line := range lines[2:] {
				key, value, ok := strings.Cut(line, "=")
				require.True(t, ok, "%s", line)
				r.Attributes[key] = value
			}
			all = append(all, r)
		}
	}
	return all
}

// CheckRecords compares all records that came with what is said of each, in order.
func CheckRecords(t T, began time.Time, expected []Record, records []plog.LogRecord) {
	t.Helper()
	for i, r := range expected {
		if assert.Greater(t, len(records), i, "nothing is told: %s", r.Body) {
			r.check(t, began, records[i])
		}
	}
	for _, r := range records[min(len(records), len(expected)):] {
		assert.Fail(t, "unexpected", "%s %s", r.EventName(), r.Body().Str())
	}
}

func (r *Record) check(t T, began time.Time, got plog.LogRecord) {
	t.Helper()
	assert.Equal(t, r.Body, got.Body().Str())
	assert.Equal(t, r.Severity, got.SeverityText(), r.Body)
	assert.Equal(t, r.Severity, strings.ToUpper(got.SeverityNumber().String()), r.Body)
	assert.Equal(t, r.Event, got.EventName(), r.Body)
	assert.Equal(t, r.Stamp, got.Timestamp().AsTime().Sub(began), r.Body)
	for key, value := range r.Attributes {
		text, ok := got.Attributes().Get(key)
		assert.Equal(t, value != "", ok, "%s of: %s", key, r.Body)
		if ok {
			assert.Equal(t, value, text.AsString(), "%s of: %s", key, r.Body)
		}
	}
}
