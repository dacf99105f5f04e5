// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetidentityprocessor

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"

	"github.com/llmfleet/llmfleet/internal/evaluate"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/internal/sharedcore"
	"github.com/llmfleet/llmfleet/internal/window"
	"github.com/llmfleet/llmfleet/processor/fleetidentityprocessor/internal/metadata"
)

// core is what the processors of all pipelines and signals with one
// configuration share: what metrics tell of a replica, its spans and logs
// profit from.
type core struct {
	config     *Config
	logger     *zap.Logger
	directory  *fleet.Directory
	clerk      *intake.Clerk
	loop       *evaluate.Loop
	telemetry  *metadata.TelemetryBuilder
	teller     *teller
	canonicals *canonicalSignals
	unasked    intake.Stamps // that are not added
	explainer  intake.Explainer

	telling sharedcore.Duty[part] // of the metrics pipelines that were started
	start   sync.Once
}

var cores sharedcore.Cores[*Config, *core]

// acquire returns the core of a configuration, for one processor more.
func acquire(set processor.Settings, config *Config) (*core, error) {
	return cores.Acquire(config, func() (*core, error) { return newCore(set, config) })
}

func newCore(set processor.Settings, config *Config) (*core, error) {
	dialects, err := config.Dialects.Load()
	if err != nil {
		return nil, err
	}
	c := &core{config: config, logger: set.Logger, unasked: config.unasked()}
	options := fleet.DirectoryOptions{MaxReplicas: config.MaxReplicas, ForgetAfter: config.ForgetAfter}
	for _, name := range config.Sources {
		options.Order = append(options.Order, fleet.OriginsOf(name)...)
	}
	c.directory = fleet.NewDirectory(options)
	labels := make(map[fleet.Fact][]string)
	for name, list := range config.Labels {
		fact, _ := fleet.ParseFact(name)
		labels[fact] = list
	}
	c.clerk = intake.NewClerk(intake.ClerkOptions{
		Dialects: dialects, Labels: labels, Groups: config.Groups, Aliases: config.ModelAliases, MaxReplicas: config.MaxReplicas,
	}, c.directory)
	c.teller = newTeller(config, set, c.emit)
	c.canonicals = newCanonicalSignals(config)
	c.loop = evaluate.New(config.Interval, 0, c.evaluate)
	if c.telemetry, err = metadata.NewTelemetryBuilder(set.TelemetrySettings); err != nil {
		return nil, err
	}
	return c, c.report(c.telemetry)
}

// part is what the processor of one pipeline has of the core.
type part struct {
	*core
	derived consumer.Metrics // where metrics go; nil where none can
	stopped sync.Once
}

// Start starts the core with the first of its processors.
func (p *part) Start(context.Context, component.Host) error {
	if p.derived != nil {
		p.telling.Join(p)
	}
	p.start.Do(func() {
		p.clerk.Sweep(window.Instant(time.Now().UnixNano()))
		p.loop.Start()
	})
	return nil
}

// Shutdown stops the core with the last of its processors, and with the last
// that metrics can go to: what comes after that one may be stopped already when
// the others are.
func (p *part) Shutdown(ctx context.Context) error {
	var err error
	p.stopped.Do(func() {
		last := cores.Release(p.config)
		if last || p.telling.Alone(p) {
			err = p.loop.Shutdown(ctx)
		}
		p.telling.Leave(p)
		if last {
			p.telemetry.Shutdown()
		}
	})
	return err
}

// emit sends derived metrics down the first pipeline there is: once, however
// many share the core.
func (c *core) emit(ctx context.Context, md pmetric.Metrics) error {
	teller := c.telling.Holder()
	if teller == nil {
		return nil
	}
	return teller.derived.ConsumeMetrics(ctx, md)
}

// Capabilities says that input is changed: attributes are added.
func (*part) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

// evaluate forgets who is silent, and tells what is known.
func (c *core) evaluate(ctx context.Context, end time.Time) {
	began, at := time.Now(), window.Instant(end.UnixNano())
	residents := c.clerk.Sweep(at)
	if err := c.teller.tell(ctx, at, residents, c.clerk); err != nil {
		c.logger.Error("derived metrics were refused", zap.Error(err))
	}
	c.telemetry.ProcessorFleetIdentityEvaluationDuration.Record(ctx, time.Since(began).Seconds())
	c.explainer.Explain(c.clerk.Tally(), began, func(r intake.Reason, e *intake.Example, total uint64) {
		c.logger.Warn("not identified", zap.Stringer("reason", r), zap.String("what", e.Metric),
			zap.String("sender", e.Replica), zap.Uint64("so_far", total))
	})
}
