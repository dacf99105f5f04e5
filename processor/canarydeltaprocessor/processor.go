// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canarydeltaprocessor

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
	"github.com/llmfleet/llmfleet/internal/judge/canary"
	"github.com/llmfleet/llmfleet/internal/settings"
	"github.com/llmfleet/llmfleet/internal/window"
	"github.com/llmfleet/llmfleet/processor/canarydeltaprocessor/internal/metadata"
)

var _ processor.Metrics = (*canaryProcessor)(nil)

// canaryProcessor reads metrics as they pass, and judges the canary of every
// fleet at the end of each pane. It does without processorhelper, which allocates
// for every request; the pipeline counts what goes in and out of it all the same.
type canaryProcessor struct {
	next    consumer.Metrics
	config  *Config
	logger  *zap.Logger
	inputs  []*input // engines, and what is told of the quality of answers, if anything is
	judge   *canary.Judge
	keeper  settings.Keeper
	writer  *reportWriter
	loop    *evaluate.Loop
	outcome outcome
	stop    func() // of the self-telemetry
}

func newProcessor(set processor.Settings, config *Config, next consumer.Metrics) (*canaryProcessor, error) {
	dialects, err := config.Dialects.Load()
	if err != nil {
		return nil, err
	}
	p := &canaryProcessor{
		next: next, config: config, logger: set.Logger,
		inputs: []*input{newEngines(config, dialects)}, judge: canary.NewJudge(config.options()),
	}
	if len(config.Quality) > 0 {
		p.inputs = append(p.inputs, newQuality(config))
	}
	p.keeper = settings.Keeper{Storage: config.Storage, Kind: component.KindProcessor, Component: set.ID, Key: "canaries", Save: p.judge.Save}
	p.loop = evaluate.New(config.Pane, config.Lateness, p.evaluate)
	p.writer = newReportWriter(config, set.BuildInfo.Version, emit.Instance(set.ID), next)
	builder, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	p.stop = builder.Shutdown
	return p, p.report(builder)
}

// Start opens the first pane.
func (p *canaryProcessor) Start(ctx context.Context, host component.Host) error {
	now := time.Now()
	at := window.Instant(now.UnixNano())
	for _, in := range p.inputs {
		in.registry.Open(at)
	}
	unread, err := p.keeper.Open(ctx, host, now, func(data []byte) error { return p.judge.Load(data, at) })
	if err != nil {
		return err
	}
	if unread != nil {
		p.logger.Warn("what was learned of canaries cannot be gone on with, and their comparison begins anew", zap.Error(unread))
	}
	p.loop.Start()
	return nil
}

// Shutdown judges the newest closed pane if nobody did, and stops.
func (p *canaryProcessor) Shutdown(ctx context.Context) error {
	defer p.stop()
	if err := p.loop.Shutdown(ctx); err != nil {
		return err // an evaluation still runs: what it works on cannot be saved
	}
	return p.keeper.Close(ctx)
}

// Capabilities says that input is not changed.
func (p *canaryProcessor) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeMetrics reads metrics and passes them on as they are.
func (p *canaryProcessor) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	for _, in := range p.inputs {
		in.reader.Read(md)
	}
	return p.next.ConsumeMetrics(ctx, md)
}

// evaluate judges the pane that ends at end, and emits what it finds. Who takes
// it has as long as a pane: a later report is worth more than this one late.
func (p *canaryProcessor) evaluate(ctx context.Context, end time.Time) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, p.config.Pane)
	defer cancel()
	at := window.Instant(end.UnixNano())
	p.writer.begin(at)
	p.judge.Begin(at)
	var quality []*fleet.Frame
	for _, in := range p.inputs[1:] {
		in.close(at, func(f *fleet.Frame) { quality = append(quality, f) })
	}
	p.inputs[0].close(at, func(f *fleet.Frame) { p.judgeFleet(ctx, f, quality) })
	if err := p.keeper.Keep(ctx, end, p.judge.Turned()); err != nil {
		p.logger.Error("what was learned of canaries was not saved", zap.Error(err))
	}
	if err := p.writer.end(ctx); err != nil {
		p.logger.Error("derived metrics were refused", zap.Error(err))
	}
	p.outcome.evaluated(ctx, &p.writer.withheld, p.judge.Fleets(), time.Since(began))
	p.explain(began)
}

// judgeFleet judges the canary of one fleet, by what engines tell, and what is
// told of the quality of their answers.
func (p *canaryProcessor) judgeFleet(ctx context.Context, f *fleet.Frame, quality []*fleet.Frame) {
	var ours []*fleet.Frame
	for _, q := range quality {
		if agree(q.Fleet.Keys, f.Fleet.Keys) {
			ours = append(ours, q)
		}
	}
	report, ok := p.judge.Judge(f, ours)
	switch {
	case !ok:
		p.writer.withheld[fleetLimit]++
	case report != nil:
		p.writer.write(ctx, f.Fleet.Keys, report)
	}
}

// explain tells an operator what was ignored, each reason now and then.
func (p *canaryProcessor) explain(now time.Time) {
	for _, in := range p.inputs {
		in.explain.Explain(in.reader.Tally(), now, func(r intake.Reason, e *intake.Example, total uint64) {
			p.logger.Warn("points were ignored", zap.String("input", in.name), zap.Stringer("reason", r), zap.String("metric", e.Metric),
				zap.String("of", e.Replica), zap.Uint64("points_so_far", total))
		})
	}
}
