// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantshareprocessor

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
	"github.com/llmfleet/llmfleet/internal/settings"
	"github.com/llmfleet/llmfleet/internal/window"
	"github.com/llmfleet/llmfleet/processor/tenantshareprocessor/internal/metadata"
)

var _ processor.Metrics = (*shareProcessor)(nil)

// shareProcessor reads metrics as they pass, and judges the tenants of every
// fleet at the end of each pane. It does without processorhelper, which allocates
// for every request; the pipeline counts what goes in and out of it all the same.
type shareProcessor struct {
	next     consumer.Metrics
	config   *Config
	logger   *zap.Logger
	engines  *input
	tenants  *input
	budgets  *input // nil unless its metric is on
	court    court
	keeper   settings.Keeper
	writer   *reportWriter
	loop     *evaluate.Loop
	outcome  outcome
	stop     func() // of the self-telemetry
	accounts []account

	strangersAt time.Time // when it was last said that nobody serves a model
}

func newProcessor(set processor.Settings, config *Config, next consumer.Metrics) (*shareProcessor, error) {
	dialects, err := config.Dialects.Load()
	if err != nil {
		return nil, err
	}
	p := &shareProcessor{
		next: next, config: config, logger: set.Logger,
		engines: newEngines(config, dialects), tenants: newTenants(config, dialects), court: newCourt(config),
	}
	if config.Metrics.On(emit.TenantBudgetUsed) {
		p.budgets = newBudgets(config, dialects)
	}
	p.keeper = settings.Keeper{Storage: config.Storage, Kind: component.KindProcessor, Component: set.ID, Key: "tenants", Save: p.court.save}
	p.loop = evaluate.New(config.Pane, config.Lateness, p.evaluate)
	p.writer = newReportWriter(config, set.BuildInfo.Version, emit.Instance(set.ID), next)
	builder, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	p.stop = builder.Shutdown
	return p, p.report(builder)
}

// inputs are all that is read.
func (p *shareProcessor) inputs() []*input {
	if p.budgets == nil {
		return []*input{p.engines, p.tenants}
	}
	return []*input{p.engines, p.tenants, p.budgets}
}

// Start opens the first pane.
func (p *shareProcessor) Start(ctx context.Context, host component.Host) error {
	now := time.Now()
	at := window.Instant(now.UnixNano())
	for _, in := range p.inputs() {
		in.registry.Open(at)
	}
	p.court.opened = at
	unread, err := p.keeper.Open(ctx, host, now, func(data []byte) error { return p.court.load(data, at) })
	if err != nil {
		return err
	}
	if unread != nil {
		p.logger.Warn("what was learned of tenants cannot be gone on with, and is learned anew", zap.Error(unread))
	}
	p.loop.Start()
	return nil
}

// Shutdown judges the newest closed pane if nobody did, and stops.
func (p *shareProcessor) Shutdown(ctx context.Context) error {
	defer p.stop()
	if err := p.loop.Shutdown(ctx); err != nil {
		return err // an evaluation still runs: what it works on cannot be saved
	}
	return p.keeper.Close(ctx)
}

// Capabilities says that input is not changed.
func (p *shareProcessor) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeMetrics reads metrics and passes them on as they are.
func (p *shareProcessor) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	for _, in := range p.inputs() {
		in.reader.Read(md)
	}
	return p.next.ConsumeMetrics(ctx, md)
}

// evaluate judges the pane that ends at end, and emits what it finds. Who takes
// it has as long as a pane: a later report is worth more than this one late.
func (p *shareProcessor) evaluate(ctx context.Context, end time.Time) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, p.config.Pane)
	defer cancel()
	at := window.Instant(end.UnixNano())
	p.writer.begin(at)
	p.accounts = p.accounts[:0]
	p.tenants.registry.Close(at, tenantAsk(p.config.Pane), func(f *fleet.Frame) {
		p.tenants.reader.Tally().Ignore(intake.Copy, f.Copies)
		if a := newAccount(f); len(a.tenants) > 0 {
			p.accounts = append(p.accounts, a)
		}
	})
	p.court.begin(at)
	p.engines.registry.Close(at, fleet.Ask{Signals: engineSignals}, func(f *fleet.Frame) {
		p.engines.reader.Tally().Ignore(intake.Copy, f.Copies)
		p.judge(ctx, f)
	})
	p.writeBudgets(ctx, at)
	p.mindStrangers(began)
	p.court.sweep()
	if err := p.keeper.Keep(ctx, end, p.court.turned); err != nil {
		p.logger.Error("what was learned of tenants was not saved", zap.Error(err))
	}
	if err := p.writer.end(ctx); err != nil {
		p.logger.Error("derived metrics were refused", zap.Error(err))
	}
	p.outcome.evaluated(ctx, &p.writer.withheld, len(p.court.dockets), time.Since(began))
	p.explain(began)
}

// judge judges one fleet of engines and its tenants.
func (p *shareProcessor) judge(ctx context.Context, f *fleet.Frame) {
	told := tellable(p.accounts, f.Fleet.Keys, p.config.Sources)
	docket := p.court.docket(f.Fleet.Key())
	if docket == nil {
		p.writer.withheld[fleetLimit]++
		return
	}
	service := newService(f)
	a := docket.choose(told, &p.court.options)
	if service.replicas > 0 || a != nil {
		docket.seen = p.court.at
	}
	pane := service.pane(a)
	pane.End = p.court.at
	report, turned := docket.hear(&pane, docket.whole(a) && !p.court.partial())
	p.court.turned = p.court.turned || turned
	p.writer.writeFleet(ctx, f.Fleet.Keys, report, a)
	if a != nil {
		p.writer.writeTenants(ctx, f.Fleet.Keys, a, docket.verdicts, docket.name(a.tenants, p.config.Top))
	}
}

// explain tells an operator what was ignored, each reason now and then.
func (p *shareProcessor) explain(now time.Time) {
	for _, in := range p.inputs() {
		in.explain.Explain(in.reader.Tally(), now, func(r intake.Reason, e *intake.Example, total uint64) {
			p.logger.Warn("points were ignored", zap.String("input", in.name), zap.Stringer("reason", r), zap.String("metric", e.Metric),
				zap.String("of", e.Replica), zap.Uint64("points_so_far", total))
		})
	}
}
