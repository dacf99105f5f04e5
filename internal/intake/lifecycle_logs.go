// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// ReadLogs calls each with the facts that log records tell: our own facts;
// events, as the receivers k8s_events and k8s_objects deliver them; lines that
// engines write as they start. Records that tell nothing cost next to nothing.
// The fact is borrowed until each returns.
func (l *Lifecycle) ReadLogs(ld plog.Logs, received window.Instant, each func(*lifecycle.Fact)) {
	for _, rl := range ld.ResourceLogs().All() {
		page := logPage{Lifecycle: l, resource: rl.Resource().Attributes(), received: received, each: each}
		page.matcher()
		_, page.events = page.resource.Get(objectKind)
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				page.read(record)
			}
		}
	}
}

// logPage is the records of one resource.
type logPage struct {
	*Lifecycle
	resource pcommon.Map
	received window.Instant
	each     func(*lifecycle.Fact)
	speaks   *narrator // nil until something is told
	startup  *dialect.Startup
	events   bool // the receiver k8s_events speaks
}

// matcher finds the matcher for the engine that is known to run there: by the
// resource, or by what it has said before.
func (p *logPage) matcher() {
	p.startup = p.Lifecycle.startup
	pod, ok := p.resource.Get(lifecycle.KeyPod)
	if !ok {
		return
	}
	where := spot{pod: textIn(pod)}
	if container, ok := p.resource.Get(lifecycle.KeyContainer); ok {
		where.container = textIn(container)
	}
	p.mu.Lock()
	engine, ok := p.engines.get(where)
	p.mu.Unlock()
	if ok {
		p.startup = p.startup.Of(engine)
	}
}

func (p *logPage) narrator() *narrator {
	if p.speaks == nil {
		p.speaks = narratorOf(p.resource)
	}
	return p.speaks
}

func (p *logPage) read(record plog.LogRecord) {
	if event := record.EventName(); event != "" {
		if name, ok := lifecycle.NameOf(event); ok {
			p.told(name, record)
			return
		}
	}
	body := record.Body()
	switch {
	case p.events:
		p.event(deliveredEvent(p.resource, record), p.observed(record))
	case body.Type() == pcommon.ValueTypeStr:
		p.line(body.Str(), record)
	case body.Type() == pcommon.ValueTypeMap:
		if e, live, ok := eventObject(body.Map()); ok {
			learned := p.observed(record)
			if !live {
				learned = 0
			}
			p.event(e, learned)
			return
		}
		if v, ok := first(body.Map(), lineKeys); ok && v.Type() == pcommon.ValueTypeStr {
			p.line(v.Str(), record)
		}
	default:
	}
}

// lineKeys are under which log readers keep the line in a body.
var lineKeys = []string{"log", "message", "msg", "text"}

// observed is when a collector learned of a record.
func (p *logPage) observed(record plog.LogRecord) window.Instant {
	return cmp.Or(instant(record.ObservedTimestamp()), p.received)
}

// line reads what an engine has written. Its time is that with which the container
// runtime has stamped it, which is the node's; else the line's own, which may
// lack year and zone.
func (p *logPage) line(text string, record plog.LogRecord) {
	mark, ok := p.startup.Line(text)
	if !ok {
		return
	}
	s, observed := p.narrator(), p.observed(record)
	p.remember(mark.Engine)
	f := s.own(mark.Name, instant(record.Timestamp()))
	switch {
	case f.At == 0:
		f.At, f.Grain = p.at(mark.Stamp, observed), mark.Stamp.Grain()
	case s.node != "":
		f.Clock = lifecycle.Clock{Kind: lifecycle.Node, Of: s.node}
	}
	f.Container = cmp.Or(f.Container, textOf(record.Attributes(), lifecycle.KeyContainer))
	if f.Attempt < 0 {
		f.Attempt = attempt(record.Attributes())
	}
	f.Took, f.Cached, f.Copy, f.Message = mark.Took, mark.Cached, mark.Copy, shortened(text)
	f.About = knowing(f.About, mark.Model, mark.Engine)
	f.Learned = p.news(f.Clock, f.At, observed)
	p.each(&f)
}

// remember notes which engine runs at the narrator's place.
func (p *logPage) remember(engine string) {
	if p.speaks.pod == "" {
		return
	}
	p.mu.Lock()
	p.engines.put(p.speaks.spot, engine)
	p.mu.Unlock()
	p.startup = p.Lifecycle.startup.Of(engine)
}

// event passes on what an event tells.
func (p *logPage) event(e lifecycle.Event, learned window.Instant) {
	f, ok := e.Fact()
	if !ok {
		return
	}
	if f.Until == 0 { // else the news is that it happened again
		f.Learned = p.news(f.Clock, f.At, learned)
	}
	p.each(&f)
}
