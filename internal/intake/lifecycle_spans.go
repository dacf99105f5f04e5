// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// Attributes that tell spans of an engine.
const (
	loaderProcess  = "vllm.process_id"
	loaderProcName = "vllm.process_name"
	loaderModule   = "vllm.instrumenting_module_name"
	// firstTokenAfter is on the span of a request, in seconds, of vLLM and SGLang.
	firstTokenAfter = "gen_ai.latency.time_to_first_token" //nolint:gosec // no credential
)

// ReadTraces calls each with the facts that spans tell, and link with the spans
// that tell of a pod's start in a trace of their own: those with which vLLM
// describes its loading, one of each rank. A span of a request tells of the
// first token of its replica, unless an earlier one did. The fact is borrowed
// until each returns.
func (l *Lifecycle) ReadTraces(td ptrace.Traces, each func(*lifecycle.Fact), link func(pod string, l lifecycle.Link)) {
	for _, rs := range td.ResourceSpans().All() {
		page := spanPage{Lifecycle: l, resource: rs.Resource().Attributes(), each: each, link: link}
		_, page.loads = first(page.resource, []string{loaderProcess, loaderModule})
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				page.read(span)
			}
		}
	}
}

// spanPage is the spans of one resource.
type spanPage struct {
	*Lifecycle
	resource pcommon.Map
	each     func(*lifecycle.Fact)
	link     func(pod string, l lifecycle.Link)
	speaks   *narrator // nil until something is told
	loads    bool      // it is instrumented as vLLM's loading is
}

func (p *spanPage) narrator() *narrator {
	if p.speaks == nil {
		p.speaks = narratorOf(p.resource)
	}
	return p.speaks
}

func (p *spanPage) read(span ptrace.Span) {
	if p.loads {
		if begins, ends, ok := p.startup.Span(span.Name()); ok {
			p.load(span, begins, ends)
			return
		}
	}
	if v, ok := span.Attributes().Get(firstTokenAfter); ok && v.Type() == pcommon.ValueTypeDouble {
		if after := duration(v.Double()); after > 0 {
			p.token(instant(span.StartTimestamp()).Add(after))
		}
	}
}

// load reads a stage of loading: its two ends are facts.
func (p *spanPage) load(span ptrace.Span, begins, ends lifecycle.Name) {
	s := p.narrator()
	start, end := instant(span.StartTimestamp()), instant(span.EndTimestamp())
	tell := func(name lifecycle.Name, at window.Instant) {
		if name == lifecycle.Unknown {
			return
		}
		f := s.own(name, at)
		f.Copy = cmp.Or(textOf(p.resource, loaderProcName), textOf(p.resource, loaderProcess))
		f.About = knowing(f.About, "", "vllm")
		if at == end && name == ends && begins != lifecycle.Unknown {
			f.Took = max(0, end.Sub(start))
		}
		p.each(&f)
	}
	tell(begins, start)
	tell(ends, end)
	if s.pod != "" {
		p.link(s.pod, lifecycle.Link{Trace: span.TraceID(), Span: span.SpanID(), Name: span.Name()})
	}
}

// tokens is what is known of a replica's first token.
type tokens struct {
	zero  window.Instant // when it was last seen to have made none
	first window.Instant // 0 if it was not told
	made  bool           // it has made some
}

// token tells of a token, unless an earlier one was told.
func (p *spanPage) token(at window.Instant) {
	pod := textOf(p.resource, lifecycle.KeyPod)
	if pod == "" {
		return
	}
	p.mu.Lock()
	known, _ := p.tokens.get(pod)
	news := known.first == 0 || at < known.first
	if news {
		known.made, known.first = true, at
		p.tokens.put(pod, known)
	}
	p.mu.Unlock()
	if news {
		f := p.narrator().own(lifecycle.FirstToken, at)
		p.each(&f)
	}
}
