// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantusageconnector

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/llmfleet/llmfleet/connector/tenantusageconnector/internal/metadata"
	"github.com/llmfleet/llmfleet/internal/intake"
	"github.com/llmfleet/llmfleet/internal/sharedcore"
	"github.com/llmfleet/llmfleet/internal/window"
)

// core is what the connectors to metrics and to logs with one configuration
// share. Both are given all spans, and one of them reads them for both.
type core struct {
	config    *Config
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	requests  atomic.Pointer[intake.Requests] // nil before the start
	reading   sharedcore.Duty[part]           // of those that were started

	explaining sync.Mutex // guards explainer
	explainer  intake.Explainer

	mu      sync.Mutex        // guards what follows, the ledger and the journals
	metrics *metricsConnector // nil unless started
	logs    *logsConnector    // as metrics
}

var cores sharedcore.Cores[*Config, *core]

// acquire returns the core of a configuration, for one connector more.
func acquire(set connector.Settings, config *Config) (*core, error) {
	return cores.Acquire(config, func() (*core, error) {
		c := &core{config: config, logger: set.Logger}
		return c, c.report(set.TelemetrySettings)
	})
}

// release gives the core up; with its last user its telemetry ends.
func (c *core) release() {
	if cores.Release(c.config) {
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
	p.reading.Join(p)
	return nil
}

// leave detaches the part. If it has read spans, another that is started does
// from now on. It tells whether the part was attached.
func (p *part) leave(detach func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reading.Leave(p) {
		return false
	}
	detach()
	return true
}

// ConsumeTraces counts the requests of spans for all that share the core, when
// they come: when they ended, their senders' clocks tell, each in its own way.
func (p *part) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	if p.reading.Holder() != p {
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
