// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantshareprocessor

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/llmfleet/llmfleet/internal/settings"
	"github.com/llmfleet/llmfleet/internal/window"
)

const (
	learnedKey = "tenants"
	// saveEvery is how often what was learned is saved while no flag turns: so much
	// of it is lost if the collector ends without being asked to.
	saveEvery = 5 * time.Minute
)

// keeper keeps what was learned of tenants over a restart. Without a client it
// keeps nothing.
type keeper struct {
	client storage.Client
	saved  window.Instant
}

// open gets the storage's client, and goes on with what it holds. What cannot be
// read is reported and learned anew: nothing known is better than what is wrong.
func (k *keeper) open(ctx context.Context, host component.Host, c *Config, id component.ID, of *court, now window.Instant, logger *zap.Logger) error {
	if c.Storage == nil {
		return nil
	}
	client, err := settings.Storage(ctx, host, c.Storage, component.KindProcessor, id)
	if err != nil {
		return err
	}
	k.client, k.saved = client, now
	data, err := client.Get(ctx, learnedKey)
	if err == nil && data != nil {
		err = of.load(data, now)
	}
	if err != nil {
		logger.Warn("what was learned of tenants cannot be gone on with, and is learned anew", zap.Error(err))
	}
	return nil
}

// keep saves what was learned if a flag has turned, or it is time.
func (k *keeper) keep(ctx context.Context, of *court, end window.Instant) error {
	if k.client == nil || !of.turned && end.Sub(k.saved) < saveEvery {
		return nil
	}
	k.saved = end
	return k.save(ctx, of)
}

func (k *keeper) save(ctx context.Context, of *court) error {
	data, err := of.save()
	if err != nil {
		return err
	}
	return k.client.Set(ctx, learnedKey, data)
}

// close saves what was learned for the next start.
func (k *keeper) close(ctx context.Context, of *court) error {
	if k.client == nil {
		return nil
	}
	err := k.save(ctx, of)
	if failed := k.client.Close(ctx); err == nil {
		err = failed
	}
	k.client = nil
	return err
}
