// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleeteventsconnector

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/llmfleet/llmfleet/internal/settings"
)

var _ connector.Metrics = (*eventsConnector)(nil)

// eventsConnector reads derived metrics as they come, and tells what turned. It
// has no loop: all time is that of the points, but for what is forgotten.
type eventsConnector struct {
	id        component.ID
	config    *Config
	version   string
	logger    *zap.Logger
	next      consumer.Logs
	reader    reader
	telemetry telemetry
	client    storage.Client // nil before the start
	outbox    *outbox
	stopped   sync.Once

	mu       sync.Mutex // guards what follows, and what goes into the outbox
	flagged  *flagged
	variants *variants
	swept    time.Time
}

// sweepInterval is how often is looked for what is to be forgotten.
const sweepInterval = time.Minute

func newConnector(set connector.Settings, config *Config, next consumer.Logs) (*eventsConnector, error) {
	r := reader{seed: maphash.MakeSeed()}
	c := &eventsConnector{
		id:       set.ID,
		config:   config,
		version:  set.BuildInfo.Version,
		logger:   set.Logger,
		next:     next,
		reader:   r,
		outbox:   newOutbox(),
		flagged:  newFlagged(config.MaxSeries),
		variants: newVariants(r, config.MaxSeries),
	}
	return c, c.report(set.TelemetrySettings)
}

// Start recalls which flags are on.
func (c *eventsConnector) Start(ctx context.Context, host component.Host) error {
	client, err := settings.Storage(ctx, host, c.config.Storage, component.KindConnector, c.id)
	if err != nil {
		return err
	}
	data, err := client.Get(ctx, memoryKey)
	if err != nil {
		return errors.Join(err, client.Close(ctx))
	}
	c.client = client
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.flagged.recall(data, c.reader, time.Now()); err != nil {
		c.logger.Warn("what was stored cannot be read, and is ignored: onsets may be told again", zap.Error(err))
	}
	return nil
}

// Shutdown tells what was waiting for more, and closes the storage.
func (c *eventsConnector) Shutdown(ctx context.Context) (err error) {
	c.stopped.Do(func() {
		defer c.telemetry.shutdown()
		if c.client == nil {
			return
		}
		now := time.Now()
		j := newJournal(c.version, now)
		c.mu.Lock()
		for _, change := range c.variants.forget(now.Add(1)) {
			j.changed(change)
		}
		c.post(ctx, j)
		c.mu.Unlock()
		c.deliver(ctx)
		c.telemetry.lose(ctx, c.outbox.len())
		c.remember(ctx)
		err = c.client.Close(ctx)
	})
	return err
}

// Capabilities says that input is not changed.
func (*eventsConnector) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeMetrics tells what turned. That events are refused is no fault of the
// metrics: these need not come again, the events are tried again later.
func (c *eventsConnector) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	if all := c.reader.read(md); len(all) > 0 {
		c.tell(ctx, all)
	}
	c.deliver(ctx)
	return nil
}

// tell compares what was read with what is known, and puts the events of it into
// the outbox.
func (c *eventsConnector) tell(ctx context.Context, all readings) {
	now := time.Now()
	j := newJournal(c.version, now)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rd := range all {
		for _, t := range c.flagged.observe(rd, now) {
			j.turned(t, rd, all.fleetOf(rd))
		}
		for _, change := range c.variants.observe(rd, now) {
			j.changed(change)
		}
	}
	if now.Sub(c.swept) >= sweepInterval {
		c.swept = now
		c.sweep(j, now.Add(-c.config.ForgetAfter))
	}
	c.post(ctx, j)
}

// post puts events into the outbox, and counts them.
func (c *eventsConnector) post(ctx context.Context, j *journal) {
	c.outbox.put(j.logs)
	c.telemetry.tell(ctx, j.told)
}

// sweep forgets what was last heard of before.
func (c *eventsConnector) sweep(j *journal, before time.Time) {
	c.flagged.forget(before, func(rd *reading, t turn) { j.turned(t, rd, nil) })
	for _, change := range c.variants.forget(before) {
		j.changed(change)
	}
}

// deliver hands the events to the next component, unless another call does. When
// all are taken, what is on is stored: an event may be told twice if the process
// dies in between, but none is lost.
func (c *eventsConnector) deliver(ctx context.Context) {
	if !c.outbox.begin() {
		return
	}
	for {
		logs, some := c.outbox.take()
		if !some {
			return
		}
		copied := plog.NewLogs()
		logs.CopyTo(copied) // what is handed on is the next component's
		switch err := c.next.ConsumeLogs(ctx, copied); {
		case err == nil:
		case consumererror.IsPermanent(err):
			c.telemetry.lose(ctx, logs.LogRecordCount())
			c.logger.Error("events were refused for good", zap.Error(err))
		default:
			c.telemetry.lose(ctx, c.outbox.giveUp(logs))
			c.logger.Warn("events were refused, and are tried again with the next metrics", zap.Error(err))
			return
		}
		c.remember(ctx)
	}
}

// remember stores which flags are on, if all that was told was taken.
func (c *eventsConnector) remember(ctx context.Context) {
	if c.config.Storage == nil {
		return
	}
	c.mu.Lock()
	if c.outbox.len() > 0 {
		c.mu.Unlock()
		return
	}
	data, err := c.flagged.remember()
	c.mu.Unlock()
	if err == nil {
		err = c.client.Set(ctx, memoryKey, data)
	}
	if err != nil {
		c.logger.Error("what is on could not be stored: after a restart, onsets may be told again", zap.Error(err))
	}
}
