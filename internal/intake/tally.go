// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// Reason is why a point, or a part of it, was not used. The first reasons are
// the window's outcomes.
type Reason uint8

// The reasons that are no window.Outcome.
const (
	Created         = Reason(window.OutcomeCount) + iota // a _created gauge: a time, not a value
	Type                                                 // not the type that the dialect knows
	Range                                                // a value that the signal cannot have
	Unrecorded                                           // a point that says there is no value
	Unspoken                                             // another name or rank already tells the same
	Label                                                // a label value that the dialect leaves out
	RouterCopy                                           // a router's copy of an engine's metric
	NoModel                                              // no model_name, or an empty or undefined one
	NoFleet                                              // none of the keys of group_by is known
	NoIdentity                                           // nothing that names the replica
	NoSignals                                            // the target answers, and has no engine metrics
	Limit                                                // no room for another replica, target or series
	Copy                                                 // a second scrape of the same process
	UnknownModel                                         // a model that model_aliases does not name; its points are used
	UnknownEndpoint                                      // an address at which no replica is known
	NoPod                                                // of an accelerator that no pod holds
	ClaimOnly                                            // of one that a resource claim holds, and nobody says for which pod
	OtherClass                                           // a request's span of a class that is not asked for
	NoTenant                                             // an engine's span that does not say whose request it was
	BadUsage                                             // a number of tokens, or a time, that cannot be; the rest of the span is used
	CacheOverInput                                       // more cached tokens than input that should include them; they are added instead
	Crowd                                                // a tenant for whom there is no place of its own; it counts under __other__
	Incomplete                                           // series of a histogram that lack others without which they are none
	ReasonCount                                          // how many reasons there are; not a reason
)

var reasonNames = [...]string{
	Created: "created", Type: "type", Range: "range", Unrecorded: "no_recorded_value", Unspoken: "unspoken",
	Label: "label", RouterCopy: "router_copy", NoModel: "no_model", NoFleet: "no_fleet", NoIdentity: "no_identity",
	NoSignals: "no_signals", Limit: "limit", Copy: "copy", UnknownModel: "unknown_model", UnknownEndpoint: "unknown_endpoint",
	NoPod: "no_pod", ClaimOnly: "claim_only", Crowd: "crowd",
	OtherClass: "other_class", NoTenant: "no_tenant", BadUsage: "bad_usage", CacheOverInput: "cache_over_input", Incomplete: "incomplete",
}

// String is the reason's name as it stands in self-telemetry.
func (r Reason) String() string {
	switch {
	case r < Created:
		return window.Outcome(r).String()
	case r < ReasonCount:
		return reasonNames[r]
	default:
		return "unknown"
	}
}

// Notable tells whether an operator should hear of it: not of what every scrape
// or every start brings along.
func (r Reason) Notable() bool {
	switch r {
	case Reason(window.First), Reason(window.Reset), Reason(window.StartMoved), Created, Unrecorded, Unspoken, Label, Copy, NoPod, OtherClass, NoTenant:
		return false
	default:
		return true
	}
}

// Tally counts what was read and what was ignored. It is safe for concurrent
// use.
type Tally struct {
	ignored  [ReasonCount]atomic.Uint64
	examples [ReasonCount]atomic.Pointer[Example]
	mu       sync.Mutex
	observed map[*dialect.Entry]*atomic.Uint64
}

// Example is a point that was ignored; of no replica, its target's instance
// stands for it. Of a span, its instrumentation scope or its service stands for
// the metric.
type Example struct{ Metric, Replica string }

func newTally() *Tally { return &Tally{observed: make(map[*dialect.Entry]*atomic.Uint64)} }

// ignore counts one point, and keeps it as an example if there is none.
func (t *Tally) ignore(r Reason, metric, replica string) {
	t.ignored[r].Add(1)
	if t.examples[r].Load() == nil {
		t.examples[r].Store(&Example{strings.Clone(metric), strings.Clone(replica)})
	}
}

// Ignore counts n points that a later step did not use.
func (t *Tally) Ignore(r Reason, n int) {
	t.ignored[r].Add(uint64(max(0, n)))
}

// counter counts the points that were used of one dialect's signal.
func (t *Tally) counter(e *dialect.Entry) *atomic.Uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.observed[e]
	if n == nil {
		n = new(atomic.Uint64)
		t.observed[e] = n
	}
	return n
}

// Ignored is how many points were ignored for the reason.
func (t *Tally) Ignored(r Reason) uint64 { return t.ignored[r].Load() }

// TakeExample returns a point that was ignored for the reason since it was last
// asked for; nil if there was none.
func (t *Tally) TakeExample(r Reason) *Example { return t.examples[r].Swap(nil) }

// Observed calls each with the points used so far, by dialect and signal.
func (t *Tally) Observed(each func(engine string, signal fleet.Signal, points uint64)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for e, n := range t.observed {
		each(e.Dialect.Name, e.Signal, n.Load())
	}
}

// explainEvery is how often at most one reason is explained.
const explainEvery = 10 * time.Minute

// Explainer explains reasons to an operator, each now and then.
type Explainer struct {
	last [ReasonCount]time.Time
}

// Explain calls each with the reasons that an operator should hear of, with an
// example of each and how often it was met so far.
func (x *Explainer) Explain(t *Tally, now time.Time, each func(r Reason, e *Example, total uint64)) {
	for r := range ReasonCount {
		if !r.Notable() || now.Sub(x.last[r]) < explainEvery {
			continue
		}
		if e := t.TakeExample(r); e != nil {
			x.last[r] = now
			each(r, e, t.Ignored(r))
		}
	}
}
