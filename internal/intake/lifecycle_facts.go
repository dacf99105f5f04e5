// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// told reads one of our own facts.
func (p *logPage) told(name lifecycle.Name, record plog.LogRecord) {
	s, m := p.narrator(), record.Attributes()
	f := lifecycle.Fact{
		Pod: s.pod, Name: name, At: instant(record.Timestamp()), Grain: seconds(m, lifecycle.KeyGrain),
		Clock: lifecycle.Clock{Kind: lifecycle.ClockKindOf(textOf(m, lifecycle.KeyClock)), Of: textOf(m, lifecycle.KeyClockOf)},
		Count: integer(m, lifecycle.KeyCount), Until: momentOf(m, lifecycle.KeyUntil),
		Container: textOf(m, lifecycle.KeyContainer), Attempt: attempt(m),
		Took: seconds(m, lifecycle.KeyDuration), Waited: seconds(m, lifecycle.KeyWait),
		Reason: textOf(m, lifecycle.KeyReason), Message: textOf(m, lifecycle.KeyMessage),
		Cached: flag(m, lifecycle.KeyCached), ExitCode: integer(m, lifecycle.KeyExitCode), Copy: textOf(m, lifecycle.KeyCopy),
		About: s.about,
	}
	if !flag(m, lifecycle.KeyReplayed) {
		f.Learned = instant(record.ObservedTimestamp())
	}
	p.each(&f)
}

// seconds is a duration that is told in seconds, 0 if it is none.
func seconds(m pcommon.Map, key string) time.Duration {
	v, ok := m.Get(key)
	if !ok || v.Type() != pcommon.ValueTypeDouble {
		return 0
	}
	return duration(v.Double())
}

// longestDuration is longer than anything that a start waits for.
const longestDuration = 30 * 24 * time.Hour

// duration is that of seconds, to the nanosecond; 0 of what is no duration.
func duration(seconds float64) time.Duration {
	if !(seconds > 0 && seconds < longestDuration.Seconds()) {
		return 0
	}
	return time.Duration(math.Round(seconds * float64(time.Second)))
}

// momentOf is a time in RFC 3339, 0 if there is none.
func momentOf(m pcommon.Map, key string) window.Instant {
	v, ok := m.Get(key)
	if !ok || v.Type() != pcommon.ValueTypeStr {
		return 0
	}
	return moments(v.Str(), time.RFC3339Nano)
}

// moments reads a time; years in which no fact happened are no time.
func moments(text, layout string) window.Instant {
	t, err := time.Parse(layout, text)
	if err != nil || t.Year() < 1970 || t.Year() > 2261 {
		return 0
	}
	return window.Instant(t.UnixNano())
}

func flag(m pcommon.Map, key string) bool {
	v, ok := m.Get(key)
	return ok && v.Type() == pcommon.ValueTypeBool && v.Bool()
}

// maxMessage bounds what is kept of an engine's line; an event's message has a
// bound of 1 KiB.
const maxMessage = 256

// shortened is a text of which no more is kept than its beginning.
func shortened(text string) string {
	if len(text) > maxMessage {
		end := maxMessage
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	return strings.Clone(text)
}
