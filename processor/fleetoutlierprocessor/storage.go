// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/llmfleet/llmfleet/internal/judge/outlier"
	"github.com/llmfleet/llmfleet/internal/settings"
	"github.com/llmfleet/llmfleet/internal/window"
)

const (
	evidenceKey = "alarm"
	// saveEvery is how often evidence is saved while no flag turns: so much of it
	// is lost if the collector ends without being asked to.
	saveEvery = 5 * time.Minute
)

// keeper keeps the alarm's evidence over a restart. Without a client it keeps
// nothing.
type keeper struct {
	client storage.Client
	saved  window.Instant
}

// open gets the storage's client, and goes on with what it holds. What cannot be
// read is reported and gathered anew: no evidence is better than wrong evidence.
func (k *keeper) open(ctx context.Context, host component.Host, c *Config, id component.ID, a *outlier.Alarm, now window.Instant, logger *zap.Logger) error {
	if c.Storage == nil || a == nil {
		return nil
	}
	client, err := settings.Storage(ctx, host, c.Storage, component.KindProcessor, id)
	if err != nil {
		return err
	}
	k.client, k.saved = client, now
	data, err := client.Get(ctx, evidenceKey)
	if err == nil && data != nil {
		err = a.Load(data, now)
	}
	if err != nil {
		logger.Warn("the alarm's evidence cannot be gone on with, and is gathered anew", zap.Error(err))
	}
	return nil
}

// keep saves the evidence if a flag has turned, or it is time.
func (k *keeper) keep(ctx context.Context, a *outlier.Alarm, end window.Instant) error {
	if k.client == nil || !a.Turned() && end.Sub(k.saved) < saveEvery {
		return nil
	}
	k.saved = end
	return k.client.Set(ctx, evidenceKey, a.Save())
}

// close saves the evidence for the next start.
func (k *keeper) close(ctx context.Context, a *outlier.Alarm) error {
	if k.client == nil {
		return nil
	}
	err := k.client.Set(ctx, evidenceKey, a.Save())
	if failed := k.client.Close(ctx); err == nil {
		err = failed
	}
	k.client = nil
	return err
}
