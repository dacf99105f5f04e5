// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package k8sfleetreceiver

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/metadata"
)

const (
	// linger is how long facts are gathered before they are sent.
	linger = 100 * time.Millisecond
	// mostWaiting is how many facts wait for a next component that takes its time.
	mostWaiting = 100_000
	// batchFacts is how many facts one plog.Logs holds at most.
	batchFacts = 1000
	// A refused batch is sent again after retryFirst, then after twice that, and so
	// on up to retryMost.
	retryFirst = time.Second
	retryMost  = 30 * time.Second
)

// letter is a fact, with who the pod is: an event does not say.
type letter struct {
	lifecycle.Fact
	of *lifecycle.Pod
}

// outbox is facts on their way to the next component. Who adds never waits.
type outbox struct {
	*core
	open atomic.Bool // there is a next component

	mu      sync.Mutex
	waiting []letter
	sending int           // of the batch that was taken out
	wake    chan struct{} // has room for one
}

func newOutbox(c *core) *outbox { return &outbox{core: c, wake: make(chan struct{}, 1)} }

// wanted tells whether anybody is told facts.
func (o *outbox) wanted() bool { return o.open.Load() }

// add has a fact sent; it tells whether there was room.
func (o *outbox) add(l letter) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) >= mostWaiting {
		o.tally.lost.Add(1)
		return false
	}
	o.waiting = append(o.waiting, l)
	select {
	case o.wake <- struct{}{}:
	default:
	}
	return true
}

// next takes a batch out; nil if nothing waits.
func (o *outbox) next() []letter {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(len(o.waiting), batchFacts)
	batch := o.waiting[:n:n]
	o.sending = n
	if o.waiting = o.waiting[n:]; len(o.waiting) == 0 {
		o.waiting = nil
	}
	return batch
}

// run sends what is added until ctx ends, and what waits then, each batch once.
func (o *outbox) run(ctx context.Context, to consumer.Logs) {
	for ctx.Err() == nil {
		select {
		case <-o.wake:
			pause(ctx, linger)
			o.sendAll(ctx, to)
		case <-ctx.Done():
		}
	}
}

// sendAll sends what waits. What is refused, but not for good, is sent again.
func (o *outbox) sendAll(ctx context.Context, to consumer.Logs) {
	for batch := o.next(); len(batch) > 0; batch = o.next() {
		for wait := retryFirst; ; wait = min(2*wait, retryMost) {
			err := to.ConsumeLogs(ctx, o.logs(batch))
			if err == nil {
				o.count(batch)
				break
			}
			if consumererror.IsPermanent(err) {
				o.lose(batch, err)
				break
			}
			if !pause(ctx, wait) {
				o.putBack(batch)
				return
			}
		}
	}
}

// flush sends what waits, each batch once.
func (o *outbox) flush(ctx context.Context, to consumer.Logs) {
	for batch := o.next(); len(batch) > 0; batch = o.next() {
		if err := to.ConsumeLogs(ctx, o.logs(batch)); err != nil {
			o.lose(batch, err)
			continue
		}
		o.count(batch)
	}
}

func (o *outbox) putBack(batch []letter) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting, o.sending = append(batch, o.waiting...), 0
}

// empty tells whether nothing is on its way.
func (o *outbox) empty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.waiting)+o.sending == 0
}

func (o *outbox) count(batch []letter) {
	for i := range batch {
		o.tally.told[batch[i].Name].Add(1)
	}
}

// lose gives a batch up. Its facts are told when their sources say them again.
func (o *outbox) lose(batch []letter, err error) {
	o.tally.lost.Add(int64(len(batch)))
	o.logger.Error("facts were refused, they are told when Kubernetes tells them again", zap.Int("facts", len(batch)), zap.Error(err))
	o.core.mu.Lock()
	defer o.core.mu.Unlock()
	for i := range batch {
		o.told.Untell(&batch[i].Fact)
	}
}

// logs writes facts, those of one pod together: whose they are is the resource.
func (o *outbox) logs(batch []letter) plog.Logs {
	logs := plog.NewLogs()
	of := make(map[string]plog.LogRecordSlice)
	for i := range batch {
		l := &batch[i]
		records, ok := of[l.Pod]
		if !ok {
			rl := logs.ResourceLogs().AppendEmpty()
			sl := rl.ScopeLogs().AppendEmpty()
			sl.Scope().SetName(metadata.ScopeName)
			sl.Scope().SetVersion(o.version)
			emit.WriteFactResource(&lifecycle.Fact{Pod: l.Pod, About: l.of}, rl.Resource())
			records = sl.LogRecords()
			of[l.Pod] = records
		}
		emit.WriteFact(&l.Fact, records.AppendEmpty())
	}
	return logs
}

// pause waits; it tells whether ctx let it.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
