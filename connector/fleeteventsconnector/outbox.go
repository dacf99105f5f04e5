// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleeteventsconnector

import (
	"sync"

	"go.opentelemetry.io/collector/pdata/plog"
)

// outboxLimit is how many records wait for a next component that refuses them,
// until the next call.
const outboxLimit = 1000

// outbox is the records that are told and not yet taken. One caller at a time
// delivers them, so that they arrive in order.
type outbox struct {
	mu      sync.Mutex
	waiting plog.Logs
	busy    bool
}

func newOutbox() *outbox { return &outbox{waiting: plog.NewLogs()} }

// put adds records.
func (o *outbox) put(logs plog.Logs) {
	o.mu.Lock()
	defer o.mu.Unlock()
	logs.ResourceLogs().MoveAndAppendTo(o.waiting.ResourceLogs())
}

// begin tells whether the caller is to deliver: there is something, and nobody
// else does.
func (o *outbox) begin() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy || o.waiting.LogRecordCount() == 0 {
		return false
	}
	o.busy = true
	return true
}

// take hands out what waits. Where nothing does, the delivery is over.
func (o *outbox) take() (plog.Logs, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	logs := o.waiting
	if logs.LogRecordCount() == 0 {
		o.busy = false
		return logs, false
	}
	o.waiting = plog.NewLogs()
	return logs, true
}

// giveUp ends the delivery and keeps the records that were refused for the next
// one, before those that came meanwhile. It returns how many are too many; these
// are the oldest.
func (o *outbox) giveUp(refused plog.Logs) (lost int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.busy = false
	o.waiting.ResourceLogs().MoveAndAppendTo(refused.ResourceLogs())
	o.waiting = refused
	lost = max(0, refused.LogRecordCount()-outboxLimit)
	drop := lost
	for _, rl := range refused.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			sl.LogRecords().RemoveIf(func(plog.LogRecord) bool {
				drop--
				return drop >= 0
			})
		}
	}
	refused.ResourceLogs().RemoveIf(func(rl plog.ResourceLogs) bool { return rl.ScopeLogs().At(0).LogRecords().Len() == 0 })
	return lost
}

// len is how many records wait.
func (o *outbox) len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.waiting.LogRecordCount()
}
