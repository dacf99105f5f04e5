// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetidentityprocessor

import (
	"context"
	"slices"
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
	explainer  intake.Explainer

	mu      sync.Mutex
	started bool
	users   int     // processors that were made and not shut down
	sinks   []*part // of the metrics pipelines that were started, oldest first
}

// cores are those in use. The collector makes a processor for each pipeline and
// signal, and gives all of one name the same configuration.
var cores = struct {
	sync.Mutex
	of map[*Config]*core
}{of: make(map[*Config]*core)}

// acquire returns the core of a configuration, for one processor more.
func acquire(set processor.Settings, config *Config) (*core, error) {
	cores.Lock()
	defer cores.Unlock()
	c := cores.of[config]
	if c == nil {
		var err error
		if c, err = newCore(set, config); err != nil {
			return nil, err
		}
		cores.of[config] = c
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users++
	return c, nil
}

func newCore(set processor.Settings, config *Config) (*core, error) {
	dialects, err := config.Dialects.Load()
	if err != nil {
		return nil, err
	}
	c := &core{config: config, logger: set.Logger}
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
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.derived != nil {
		p.sinks = append(p.sinks, p)
	}
	if !p.started {
		p.started = true
		p.clerk.Sweep(window.Instant(time.Now().UnixNano()))
		p.loop.Start()
	}
	return nil
}

// Shutdown stops the core with the last of its processors, and with the last
// that metrics can go to: what comes after that one may be stopped already when
// the others are.
func (p *part) Shutdown(ctx context.Context) error {
	var err error
	p.stopped.Do(func() {
		last := p.release()
		if last || p.onlySink() {
			err = p.loop.Shutdown(ctx)
		}
		p.withdraw()
		if last {
			p.telemetry.Shutdown()
		}
	})
	return err
}

// release gives the core up, and tells whether it was the last to do so.
func (c *core) release() bool {
	cores.Lock()
	defer cores.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.users--; c.users > 0 {
		return false
	}
	if cores.of[c.config] == c {
		delete(cores.of, c.config)
	}
	return true
}

func (p *part) onlySink() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.derived != nil && len(p.sinks) == 1 && p.sinks[0] == p
}

func (p *part) withdraw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sinks = slices.DeleteFunc(p.sinks, func(sink *part) bool { return sink == p })
}

// emit sends derived metrics down the first pipeline there is: once, however
// many share the core.
func (c *core) emit(ctx context.Context, md pmetric.Metrics) error {
	c.mu.Lock()
	var sink *part
	if len(c.sinks) > 0 {
		sink = c.sinks[0]
	}
	c.mu.Unlock()
	if sink == nil {
		return nil
	}
	return sink.derived.ConsumeMetrics(ctx, md)
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
