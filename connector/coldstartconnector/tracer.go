// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstartconnector

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/connector/coldstartconnector/internal/metadata"
	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/judge/coldstart"
	"github.com/llmfleet/llmfleet/internal/lifecycle"
)

// attributePrefix is how the names of our attributes of spans begin.
const attributePrefix = "llmfleet.coldstart."

// tracer writes starts as traces: the same start always as the same trace, whoever
// tells it and however often.
type tracer struct {
	version string
}

// start writes the trace of one start.
func (t *tracer) start(r *coldstart.Report, to ptrace.Traces) {
	spans := t.begin(r.ID, &r.Pod, to)
	spans.EnsureCapacity(len(r.Spans))
	n := numbering{trace: r.ID}
	trace, ids := traceID(r.ID), make([]pcommon.SpanID, len(r.Spans))
	for i := range r.Spans {
		s, span := &r.Spans[i], spans.AppendEmpty()
		if i == 0 {
			ids[i] = rootID(r.ID)
		} else {
			ids[i] = n.id(s)
			span.SetParentSpanID(ids[s.Parent])
		}
		span.SetTraceID(trace)
		span.SetSpanID(ids[i])
		writeSpan(s, span)
	}
	writeRoot(r, spans.At(0))
	if r.Outcome != coldstart.Served {
		failAt(r.Stopped, spans)
	}
}

// failAt has the stage at which a start stopped end in error, as the start does.
func failAt(stopped coldstart.Stage, spans ptrace.SpanSlice) {
	for i := spans.Len() - 1; i > 0; i-- {
		if span := spans.At(i); span.Name() == stopped.String() {
			if span.Status().Code() != ptrace.StatusCodeError {
				spans.At(0).Status().CopyTo(span.Status())
			}
			return
		}
	}
}

// after writes what came after a start that was told, into its trace.
func (t *tracer) after(a *coldstart.After, to ptrace.Traces) {
	span := t.begin(a.ID, &a.Pod, to).AppendEmpty()
	n := numbering{trace: a.ID}
	span.SetTraceID(traceID(a.ID))
	span.SetSpanID(n.id(&a.Span))
	span.SetParentSpanID(rootID(a.ID))
	writeSpan(&a.Span, span)
}

// begin begins the trace of a pod.
func (t *tracer) begin(id string, pod *lifecycle.Pod, to ptrace.Traces) ptrace.SpanSlice {
	rs := to.ResourceSpans().AppendEmpty()
	about := *pod
	about.Containers = nil // their spans tell them
	emit.WriteFactResource(&lifecycle.Fact{Pod: id, About: &about}, rs.Resource())
	rs.Resource().Attributes().PutStr("service.name", "llmfleet")
	scope := rs.ScopeSpans().AppendEmpty()
	scope.Scope().SetName(metadata.ScopeName)
	scope.Scope().SetVersion(t.version)
	return scope.Spans()
}

// writeSpan writes what all spans have.
func writeSpan(s *coldstart.Span, to ptrace.Span) {
	to.SetName(s.Stage.String())
	to.SetKind(ptrace.SpanKindInternal)
	to.SetStartTimestamp(pcommon.Timestamp(s.Start)) //nolint:gosec // since 1970
	to.SetEndTimestamp(pcommon.Timestamp(s.End))     //nolint:gosec // since 1970
	a := to.Attributes()
	if !s.Stage.Holds() {
		a.PutStr(attributePrefix+"stage", s.Stage.String())
		a.PutBool(attributePrefix+"critical_path", s.Critical > 0)
		a.PutDouble(attributePrefix+"critical", s.Critical.Seconds())
	}
	putText(a, "k8s.pod.uid", s.Pod)
	if s.Container != "" {
		a.PutStr("k8s.container.name", s.Container)
		a.PutInt("k8s.container.restart_count", int64(s.Attempt))
	}
	if len(s.Missing) > 0 {
		missing := a.PutEmptySlice(attributePrefix + "missing")
		for _, name := range s.Missing {
			missing.AppendEmpty().SetStr(name.String())
		}
	}
	putText(a, attributePrefix+"reason", s.Reason)
	putText(a, attributePrefix+"message", s.Message)
	if s.Count > 1 {
		a.PutInt(attributePrefix+"count", int64(s.Count))
	}
	if s.Cached {
		a.PutBool(attributePrefix+"cached", true)
	}
	if s.Adjusted != 0 {
		a.PutDouble("llmfleet.clock.adjusted_ms", float64(s.Adjusted)/1e6)
	}
	if s.Failure != "" {
		to.Status().SetCode(ptrace.StatusCodeError)
		to.Status().SetMessage(s.Failure)
	}
}

// writeRoot writes what is known of the whole start.
func writeRoot(r *coldstart.Report, to ptrace.Span) {
	a := to.Attributes()
	a.PutStr(attributePrefix+"outcome", outcomes[r.Outcome])
	putText(a, attributePrefix+"class", classes[r.Class])
	putAnswer(a, attributePrefix+"node_warm", r.NodeWarm)
	putAnswer(a, attributePrefix+"image_cached", r.ImageCached)
	a.PutDouble(attributePrefix+"unattributed", r.Unattributed.Seconds())
	a.PutDouble(attributePrefix+"overlap", r.Overlap.Seconds())
	a.PutDouble(attributePrefix+"wasted", r.Wasted.Seconds())
	a.PutInt(attributePrefix+"attempts", int64(r.Attempts))
	if r.Adjusted != 0 {
		a.PutDouble("llmfleet.clock.adjusted_ms", float64(r.Adjusted)/1e6)
	}
	if !r.Dominant.Holds() {
		a.PutStr(attributePrefix+"dominant_stage", r.Dominant.String())
	}
	if r.Outcome != coldstart.Served {
		a.PutStr(attributePrefix+"stopped_stage", r.Stopped.String())
		to.Status().SetCode(ptrace.StatusCodeError)
		to.Status().SetMessage(cmp.Or(r.Spans[0].Failure, fmt.Sprintf("never ready: %s at stage %s", outcomes[r.Outcome], r.Stopped)))
	}
	for _, l := range r.Links {
		link := to.Links().AppendEmpty()
		link.SetTraceID(l.Trace)
		link.SetSpanID(l.Span)
		putText(link.Attributes(), attributePrefix+"link", l.Name)
	}
}

func putText(a pcommon.Map, key, text string) {
	if text != "" {
		a.PutStr(key, text)
	}
}

func putAnswer(a pcommon.Map, key string, answer coldstart.Answer) {
	if answer != coldstart.NotKnown {
		a.PutBool(key, answer == coldstart.Yes)
	}
}

// classes are how much a start had to do, "" if nothing told.
var classes = [...]string{coldstart.ClassNotKnown: "", coldstart.Cold: "cold", coldstart.Warm: "warm", coldstart.Hot: "hot"}

// traceID is a pod's uid where that is a UUID in its usual text (RFC 9562), else the
// first half of its SHA-256: the trace of a pod is found without searching.
func traceID(uid string) (id pcommon.TraceID) {
	const text = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	digits := strings.ReplaceAll(uid, "-", "")
	isUUID := len(uid) == len(text) && len(digits) == 2*len(id) && uid[8] == '-' && uid[13] == '-' && uid[18] == '-' && uid[23] == '-'
	if _, err := hex.Decode(id[:], []byte(digits[:min(len(digits), 2*len(id))])); !isUUID || err != nil || id.IsEmpty() {
		sum := sha256.Sum256([]byte(uid))
		copy(id[:], sum[:])
	}
	return id
}

// rootID is the id of the root of a pod's trace.
func rootID(uid string) pcommon.SpanID { return spanID(uid, coldstart.Whole.String()) }

// spanID is derived from what tells a span from all others of its trace.
func spanID(uid string, key ...string) (id pcommon.SpanID) {
	sum := sha256.Sum256([]byte(uid + "\x00" + strings.Join(key, "\x00")))
	copy(id[:], sum[:])
	return id
}

// numbering gives the spans of one trace their ids.
type numbering struct {
	trace string
	seen  map[[4]string]int
}

// id counts the spans of one stage, pod, container and attempt, in their order.
func (n *numbering) id(s *coldstart.Span) pcommon.SpanID {
	key := [4]string{s.Stage.String(), s.Pod, s.Container, strconv.Itoa(s.Attempt)}
	if n.seen == nil {
		n.seen = make(map[[4]string]int)
	}
	ordinal := n.seen[key]
	n.seen[key]++
	return spanID(n.trace, append(key[:], strconv.Itoa(ordinal))...)
}
