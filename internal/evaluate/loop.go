// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// Package evaluate decides when a pane is judged. It is the only internal
// package with a clock: all below it lives in event time.
package evaluate

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Loop calls one function at the end of every pane, lateness later, and once
// more at shutdown. Ends are multiples of the interval since the Unix epoch and
// ascend strictly: a wall clock that is stepped back is waited for, and no pane
// is judged twice.
type Loop struct {
	interval time.Duration
	lateness time.Duration
	evaluate func(ctx context.Context, end time.Time)
	now      func() time.Time

	mu      sync.Mutex // guards cancel and stopped
	cancel  context.CancelFunc
	stopped bool

	stop    chan struct{} // closed by the first Shutdown
	done    chan struct{} // closed when run has returned
	last    time.Time     // end of the newest pane that needs no evaluation any more
	skipped atomic.Uint64
}

// New makes a loop that calls evaluate once for each end T of a pane of length
// interval (> 0), when the wall clock shows T + lateness (>= 0). If several T
// have passed, after a slow evaluation or a suspended machine, only the newest
// is evaluated and the others are counted as skipped.
//
// evaluate never runs twice at once. Its context is cancelled when the context
// of Shutdown ends. Nothing starts before Start.
func New(interval, lateness time.Duration, evaluate func(ctx context.Context, end time.Time)) *Loop {
	return &Loop{
		interval: interval,
		lateness: lateness,
		evaluate: evaluate,
		now:      time.Now,
		stop:     make(chan struct{}),
		done:     make(chan struct{}),
	}
}

// Start begins with the first T that is still to come, and returns at once: what
// ended before is for the process that ran then, which may have judged it when it
// stopped. A second Start, and one after Shutdown, does nothing.
func (l *Loop) Start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped || l.cancel != nil {
		return
	}
	// Not the context of a component's Start: that one ends when Start returns.
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.last = l.newestEnd(min(l.lateness, time.Nanosecond)) // what ends right now has not ended before
	go l.run(ctx)
}

// Shutdown stops the loop, evaluates the newest closed pane (T <= now) that was
// not evaluated yet, without waiting for its lateness, and returns when no
// evaluation runs any more. The open pane is never evaluated.
//
// When ctx ends first, the running evaluation's context is cancelled and
// Shutdown returns ctx's error at once. Shutdown may be called again, and
// without Start.
func (l *Loop) Shutdown(ctx context.Context) error {
	l.mu.Lock()
	cancel := l.cancel
	if !l.stopped {
		l.stopped = true
		close(l.stop)
	}
	l.mu.Unlock()
	if cancel == nil {
		return nil
	}
	defer cancel()
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Skipped returns how many panes were passed over so far.
func (l *Loop) Skipped() uint64 { return l.skipped.Load() }

func (l *Loop) run(ctx context.Context) {
	defer close(l.done)
	for !l.stopping() {
		l.catchUp(ctx, l.newestEnd(l.lateness))
		select {
		case <-time.After(l.untilNext()):
		case <-l.stop:
		}
	}
	l.catchUp(ctx, l.newestEnd(0))
}

func (l *Loop) stopping() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// catchUp evaluates the pane that ends at end unless that is done, or useless
// because the context has ended.
func (l *Loop) catchUp(ctx context.Context, end time.Time) {
	if !end.After(l.last) || ctx.Err() != nil {
		return
	}
	for passed := l.last.Add(l.interval); passed.Before(end); passed = passed.Add(l.interval) {
		l.skipped.Add(1)
	}
	l.last = end
	l.evaluate(ctx, end)
}

// newestEnd returns the newest T whose T + lateness has passed.
func (l *Loop) newestEnd(lateness time.Duration) time.Time {
	since := time.Duration(l.now().Add(-lateness).UnixNano())
	return time.Unix(0, int64(since-since%l.interval)).UTC()
}

// untilNext returns how long to sleep. A timer follows the monotonic clock and
// would sleep through a step of the wall clock, hence at most one interval.
func (l *Loop) untilNext() time.Duration {
	next := l.last.Add(l.interval + l.lateness)
	return min(next.Sub(l.now()), l.interval)
}
