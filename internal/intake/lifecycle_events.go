// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// objectKind is how the receiver k8s_events says what an event is about.
const objectKind = "k8s.object.kind"

// deliveredEvent is an event as the receiver k8s_events delivers it: what it is
// about on the resource, the message as the body. The record's timestamp is
// eventTime, or else lastTimestamp, so that of what has happened several times
// the event's creation tells the first.
func deliveredEvent(resource pcommon.Map, record plog.LogRecord) lifecycle.Event {
	if textOf(resource, objectKind) != "Pod" {
		return lifecycle.Event{}
	}
	m := record.Attributes()
	e := lifecycle.Event{
		Pod: textOf(resource, "k8s.object.uid"), FieldPath: textOf(resource, "k8s.object.fieldpath"),
		Reason: textOf(m, "k8s.event.reason"), Message: record.Body().AsString(), Host: textOf(resource, lifecycle.KeyNode),
		Count: integer(m, "k8s.event.count"), Created: created(textOf(m, "k8s.event.start_time")),
	}
	switch at := instant(record.Timestamp()); {
	case at <= 0: // what Go makes of a time that is not set lies before 1970
	case at%window.Instant(time.Second) != 0: // only eventTime has fractions
		e.Time = at
	case e.Count > 1:
		e.First, e.Last = e.Created, at
	default:
		e.First, e.Last = at, at
	}
	return e
}

// created reads a time as the receiver k8s_events writes it, which is Go's own.
func created(text string) window.Instant {
	return moments(text, "2006-01-02 15:04:05.999999999 -0700 MST")
}

// eventObject is an event as the receiver k8s_objects delivers it: the object of
// core/v1 or events.k8s.io/v1, and in watch mode what was done with it beside.
// Live says that it is watched and new; a deleted one, whose time to live is over,
// is none.
func eventObject(body pcommon.Map) (e lifecycle.Event, live, ok bool) {
	object := body
	if v, watched := body.Get("object"); watched && v.Type() == pcommon.ValueTypeMap {
		object = v.Map()
		what := textOf(body, "type")
		if what == "DELETED" {
			return e, false, false
		}
		live = what == "ADDED"
	}
	if v, there := object.Get("kind"); !there || v.Str() != "Event" {
		return e, false, false
	}
	about := either(object, "involvedObject", "regarding")
	if textOf(about, "kind") != "Pod" {
		return e, false, false
	}
	source, series := either(object, "source", "deprecatedSource"), either(object, "series")
	return lifecycle.Event{
		Pod: textOf(about, "uid"), FieldPath: textOf(about, "fieldPath"),
		Reason: textOf(object, "reason"), Message: text(object, "message", "note"),
		Component:   cmp.Or(text(object, "reportingComponent", "reportingController"), textOf(source, "component")),
		Host:        cmp.Or(textOf(source, "host"), textOf(object, "reportingInstance")),
		First:       timeOf(object, "firstTimestamp", "deprecatedFirstTimestamp"),
		Last:        timeOf(object, "lastTimestamp", "deprecatedLastTimestamp"),
		Count:       max(whole(object, "count"), whole(object, "deprecatedCount")),
		Time:        timeOf(object, "eventTime"),
		SeriesCount: whole(series, "count"), SeriesLast: timeOf(series, "lastObservedTime"),
		Created: timeOf(either(object, "metadata"), "creationTimestamp"),
	}, live, true
}

// either is the first of some parts of an object that is there, an empty one if
// none is.
func either(object pcommon.Map, keys ...string) pcommon.Map {
	if v, ok := first(object, keys); ok && v.Type() == pcommon.ValueTypeMap {
		return v.Map()
	}
	return pcommon.NewMap()
}

// text is the first of some texts of an object that is not empty.
func text(object pcommon.Map, keys ...string) string {
	for _, key := range keys {
		if t := textOf(object, key); t != "" {
			return t
		}
	}
	return ""
}

func timeOf(object pcommon.Map, keys ...string) window.Instant {
	for _, key := range keys {
		if at := momentOf(object, key); at != 0 {
			return at
		}
	}
	return 0
}

// whole is a number, which JSON may have made a floating one; 0 if it is not
// one that counts events.
func whole(object pcommon.Map, key string) int {
	v, ok := object.Get(key)
	switch {
	case !ok:
		return 0
	case v.Type() == pcommon.ValueTypeInt && v.Int() > 0 && v.Int() < 1<<31:
		return int(v.Int())
	case v.Type() == pcommon.ValueTypeDouble && v.Double() > 0 && v.Double() < 1<<31:
		return int(v.Double())
	}
	return 0
}
