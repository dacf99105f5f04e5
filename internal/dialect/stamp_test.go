// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/llmfleet/llmfleet/internal/window"
)

// TestStamps: every form, with what is known of the time besides.
func TestStamps(t *testing.T) {
	for _, tc := range []struct {
		name, header, near, want string
		grain                    time.Duration
	}{
		{"seconds, UTC", "INFO 08-05 08:42:28 [core.py:1]", "2026-08-05T08:42:29Z", "2026-08-05T08:42:28Z", time.Second},
		{"eight hours ahead", "INFO 08-05 08:42:28 [core.py:1]", "2026-08-05T00:42:29Z", "2026-08-05T00:42:28Z", time.Second},
		{"a zone of a quarter-hour", "[2026-08-05 06:27:28 TP0]", "2026-08-05T00:42:29Z", "2026-08-05T00:42:28Z", time.Second}, // Kathmandu
		{"the day before, by its own clock", "INFO 08-04 17:42:28 [x]", "2026-08-05T00:42:29Z", "2026-08-05T00:42:28Z", time.Second},
		{"read in the new year", "INFO 12-31 23:59:58 [x]", "2027-01-01T00:00:01Z", "2026-12-31T23:59:58Z", time.Second},
		{"written in a new year that is not yet here", "INFO 01-01 07:59:58 [x]", "2026-12-31T23:59:59Z", "2026-12-31T23:59:58Z", time.Second},
		{"leap day", "INFO 02-29 12:00:00 [x]", "2028-02-29T12:00:01Z", "2028-02-29T12:00:00Z", time.Second},
		{"leap day in a year without", "INFO 02-29 12:00:00 [x]", "2026-03-01T12:00:01Z", "", time.Second},
		{"leap day by a clock ahead", "INFO 02-29 02:00:00 [x]", "2028-02-28T18:00:01Z", "2028-02-28T18:00:00Z", time.Second},
		{"before the clocks go back", "[2026-10-25 02:30:00]", "2026-10-25T00:30:02Z", "2026-10-25T00:30:00Z", time.Second}, // Berlin, in summer time
		{"after the clocks go back", "[2026-10-25 02:30:00]", "2026-10-25T01:30:02Z", "2026-10-25T01:30:00Z", time.Second},
		{"far from near", "[2026-08-05 08:42:28]", "2026-11-30T06:00:00Z", "2026-08-05T08:42:28Z", time.Second},
		{"far from near, without year", "INFO 08-05 08:42:28 [x]", "2026-11-30T06:00:00Z", "2026-08-05T08:42:28Z", time.Second},
		{"nothing near, without year", "INFO 08-05 08:42:28 [x]", "", "", time.Second},
		{"milliseconds", "2026-08-05 08:42:28,123 - INFO", "2026-08-05T08:42:29Z", "2026-08-05T08:42:28.123Z", 0},
		{"RFC 3339", "2026-08-05T08:42:28.123456Z  INFO", "2001-01-01T00:00:00Z", "2026-08-05T08:42:28.123456Z", 0},
		{"RFC 3339 with a zone", "2026-08-05T08:42:28+05:30 x", "", "2026-08-05T03:12:28Z", time.Second},
		{"ISO 8601's basic zone", "2026-08-05T08:42:28-0700 x", "", "2026-08-05T15:42:28Z", time.Second},
		{"TensorRT-LLM", "[08/05/2026-08:42:28] [TRT-LLM] [I]", "2026-08-05T08:42:29Z", "2026-08-05T08:42:28Z", time.Second},
		{"klog", "I0805 08:42:28.123456       1 a.go:1]", "2026-08-05T08:42:29Z", "2026-08-05T08:42:28.123456Z", 0},
		{"an exact one before", "2026-08-05T00:42:28.5Z stdout F INFO 08-05 08:42:28 [x]", "", "2026-08-05T00:42:28.5Z", 0},
		{"the last of two", "2026-05-01 23:13:20.749 | INFO 05-01 21:13:20 [x]", "2026-05-01T21:13:21Z", "2026-05-01T21:13:20Z", time.Second},
		{"no month", "INFO 13-05 08:42:28 [x]", "2026-08-05T08:42:29Z", "", 0},
		{"no hour", "INFO 08-05 25:42:28 [x]", "2026-08-05T08:42:29Z", "", 0},
		{"no day", "[2026-02-29 08:42:28]", "2026-08-05T08:42:29Z", "", 0},
		{"none", "(APIServer pid=1) INFO:     ", "2026-08-05T08:42:29Z", "", 0},
	} {
		s := stampOf(tc.header)
		assert.Equal(t, instant(t, tc.want), s.At(instant(t, tc.near)), tc.name)
		assert.Equal(t, tc.grain, s.Grain(), tc.name)
	}
}

// TestAtFindsYearAndZone: whatever zone a clock has and whether it shows the
// year, its time is found by one that is less than half a quarter-hour off.
func TestAtFindsYearAndZone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := time.Unix(rapid.Int64Range(2*86400, 5e9).Draw(t, "at"), 0).UTC()
		zone := time.Duration(rapid.IntRange(-48, 56).Draw(t, "quarters of an hour")) * 15 * time.Minute
		off := time.Duration(rapid.Int64Range(int64(-449*time.Second), int64(449*time.Second)).Draw(t, "off"))
		layout := rapid.SampledFrom([]string{
			"INFO 01-02 15:04:05 [x]", "[2006-01-02 15:04:05 TP0]", "2006-01-02 15:04:05.000 | x", "[01/02/2006-15:04:05] [I]", "I0102 15:04:05.000000 7 x]",
		}).Draw(t, "layout")
		near := window.Instant(want.Add(off).UnixNano())
		s := stampOf(want.Add(zone).Format(layout))
		assert.Equal(t, window.Instant(want.UnixNano()), s.At(near))
		assert.False(t, s.Exact())
	})
}

// FuzzStamp: no text is too odd, and an exact time needs nothing near it.
func FuzzStamp(f *testing.F) {
	for _, header := range []string{
		"INFO 08-05 08:42:28 [x]", "2026-08-05T08:42:28.123456Z", "[08/05/2026-08:42:28]", "I0805 08:42:28.1 1 x]", "0000-02-29 00:00:00+99:99", "02-29 23:59:59",
	} {
		f.Add(header, int64(1785890000e9))
		f.Add(header, int64(-1<<63))
		f.Add(header, int64(1<<63-1))
	}
	f.Fuzz(func(t *testing.T, header string, near int64) {
		s := stampOf(header)
		at := s.At(window.Instant(near))
		switch {
		case s.IsZero() && at != 0:
			t.Fatalf("a time of none: %d", at)
		case s.Exact() && at != s.At(0):
			t.Fatalf("an exact time moved from %d to %d", s.At(0), at)
		case at != 0 && at.Add(15*time.Hour) < 0:
			t.Fatalf("%q near %d is %d", header, near, at)
		}
	})
}
