// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstartconnector

import (
	"context"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

const (
	// outboxTraces is how many traces wait for a next component that refuses them.
	outboxTraces = 5000
	// batchTraces is how many are sent at once: some megabytes.
	batchTraces = 100
)

// outbox is the traces that were written and not yet taken, each in a ResourceSpans
// of its own, oldest first. The loop alone puts and sends.
type outbox struct {
	mu      sync.Mutex // guards waiting for those who only look
	waiting []ptrace.Traces
}

func newOutbox() *outbox { return new(outbox) }

// put adds the traces of all ResourceSpans.
func (o *outbox) put(written ptrace.Traces) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, rs := range written.ResourceSpans().All() {
		one := ptrace.NewTraces()
		rs.MoveTo(one.ResourceSpans().AppendEmpty())
		o.waiting = append(o.waiting, one)
	}
}

// bound returns how many traces are too many to wait for the next time: the oldest
// are lost.
func (o *outbox) bound() (lost int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	lost = max(0, len(o.waiting)-outboxTraces)
	o.waiting = slices.Delete(o.waiting, 0, lost)
	return lost
}

// send sends what waits until something is refused, and returns how many traces
// were taken, and how many can never be.
func (o *outbox) send(ctx context.Context, next consumer.Traces) (sent, lost int, err error) {
	for n := o.len(); n > 0; n = o.len() {
		n = min(n, batchTraces)
		batch := ptrace.NewTraces() // what is handed on is the next component's
		for _, one := range o.waiting[:n] {
			one.ResourceSpans().At(0).CopyTo(batch.ResourceSpans().AppendEmpty())
		}
		if refusal := next.ConsumeTraces(ctx, batch); refusal == nil {
			sent += n
		} else {
			err = refusal
			if !consumererror.IsPermanent(refusal) {
				return sent, lost, err
			}
			lost += n
		}
		o.mu.Lock()
		o.waiting = slices.Delete(o.waiting, 0, n)
		o.mu.Unlock()
	}
	return sent, lost, err
}

// len is how many traces wait.
func (o *outbox) len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.waiting)
}

// all are the traces that wait, together.
func (o *outbox) all() ptrace.Traces {
	together := ptrace.NewTraces()
	for _, one := range o.waiting {
		one.ResourceSpans().At(0).CopyTo(together.ResourceSpans().AppendEmpty())
	}
	return together
}
