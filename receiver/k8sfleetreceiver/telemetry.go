// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package k8sfleetreceiver

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
)

// tally counts what the receiver tells about itself.
type tally struct {
	told, duplicates [lifecycle.Deleted + 1]atomic.Int64 // by name
	lost             atomic.Int64                        // facts
	refused          atomic.Int64                        // looks at pods beyond the limit
	leader           atomic.Int64                        // 1 while this collector watches
}

// observe registers what the receiver tells about itself.
func (c *core) observe() error {
	of := c.telemetry
	return errors.Join(
		of.RegisterReceiverK8sFleetFactsCallback(byName(&c.tally.told)),
		of.RegisterReceiverK8sFleetDuplicatesCallback(byName(&c.tally.duplicates)),
		of.RegisterReceiverK8sFleetLostCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(c.tally.lost.Load())
			return nil
		}),
		of.RegisterReceiverK8sFleetLeaderCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(c.tally.leader.Load())
			return nil
		}),
		of.RegisterReceiverK8sFleetPodsCallback(func(_ context.Context, o metric.Int64Observer) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			o.Observe(int64(c.told.Pods()))
			return nil
		}),
		of.RegisterReceiverK8sFleetWatchErrorsCallback(func(_ context.Context, o metric.Int64Observer) error {
			c.health.each(func(resource string, errors int64, _ time.Time) { o.Observe(errors, ofResource(resource)) })
			return nil
		}),
		of.RegisterReceiverK8sFleetLastEventAgeCallback(func(_ context.Context, o metric.Float64Observer) error {
			now := time.Now()
			c.health.each(func(resource string, _ int64, heard time.Time) {
				if !heard.IsZero() {
					o.Observe(now.Sub(heard).Seconds(), ofResource(resource))
				}
			})
			return nil
		}),
	)
}

func ofResource(name string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("resource", name))
}

func byName(counts *[lifecycle.Deleted + 1]atomic.Int64) metric.Int64Callback {
	return func(_ context.Context, o metric.Int64Observer) error {
		for name := range counts {
			if n := counts[name].Load(); n > 0 {
				o.Observe(n, metric.WithAttributes(attribute.String("fact", lifecycle.Name(name).String())))
			}
		}
		return nil
	}
}
