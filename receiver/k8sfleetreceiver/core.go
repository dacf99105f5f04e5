// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package k8sfleetreceiver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"

	"github.com/llmfleet/llmfleet/internal/settings"
	"github.com/llmfleet/llmfleet/internal/sharedcore"
	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/capacity"
	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/facts"
	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/metadata"
)

// core is what the receivers of logs and of metrics with one configuration share:
// one set of watches. It watches from the first start to the last shutdown.
type core struct {
	config    *Config
	id        component.ID
	version   string
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	options   facts.Options
	selector  labels.Selector
	dial      dial
	identity  string // who this collector is among those that would watch
	health    *health
	outbox    *outbox
	tally     tally
	store     atomic.Pointer[capacity.Store]    // nil unless this collector watches
	overflow  atomic.Pointer[capacity.Overflow] // of the last account

	hosts   sync.Map   // of started parts: *part to component.Host
	running sync.Mutex // guards what follows
	users   int        // started parts
	stop    context.CancelFunc
	ended   chan struct{}

	mu     sync.Mutex // guards what follows
	told   *facts.Told
	keeper settings.Keeper
}

var cores sharedcore.Cores[*Config, *core]

// acquire returns the core of a configuration, for one receiver more.
func acquire(set receiver.Settings, config *Config, with dial) (*core, error) {
	return cores.Acquire(config, func() (*core, error) { return newCore(set, config, with) })
}

func newCore(set receiver.Settings, config *Config, with dial) (*core, error) {
	selector, err := labels.Parse(config.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("label_selector: %w", err)
	}
	c := &core{
		config: config, id: set.ID, version: set.BuildInfo.Version, logger: set.Logger,
		options: config.factsOptions(), selector: selector, dial: with, identity: identity(),
		told: facts.NewTold(config.MaxPods),
	}
	c.health = newHealth(c.report)
	c.outbox = newOutbox(c)
	c.keeper = settings.Keeper{
		Storage: config.Storage, Kind: component.KindReceiver, Component: set.ID, Key: "told", Save: c.told.Save,
	}
	c.telemetry, err = metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return c, errors.Join(c.observe(), c.observeCapacity())
}

// selected tells whether a pod, or the pod of a template, is of the fleet.
func (c *core) selected(p *corev1.Pod) bool {
	if c.config.LabelSelector != "" {
		return c.selector.Matches(labels.Set(p.Labels))
	}
	return c.options.Accelerated(p)
}

// inventory is the account of capacity; nil while another collector watches.
func (c *core) inventory() *capacity.Store { return c.store.Load() }

func (c *core) newInventory() *capacity.Store {
	return capacity.New(capacity.Options{
		Selected: c.selected, Model: c.options.Model, Group: c.options.Group,
		GPUResources: c.config.GPUResources, NodePoolLabels: c.config.NodePoolLabels, GPUModelLabels: c.config.GPUModelLabels,
		MaxObjects: c.config.MaxPods,
	})
}

// part is what one receiver has of the core.
type part struct {
	*core
	stopped sync.Once
}

// join has the core watch, if it does not yet.
func (p *part) join(ctx context.Context, host component.Host) error {
	p.running.Lock()
	defer p.running.Unlock()
	if p.stop == nil {
		if err := p.begin(ctx, host); err != nil {
			return err
		}
	}
	p.hosts.Store(p, host)
	p.users++
	return nil
}

// begin connects and starts to watch. Called with running held.
func (c *core) begin(ctx context.Context, host component.Host) error {
	to, err := c.dial(c.config)
	if err != nil {
		return err
	}
	unread, err := c.keeper.Open(ctx, host, time.Now(), c.told.Load)
	if err != nil {
		return err
	}
	if unread != nil {
		c.logger.Warn("what was told before cannot be read: it is told again, marked as replayed", zap.Error(unread))
	}
	// What client-go would log, the receiver tells itself.
	watching, stop := context.WithCancel(klog.NewContext(context.Background(), logr.Discard()))
	c.stop, c.ended = stop, make(chan struct{})
	go func() {
		defer close(c.ended)
		c.run(watching, to)
	}()
	return nil
}

// leave ends the watch with the last that does. It tells whether this was it.
func (p *part) leave(ctx context.Context) (last bool, err error) {
	p.running.Lock()
	defer p.running.Unlock()
	if _, joined := p.hosts.LoadAndDelete(p); !joined {
		return false, nil
	}
	if p.users--; p.users > 0 {
		return false, nil
	}
	p.stop()
	p.stop = nil
	select {
	case <-p.ended:
		return true, nil
	case <-ctx.Done():
		return false, fmt.Errorf("watches have not ended: %w", context.Cause(ctx))
	}
}

// keep stores what was told by the end.
func (c *core) keep(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.keeper.Close(ctx)
}

// release gives the core up; with its last user its telemetry ends.
func (c *core) release() {
	if cores.Release(c.config) {
		c.telemetry.Shutdown()
	}
}

// shutdown stops a receiver, once; halt is what is its own.
func (p *part) shutdown(ctx context.Context, halt func(context.Context) error) (err error) {
	p.stopped.Do(func() {
		last, left := p.leave(ctx)
		err = errors.Join(left, halt(ctx))
		if last {
			err = errors.Join(err, p.keep(ctx))
		}
		p.release()
	})
	return err
}

// run watches, while this collector is the one that does.
func (c *core) run(ctx context.Context, to clients) {
	if !c.config.LeaderElection.Enabled {
		c.watch(ctx, to)
		return
	}
	c.elect(ctx, to.leases, func(ctx context.Context) { c.watch(ctx, to) })
}
