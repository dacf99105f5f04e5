// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/evaluate"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/internal/judge/outlier"
	"github.com/llmfleet/llmfleet/internal/settings"
	"github.com/llmfleet/llmfleet/internal/window"
	"github.com/llmfleet/llmfleet/processor/fleetoutlierprocessor/internal/metadata"
)

var _ processor.Metrics = (*outlierProcessor)(nil)

// outlierProcessor reads metrics as they pass, and judges every fleet at the
// end of each pane. It does without processorhelper, which allocates for every
// request; the pipeline counts what goes in and out of it all the same.
type outlierProcessor struct {
	next      consumer.Metrics
	config    *Config
	plan      plan
	logger    *zap.Logger
	registry  *fleet.Registry
	reader    *intake.Reader
	judge     outlier.Judge
	alarm     *outlier.Alarm // nil: there is none
	devices   *fleet.Accelerators
	keeper    settings.Keeper
	writer    *reportWriter
	loop      *evaluate.Loop
	outcome   outcome
	stop      func() // of the self-telemetry
	explainer intake.Explainer
}

func newProcessor(set processor.Settings, config *Config, next consumer.Metrics) (*outlierProcessor, error) {
	dialects, err := config.Dialects.Load()
	if err != nil {
		return nil, err
	}
	p := &outlierProcessor{next: next, config: config, plan: newPlan(config), logger: set.Logger}
	p.registry = fleet.NewRegistry(fleet.Options{
		Grids:         p.plan.grids,
		Grid:          p.plan.of,
		Lateness:      config.Lateness,
		DepartedAfter: departedAfter(config),
		MaxReplicas:   config.MaxReplicas,
	})
	if config.Alarm != nil {
		p.devices = fleet.NewAccelerators(fleet.AcceleratorOptions{Grid: p.plan.grids[0], Lateness: config.Lateness, MaxReplicas: config.MaxReplicas})
		p.alarm = outlier.NewAlarm(config.Alarm.options(p.devices.Read))
		p.keeper = settings.Keeper{Storage: config.Storage, Kind: component.KindProcessor, Component: set.ID, Key: "alarm", Save: p.alarm.Save}
	}
	p.reader = intake.NewReader(intake.Options{
		Dialects:     dialects,
		Signals:      append([]fleet.Signal{fleet.Waiting, fleet.Running, fleet.KVUsage}, p.plan.full.Signals...),
		GroupBy:      config.GroupBy,
		Aliases:      config.ModelAliases,
		Accelerators: p.devices,
	}, p.registry)
	p.loop = evaluate.New(config.Interval, config.Lateness, p.evaluate)
	p.writer = newReportWriter(config, p.plan.signals, set.BuildInfo.Version, emit.Instance(set.ID), next)
	builder, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	p.stop = builder.Shutdown
	return p, p.report(builder)
}

func departedAfter(c *Config) time.Duration {
	if c.DepartedAfter == nil {
		return 0
	}
	return *c.DepartedAfter
}

// Start opens the first pane.
func (p *outlierProcessor) Start(ctx context.Context, host component.Host) error {
	now := time.Now()
	at := window.Instant(now.UnixNano())
	p.registry.Open(at)
	if p.alarm != nil {
		p.devices.Open(at)
	}
	unread, err := p.keeper.Open(ctx, host, now, func(data []byte) error { return p.alarm.Load(data, at) })
	if err != nil {
		return err
	}
	if unread != nil {
		p.logger.Warn("the alarm's evidence cannot be gone on with, and is gathered anew", zap.Error(unread))
	}
	p.loop.Start()
	return nil
}

// Shutdown judges the newest closed pane if nobody did, and stops.
func (p *outlierProcessor) Shutdown(ctx context.Context) error {
	defer p.stop()
	if err := p.loop.Shutdown(ctx); err != nil {
		return err // an evaluation still runs: what it works on cannot be saved
	}
	return p.keeper.Close(ctx)
}

// Capabilities says that input is not changed.
func (p *outlierProcessor) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeMetrics reads metrics and passes them on as they are.
func (p *outlierProcessor) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	p.reader.Read(md)
	return p.next.ConsumeMetrics(ctx, md)
}

// verdicts are what the alarm says of a fleet; nil if there is none.
func (p *outlierProcessor) verdicts(f *fleet.Frame) *outlier.Verdicts {
	if p.alarm == nil {
		return nil
	}
	return p.alarm.Judge(f)
}

// evaluate judges the panes that end at end, and emits what it finds. Who takes
// it has as long as a pane: a later report is worth more than this one late.
func (p *outlierProcessor) evaluate(ctx context.Context, end time.Time) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, p.config.Interval)
	defer cancel()
	at := window.Instant(end.UnixNano())
	p.writer.begin(at)
	ask := p.plan.usual
	if p.alarm != nil {
		if p.alarm.Suspects() {
			ask = p.plan.full
		}
		p.alarm.Begin()
	}
	p.registry.Close(at, ask, func(f *fleet.Frame) {
		report := p.judge.Judge(f, &p.plan.options[f.Fleet.Plan])
		p.reader.Tally().Ignore(intake.Copy, f.Copies)
		p.writer.write(ctx, f.Fleet, report, p.verdicts(f))
	})
	if p.alarm != nil {
		p.writer.writeNodes(ctx, p.alarm)
		p.devices.Sweep(at)
		if err := p.keeper.Keep(ctx, end, p.alarm.Turned()); err != nil {
			p.logger.Error("the alarm's evidence was not saved", zap.Error(err))
		}
	}
	if err := p.writer.end(ctx); err != nil {
		p.logger.Error("derived metrics were refused", zap.Error(err))
	}
	p.outcome.evaluated(ctx, &p.writer.withheld, time.Since(began))
	p.explainer.Explain(p.reader.Tally(), began, func(r intake.Reason, e *intake.Example, total uint64) {
		p.logger.Warn("points were ignored", zap.Stringer("reason", r), zap.String("metric", e.Metric),
			zap.String("replica", e.Replica), zap.Uint64("points_so_far", total))
	})
}
