// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package k8sfleetreceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/llmfleet/llmfleet/receiver/k8sfleetreceiver/internal/metadata"
)

// NewFactory returns the factory of the k8s_fleet receiver.
func NewFactory() receiver.Factory { return newFactory(connect) }

// newFactory returns a factory of receivers that talk to an API server in a given
// way.
func newFactory(with dial) receiver.Factory {
	return receiver.NewFactory(
		metadata.Type,
		createDefaultConfig,
		receiver.WithLogs(func(_ context.Context, set receiver.Settings, config component.Config, next consumer.Logs) (receiver.Logs, error) {
			c, err := acquire(set, config.(*Config), with)
			if err != nil {
				return nil, err
			}
			return newLogsReceiver(c, next), nil
		}, metadata.LogsStability),
		receiver.WithMetrics(func(_ context.Context, set receiver.Settings, config component.Config, next consumer.Metrics) (receiver.Metrics, error) {
			c, err := acquire(set, config.(*Config), with)
			if err != nil {
				return nil, err
			}
			return newMetricsReceiver(c, set, next), nil
		}, metadata.MetricsStability),
	)
}
