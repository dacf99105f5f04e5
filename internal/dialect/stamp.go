// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/llmfleet/llmfleet/internal/window"
)

// Stamp is a time as a log line tells it, which may lack the year and the zone.
// The zero Stamp tells no time.
type Stamp struct {
	// clock is the told time read as UTC; its year is leapYear if none was told.
	clock  time.Time
	yearly bool          // the year was told
	zoned  bool          // the zone was told, and clock is exact
	grain  time.Duration // how coarse it is
}

// leapYear stands for the year that was not told: it has every day.
const leapYear = 2000

// IsZero tells whether there is no time in the stamp.
func (s Stamp) IsZero() bool { return s.clock.IsZero() }

// Exact tells whether the stamp has year and zone, so that At needs no help.
func (s Stamp) Exact() bool { return s.zoned && s.yearly }

// Grain is how coarse the stamp is: a second where it has only seconds, else 0.
func (s Stamp) Grain() time.Duration { return s.grain }

// quarter is what time zones are whole multiples of, from 12 hours behind UTC
// to 14 ahead.
const (
	quarter  = 15 * time.Minute
	westmost = -12 * time.Hour
	eastmost = 14 * time.Hour
)

// At is when it was. Near is a time not far from it, such as when the line was
// read: a year and a zone that the stamp lacks are those that bring it nearest
// to near, so a zone is found if near is less than seven and a half minutes off.
// If no zone brings it there, it is taken for UTC, which containers have unless
// told otherwise. It is 0 for the zero Stamp, and where no year can be found:
// near is 0, or no year near it has the day.
func (s Stamp) At(near window.Instant) window.Instant {
	switch {
	case s.IsZero():
		return 0
	case s.yearly:
		return s.inZone(s.clock, near)
	case near <= 0:
		return 0
	}
	var best window.Instant
	year := time.Unix(0, int64(near)).UTC().Year()
	for y := year - 1; y <= min(year+1, latest); y++ {
		clock := s.clock.AddDate(y-leapYear, 0, 0)
		if clock.Day() != s.clock.Day() {
			continue // 29 February, and no leap year
		}
		if at := s.inZone(clock, near); best == 0 || distance(at, near) < distance(best, near) {
			best = at
		}
	}
	return best
}

// inZone is the instant of a clock's time, in the zone that near suggests.
func (s Stamp) inZone(clock time.Time, near window.Instant) window.Instant {
	at := window.Instant(clock.UnixNano())
	if s.zoned {
		return at
	}
	if zone := at.Sub(near).Round(quarter); zone >= westmost && zone <= eastmost {
		return at.Add(-zone)
	}
	return at
}

func distance(a, b window.Instant) time.Duration { return a.Sub(b).Abs() }

// orBetter is the stamp, or another one that tells more: any for none, and one
// that is exact for one that is not.
func (s Stamp) orBetter(other Stamp) Stamp {
	if s.IsZero() || !s.Exact() && other.Exact() {
		return other
	}
	return s
}

// stamps are the forms of times in log lines:
//
//	08-05 08:42:28                      vLLM
//	2026-08-05 08:42:28,123             Python's logging, loguru, SGLang
//	2026-08-05T08:42:28.123456Z         TGI, CRI, RFC 3339
//	08/05/2026-08:42:28                 TensorRT-LLM
//	I0805 08:42:28.123456               klog
var stamps = regexp.MustCompile(`(?:^|[^\d-])(?:(?:(?P<year>\d{4})-)?(?P<month>\d\d)-(?P<day>\d\d)[T ]|(?P<month2>\d\d)/(?P<day2>\d\d)/(?P<year2>\d{4})-|[IWEF](?P<month3>\d\d)(?P<day3>\d\d) )` +
	`(?P<clock>\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{1,9}))?(?P<zone>Z|[+-]\d\d:?\d\d)?`)

// stampOf is the last time in a header, or the last exact one.
func stampOf(header string) Stamp {
	var found Stamp
	for _, groups := range stamps.FindAllStringSubmatch(header, -1) {
		group := func(names ...string) (text string) {
			for _, name := range names {
				text += groups[stamps.SubexpIndex(name)]
			}
			return text
		}
		s, ok := parseStamp(group("year", "year2"), group("month", "month2", "month3")+"-"+group("day", "day2", "day3"),
			group("clock"), group("fraction"), group("zone"))
		if ok && (s.Exact() || !found.Exact()) {
			found = s
		}
	}
	return found
}

func parseStamp(year, day, clock, fraction, zone string) (Stamp, bool) {
	s := Stamp{yearly: year != "", zoned: zone != ""}
	if !s.yearly {
		year = strconv.Itoa(leapYear)
	}
	if !s.zoned {
		zone = "Z"
	}
	if fraction == "" {
		s.grain = time.Second
	} else {
		clock += "." + fraction
	}
	layout := "2006-01-02 15:04:05Z0700"
	if strings.Contains(zone, ":") {
		layout = "2006-01-02 15:04:05Z07:00"
	}
	at, err := time.Parse(layout, year+"-"+day+" "+clock+zone)
	if err != nil || at.Year() < earliest || at.Year() > latest {
		return Stamp{}, false
	}
	s.clock = at.UTC()
	return s, true
}

// Years of which every instant can be told.
const earliest, latest = 1970, 2200
