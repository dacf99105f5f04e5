// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

// The race detector makes pools forget, so that they allocate.
//go:build !race

package intake

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// TestSteadyPageOfGPUsAllocatesNothing reads one page again and again, each time
// a millisecond later.
func TestSteadyPageOfGPUsAllocatesNothing(t *testing.T) {
	text, err := os.ReadFile(pageFolder + "dcgm.prom")
	require.NoError(t, err)
	r, accelerators := newInspected()
	steady := exported(t, string(text), time.Second)
	read := func() {
		progress(steady)
		r.Read(steady)
	}
	read()
	const runs = 1000
	assert.Zero(t, testing.AllocsPerRun(runs, read))
	r.Tally().Observed(func(_ string, signal fleet.Signal, points uint64) {
		if signal == fleet.PCIeReplays {
			assert.EqualValues(t, 2*(1+1+runs), points, "of two GPUs, with the run that warms up")
		}
	})

	replica := replicaOf("qwen3-1")
	assert.Zero(t, testing.AllocsPerRun(runs, func() { accelerators.Read(noon.Add(interval), replica) }))
}

// progress makes a page what it is a millisecond later.
func progress(md pmetric.Metrics) {
	metrics := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	for i := range metrics.Len() {
		switch m := metrics.At(i); m.Type() {
		case pmetric.MetricTypeGauge:
			advance(m.Gauge().DataPoints())
		case pmetric.MetricTypeSum:
			advance(m.Sum().DataPoints())
		default:
		}
	}
}

func advance(points pmetric.NumberDataPointSlice) {
	for i := range points.Len() {
		p := points.At(i)
		p.SetTimestamp(p.Timestamp() + pcommon.Timestamp(time.Millisecond))
	}
}
