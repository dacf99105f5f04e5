// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstartconnector

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/llmfleet/llmfleet/connector/coldstartconnector/internal/metadata"
	"github.com/llmfleet/llmfleet/internal/evaluate"
	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/internal/judge/coldstart"
	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/settings"
	"github.com/llmfleet/llmfleet/internal/sharedcore"
	"github.com/llmfleet/llmfleet/internal/window"
)

// core is what the connectors of all pairs of signals with one configuration share:
// a start is told by logs, spans and metrics together.
type core struct {
	config    *Config
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	lifecycle *intake.Lifecycle
	loop      *evaluate.Loop
	tracer    tracer
	teller    *teller // this and what follows up to the duties are of the loop
	figures   *figures
	keeper    settings.Keeper
	outbox    *outbox

	reading            [signalCount]sharedcore.Duty[part]
	tracing, measuring sharedcore.Duty[part]
	tally              tally

	mu      sync.Mutex // guards what follows
	started bool
	book    *coldstart.Book
	noted   bool // something, since the last evaluation
}

var cores sharedcore.Cores[*Config, *core]

func newCore(set connector.Settings, config *Config) (*core, error) {
	dialects, err := config.Dialects.Load()
	if err != nil {
		return nil, err
	}
	c := &core{
		config: config, logger: set.Logger,
		lifecycle: intake.NewLifecycle(intake.LifecycleOptions{Dialects: dialects, MaxPods: config.MaxPods}),
		tracer:    tracer{version: set.BuildInfo.Version},
		outbox:    newOutbox(),
		book:      coldstart.New(config.bookOptions()),
	}
	c.figures = newFigures(config)
	c.teller = newTeller(config, set, c.measure)
	c.keeper = settings.Keeper{
		Storage: config.Storage, Kind: component.KindConnector, Component: set.ID, Key: "starts", Save: c.save,
	}
	c.loop = evaluate.New(config.Interval, 0, c.evaluate)
	if c.telemetry, err = metadata.NewTelemetryBuilder(set.TelemetrySettings); err != nil {
		return nil, err
	}
	return c, c.report()
}

// start recalls what was known, once.
func (c *core) start(ctx context.Context, host component.Host) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started {
		return nil
	}
	now := time.Now()
	unread, err := c.keeper.Open(ctx, host, now, func(data []byte) error { return c.load(data, instant(now)) })
	if err != nil {
		return err
	}
	if unread != nil {
		c.logger.Warn("what was known of starts cannot be gone on with: those that were open are told as far as they are heard of again", zap.Error(unread))
	}
	c.started = true
	c.figures.begin(instant(now))
	c.loop.Start()
	return nil
}

// close saves what is known, after the loop was shut down with the error err.
func (c *core) close(ctx context.Context, err error) error {
	defer c.telemetry.Shutdown()
	if err != nil {
		return err // an evaluation still runs: what it works on cannot be saved
	}
	if c.config.Storage == nil {
		c.telemetry.ConnectorColdStartLost.Add(ctx, int64(c.outbox.len()))
	}
	return c.keeper.Close(ctx)
}

// note takes a fact.
func (c *core) note(f *lifecycle.Fact) {
	now := instant(time.Now())
	c.mu.Lock()
	ignored := c.book.Note(f, now)
	c.noted = c.noted || ignored == coldstart.Taken
	c.mu.Unlock()
	c.tally.note(f.Name, ignored)
}

// link takes a span of another trace that tells of a pod's start.
func (c *core) link(pod string, l lifecycle.Link) {
	c.mu.Lock()
	c.book.Link(pod, l)
	c.noted = true
	c.mu.Unlock()
	c.telemetry.ConnectorColdStartLinks.Add(context.Background(), 1)
}

// evaluate tells the starts that are over. What is sent next has as long as an
// interval to be taken.
func (c *core) evaluate(ctx context.Context, end time.Time) {
	began, at := time.Now(), instant(end)
	sending, cancel := context.WithTimeout(ctx, c.config.Interval)
	defer cancel()
	c.mu.Lock()
	closed, progress := c.book.Close(at), c.book.Progress()
	turned := c.noted || len(closed.Starts)+len(closed.Afters) > 0
	c.noted = false
	c.mu.Unlock()

	c.observe(ctx, at, &closed, progress)
	sent := c.send(sending)
	if err := c.teller.tell(sending, at, c.figures); err != nil {
		c.logger.Error("metrics of starts were refused: what they count is in the next ones", zap.Error(err))
	}
	if err := c.keeper.Keep(ctx, end, turned || sent > 0); err != nil {
		c.telemetry.ConnectorColdStartStorageErrors.Add(ctx, 1)
		c.logger.Error("what is known of starts was not saved", zap.Error(err))
	}
	c.telemetry.ConnectorColdStartEvaluationDuration.Record(ctx, time.Since(began).Seconds())
}

// observe counts what is over, and writes its traces if they can go anywhere.
func (c *core) observe(ctx context.Context, at window.Instant, closed *coldstart.Closed, progress []coldstart.Progress) {
	overflow := c.figures.turn(at)
	written := ptrace.NewTraces()
	for _, r := range closed.Starts {
		c.telemetry.ConnectorColdStartStarts.Add(ctx, 1, inOutcome[r.Outcome])
		c.figures.observe(r)
		c.tracer.start(r, written)
	}
	for i := range closed.Afters {
		c.figures.after(&closed.Afters[i])
		c.tracer.after(&closed.Afters[i], written)
	}
	c.figures.progress(progress)
	if n := c.figures.overflowed - overflow; n > 0 {
		c.telemetry.ConnectorColdStartOverflow.Add(ctx, n)
	}
	if c.tracing.Holder() != nil {
		c.outbox.put(written)
	}
}

// send sends the traces that wait, and returns how many were taken. Those that are
// refused wait for the next evaluation.
func (c *core) send(ctx context.Context) (sent int) {
	to := c.tracing.Holder()
	if to == nil {
		return 0
	}
	sent, lost, err := c.outbox.send(ctx, to.traces)
	lost += c.outbox.bound()
	c.telemetry.ConnectorColdStartTraces.Add(ctx, int64(sent))
	c.lose(ctx, lost)
	if err != nil {
		c.logger.Error("traces of starts were refused", zap.Int("waiting", c.outbox.len()), zap.Int("lost", lost), zap.Error(err))
	}
	return sent
}

func (c *core) lose(ctx context.Context, n int) {
	if n > 0 {
		c.telemetry.ConnectorColdStartLost.Add(ctx, int64(n))
	}
}

// measure sends metrics, once however many pairs of signals there are.
func (c *core) measure(ctx context.Context, md pmetric.Metrics) error {
	to := c.measuring.Holder()
	if to == nil {
		return nil
	}
	return to.metrics.ConsumeMetrics(ctx, md)
}

// tally counts facts.
type tally struct {
	taken   [math.MaxUint8 + 1]atomic.Int64 // by lifecycle.Name
	ignored [reasonCount]atomic.Int64
}

func (t *tally) note(name lifecycle.Name, ignored coldstart.Ignored) {
	if ignored != coldstart.Taken {
		t.ignored[ignored].Add(1)
		return
	}
	t.taken[name].Add(1)
}
