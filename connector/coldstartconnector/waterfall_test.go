// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstartconnector

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// waterfall is what is said of one trace.
type waterfall struct {
	at       time.Duration // when it comes
	trace    string
	resource map[string]string // at least these attributes
	spans    []spanLine
}

// spanLine is what is said of one span.
type spanLine struct {
	text       string // its depth, name and times
	attributes map[string]string
}

// readWaterfalls reads a section of traces.
func readWaterfalls(t scenariotest.T, text string) []waterfall {
	t.Helper()
	var all []waterfall
	for _, block := range scenariotest.Blocks(t, text) {
		bare, resource := words(t, strings.Join(block.Words, " "))
		require.Len(t, bare, 1, "a heading names the trace")
		w := waterfall{at: block.Times[0], trace: bare[0], resource: resource}
		for line := range strings.Lines(block.Body) {
			if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
				continue
			}
			bare, attributes := words(t, strings.TrimSpace(line))
			require.Len(t, bare, 2, "a name, and from..to: %s", line)
			indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
			w.spans = append(w.spans, spanLine{indent + bare[0] + " " + bare[1], attributes})
		}
		all = append(all, w)
	}
	return all
}

// checkWaterfalls compares all traces that came with what is said of each, in order.
func checkWaterfalls(t *testing.T, expected []waterfall, s *stage) {
	t.Helper()
	var told []string
	for _, got := range s.starts {
		told = append(told, fmt.Sprintf("@%s %s\n%s", got.at, traceOf(got.span), strings.Join(lines(got.span, s.began), "\n")))
	}
	if !assert.Len(t, s.starts, len(expected), "%s", strings.Join(told, "\n")) {
		return
	}
	for i, w := range expected {
		got := s.starts[i]
		assert.Equal(t, w.at, got.at, told[i])
		assert.Equal(t, w.trace, traceOf(got.span))
		checkAttributes(t, "", w.resource, got.span.Resource().Attributes(), "resource")
		var want []string
		for _, line := range w.spans {
			want = append(want, line.text)
		}
		if assert.Equal(t, want, lines(got.span, s.began)) {
			ordered, _ := tree(got.span)
			for j, line := range w.spans {
				checkSpan(t, line, ordered[j])
			}
		}
		checkTree(t, got.span.ScopeSpans().At(0).Spans())
	}
}

func traceOf(rs ptrace.ResourceSpans) string {
	return rs.ScopeSpans().At(0).Spans().At(0).TraceID().String()
}

// tree is the spans of a trace, each after its parent and by their starts, and how
// deep each is.
func tree(rs ptrace.ResourceSpans) (ordered []ptrace.Span, depth []int) {
	all := rs.ScopeSpans().At(0).Spans()
	known, children := map[pcommon.SpanID]bool{}, map[pcommon.SpanID][]ptrace.Span{}
	for _, span := range all.All() {
		known[span.SpanID()] = true
	}
	for _, span := range all.All() {
		parent := span.ParentSpanID()
		if !known[parent] {
			parent = pcommon.SpanID{}
		}
		children[parent] = append(children[parent], span)
	}
	var add func(of pcommon.SpanID, level int)
	add = func(of pcommon.SpanID, level int) {
		slices.SortStableFunc(children[of], func(a, b ptrace.Span) int {
			return cmp.Or(cmp.Compare(a.StartTimestamp(), b.StartTimestamp()), cmp.Compare(a.EndTimestamp(), b.EndTimestamp()))
		})
		for _, span := range children[of] {
			ordered, depth = append(ordered, span), append(depth, level)
			add(span.SpanID(), level+1)
		}
	}
	add(pcommon.SpanID{}, 0)
	return ordered, depth
}

// lines writes the spans of a trace as a story does.
func lines(rs ptrace.ResourceSpans, began time.Time) (all []string) {
	ordered, depth := tree(rs)
	for i, span := range ordered {
		all = append(all, fmt.Sprintf("%s%s %s..%s", strings.Repeat("  ", depth[i]), span.Name(),
			span.StartTimestamp().AsTime().Sub(began), span.EndTimestamp().AsTime().Sub(began)))
	}
	return all
}

func checkSpan(t *testing.T, line spanLine, span ptrace.Span) {
	t.Helper()
	if failure := line.attributes["error"]; failure == "" {
		assert.Equal(t, ptrace.StatusCodeUnset, span.Status().Code(), line.text)
	} else {
		assert.Equal(t, ptrace.StatusCodeError, span.Status().Code(), line.text)
		assert.Contains(t, span.Status().Message(), failure, line.text)
	}
	var links []string
	for _, l := range span.Links().All() {
		name, _ := l.Attributes().Get("llmfleet.coldstart.link")
		links = append(links, name.Str())
	}
	assert.Equal(t, line.attributes["links"], strings.Join(links, ","), line.text)
	delete(line.attributes, "error")
	delete(line.attributes, "links")
	checkAttributes(t, "llmfleet.coldstart.", line.attributes, span.Attributes(), line.text)
}

// checkAttributes: a name without dots is one with the prefix; one that is "" is not
// there.
func checkAttributes(t *testing.T, prefix string, want map[string]string, got pcommon.Map, of string) {
	t.Helper()
	for key, value := range want {
		if !strings.Contains(key, ".") {
			key = prefix + key
		}
		text, ok := got.Get(key)
		assert.Equal(t, value != "", ok, "%s of %s", key, of)
		if ok {
			assert.Equal(t, value, text.AsString(), "%s of %s", key, of)
		}
	}
}

// checkTree holds what is true of every trace: one root at most, ids that differ,
// children within their parents, and critical times that add up to the root's.
func checkTree(t *testing.T, spans ptrace.SpanSlice) {
	t.Helper()
	known := map[pcommon.SpanID]ptrace.Span{}
	critical := 0.0
	for _, span := range spans.All() {
		assert.NotContains(t, known, span.SpanID(), span.Name())
		assert.Equal(t, ptrace.SpanKindInternal, span.Kind())
		assert.LessOrEqual(t, span.StartTimestamp(), span.EndTimestamp(), span.Name())
		known[span.SpanID()] = span
		if seconds, ok := span.Attributes().Get("llmfleet.coldstart.critical"); ok {
			critical += seconds.Double()
		}
		parent, ok := known[span.ParentSpanID()]
		if !ok {
			assert.True(t, span.ParentSpanID().IsEmpty() && len(known) == 1 || span.Name() == "first_token", "%s has no parent", span.Name())
			continue
		}
		assert.LessOrEqual(t, parent.StartTimestamp(), span.StartTimestamp(), span.Name())
		assert.GreaterOrEqual(t, parent.EndTimestamp(), span.EndTimestamp(), span.Name())
	}
	if root := spans.At(0); root.ParentSpanID().IsEmpty() {
		total := root.EndTimestamp().AsTime().Sub(root.StartTimestamp().AsTime())
		assert.InDelta(t, total.Seconds(), critical, 0.001, "critical times add up to the whole")
	}
}
