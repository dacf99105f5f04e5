// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// prefix is how the connector's attributes begin.
const prefix = "llmfleet.coldstart."

// start is one start of a replica, as its trace tells it.
type start struct {
	trace    string
	resource pcommon.Map // whose it is
	about    pcommon.Map // what the root says of the whole
	failure  string
	total    time.Duration
	steps    []step
}

// step is one span. Times are since the beginning of the start.
type step struct {
	name, container  string
	depth            int
	from, to         time.Duration
	critical         time.Duration
	holds            bool // other steps, and is none itself
	attempt          int64
	missing          []string // what nobody told
	failure, message string
}

func (s *step) took() time.Duration { return s.to - s.from }

// rootOf finds the span of the whole start.
func rootOf(traces ptrace.Traces) (root ptrace.Span, found bool) {
	eachSpan(traces, func(_ pcommon.Resource, span ptrace.Span) {
		if span.ParentSpanID().IsEmpty() {
			root, found = span, true
		}
	})
	return root, found
}

func eachSpan(traces ptrace.Traces, do func(pcommon.Resource, ptrace.Span)) {
	for _, rs := range traces.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				do(rs.Resource(), span)
			}
		}
	}
}

// readStart reads the trace of one start.
func readStart(traces ptrace.Traces) (*start, error) {
	root, ok := rootOf(traces)
	if !ok {
		return nil, errors.New("the collector told no start: was the pod's creation recorded?")
	}
	s := &start{trace: root.TraceID().String(), about: root.Attributes(), failure: root.Status().Message()}
	begin := root.StartTimestamp().AsTime()
	s.total = root.EndTimestamp().AsTime().Sub(begin)
	children := map[pcommon.SpanID][]ptrace.Span{}
	eachSpan(traces, func(resource pcommon.Resource, span ptrace.Span) {
		if span.SpanID() == root.SpanID() {
			s.resource = resource.Attributes()
		} else if span.TraceID() == root.TraceID() {
			children[span.ParentSpanID()] = append(children[span.ParentSpanID()], span)
		}
	})
	s.descend(children, root.SpanID(), begin, 0)
	return s, nil
}

// descend adds the spans below one, in the order of time.
func (s *start) descend(children map[pcommon.SpanID][]ptrace.Span, parent pcommon.SpanID, begin time.Time, depth int) {
	spans := children[parent]
	slices.SortStableFunc(spans, func(a, b ptrace.Span) int {
		return cmp.Or(cmp.Compare(a.StartTimestamp(), b.StartTimestamp()), cmp.Compare(a.EndTimestamp(), b.EndTimestamp()))
	})
	for _, span := range spans {
		a := span.Attributes()
		next := step{
			name: span.Name(), container: text(a, "k8s.container.name"), depth: depth,
			from: span.StartTimestamp().AsTime().Sub(begin), to: span.EndTimestamp().AsTime().Sub(begin),
			critical: seconds(a, prefix+"critical"), holds: text(a, prefix+"stage") == "",
			failure: span.Status().Message(), message: text(a, prefix+"message"),
		}
		if attempt, ok := a.Get("k8s.container.restart_count"); ok {
			next.attempt = attempt.Int()
		}
		if missing, ok := a.Get(prefix + "missing"); ok {
			for _, name := range missing.Slice().All() {
				next.missing = append(next.missing, name.Str())
			}
		}
		s.steps = append(s.steps, next)
		s.descend(children, span.SpanID(), begin, depth+1)
	}
}

// text is an attribute as text, "" if there is none.
func text(m pcommon.Map, key string) string {
	value, ok := m.Get(key)
	if !ok {
		return ""
	}
	return value.AsString()
}

func seconds(m pcommon.Map, key string) time.Duration {
	value, ok := m.Get(key)
	if !ok {
		return 0
	}
	return time.Duration(value.Double() * float64(time.Second))
}
