// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// The race detector makes pools forget, so that they allocate.
//go:build !race

package tenantshareprocessor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"
)

// TestSteadyConsumeAllocatesNothing feeds the pages of an engine and of a gateway
// again and again.
func TestSteadyConsumeAllocatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error { return nil })
		require.NoError(t, err)
		p := subject.Start(t, zap.NewNop(), subject.Defaults(), next)
		pages := []pmetric.Metrics{engine("engine", time.Now()), invention(time.Now(), 100, 1)}
		consume := func() {
			for _, page := range pages {
				if err := p.ConsumeMetrics(context.Background(), page); err != nil {
					panic(err)
				}
			}
		}
		consume()
		assert.Zero(t, testing.AllocsPerRun(100, consume))
	})
}
