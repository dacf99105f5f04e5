// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package k8sfleetreceiver

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
)

var _ receiver.Logs = (*logsReceiver)(nil)

// logsReceiver tells facts.
type logsReceiver struct {
	part
	next consumer.Logs
	stop context.CancelFunc // nil unless started
	sent chan struct{}      // closed when nothing is sent any more
}

func newLogsReceiver(c *core, next consumer.Logs) *logsReceiver {
	c.outbox.open.Store(true) // facts wait for the start, whoever starts first
	return &logsReceiver{part: part{core: c}, next: next}
}

// Start begins to watch and to tell.
func (l *logsReceiver) Start(ctx context.Context, host component.Host) error {
	if err := l.join(ctx, host); err != nil {
		return err
	}
	sending, stop := context.WithCancel(context.Background())
	l.stop, l.sent = stop, make(chan struct{})
	go func() {
		defer close(l.sent)
		l.outbox.run(sending, l.next)
	}()
	return nil
}

// Shutdown tells what is known, and ends.
func (l *logsReceiver) Shutdown(ctx context.Context) error {
	return l.shutdown(ctx, func(ctx context.Context) error {
		l.outbox.open.Store(false)
		if l.stop == nil {
			return nil
		}
		l.stop()
		select {
		case <-l.sent:
		case <-ctx.Done():
			return fmt.Errorf("facts are still being sent: %w", context.Cause(ctx))
		}
		l.outbox.flush(ctx, l.next)
		return nil
	})
}
