// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantusageconnector

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/llmfleet/llmfleet/connector/tenantusageconnector/internal/metadata"
	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/internal/window"
)

// core is what the connectors to metrics and to logs with one configuration
// share. Both are given all spans, and one of them reads them for both.
type core struct {
	config    *Config
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	requests  atomic.Pointer[intake.Requests] // nil before the start
	reader    atomic.Pointer[part]            // who reads spans; nil if nobody was started

	explaining sync.Mutex // guards explainer
	explainer  intake.Explainer

	mu      sync.Mutex // guards what follows, the ledger and the journals
	users   int        // connectors that were made and not shut down
	started []*part    // and not shut down, oldest first
	metrics *metricsConnector
	logs    *logsConnector // as metrics nil unless started
}

// cores are those in use. The collector makes a connector for each pair of
// signals, and gives all of one name the same configuration.
var cores = struct {
	sync.Mutex
	of map[*Config]*core
}{of: make(map[*Config]*core)}

// acquire returns the core of a configuration, for one connector more.
func acquire(set connector.Settings, config *Config) (*core, error) {
	cores.Lock()
	defer cores.Unlock()
	c := cores.of[config]
	if c == nil {
		c = &core{config: config, logger: set.Logger}
		if err := c.report(set.TelemetrySettings); err != nil {
			return nil, err
		}
		cores.of[config] = c
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users++
	return c, nil
}

// release gives the core up; with its last user its telemetry ends.
func (c *core) release() {
	cores.Lock()
	defer cores.Unlock()
	c.mu.Lock()
	c.users--
	last := c.users == 0
	c.mu.Unlock()
	if last {
		delete(cores.of, c.config)
		c.telemetry.Shutdown()
	}
}

// part is what one connector has of the core.
type part struct {
	*core
	stopped sync.Once
}

// Capabilities says that input is not changed.
func (*part) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: false} }

// join attaches the part, and has it read spans if no other does. The first reads
// the key, or the map, of tenants' names.
func (p *part) join(attach func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.requests.Load() == nil {
		namer, err := p.config.Tenant.namer(p.logger)
		if err != nil {
			return err
		}
		o := p.config.requestOptions()
		o.Name = namer.Name
		p.requests.Store(intake.NewRequests(o))
	}
	attach()
	p.started = append(p.started, p)
	p.reader.Store(p.started[0])
	return nil
}

// leave detaches the part. If it has read spans, another that is started does
// from now on. It tells whether the part was attached.
func (p *part) leave(detach func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.started, p) {
		return false
	}
	detach()
	p.started = slices.DeleteFunc(p.started, func(other *part) bool { return other == p })
	var next *part
	if len(p.started) > 0 {
		next = p.started[0]
	}
	p.reader.Store(next)
	return true
}

// ConsumeTraces counts the requests of spans for all that share the core, when
// they come: when they ended, their senders' clocks tell, each in its own way.
func (p *part) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	if p.reader.Load() != p {
		return nil
	}
	b := takeBatch()
	defer b.giveBack()
	p.requests.Load().Read(td, b.add)
	now := time.Now()
	logs, early := p.count(b, now)
	if logs != nil {
		if p.config.Events.EachRequest {
			early.each(b)
		}
		early.send(ctx)
	}
	return nil
}

// count counts a batch. Records of tenants that have no place in the journal any
// more are to be sent at once.
func (c *core) count(b *batch, now time.Time) (logs *logsConnector, early *post) {
	at := instant(now)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.logs != nil {
		early = c.logs.newPost(now)
	}
	for i := range b.requests {
		r := &b.requests[i]
		if c.metrics != nil {
			c.metrics.ledger.Count(r, at)
		}
		if c.logs != nil {
			if record := c.logs.journals.Count(r, at); record != nil {
				early.window(record)
			}
		}
	}
	return c.logs, early
}

func instant(t time.Time) window.Instant { return window.Instant(t.UnixNano()) }
