// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantshareprocessor

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/scenariotest"
	"github.com/llmfleet/llmfleet/processor/tenantshareprocessor/internal/metadata"
)

// subject is the processor under test.
var subject = scenariotest.Deriver[*Config]{
	Factory: NewFactory(),
	Scope:   metadata.ScopeName,
	Common: func(c *Config) scenariotest.Common {
		return scenariotest.Common{Pane: c.Pane, Lateness: c.Lateness, Storage: c.Storage}
	},
	Page:  engine,
	Holds: checkShares,
}

// TestScenarios runs every story of testdata/scenarios through the processor.
// testdata/README.md tells the format.
func TestScenarios(t *testing.T) { subject.TestScenarios(t) }

// TestConduct: whatever comes next, pages are read and panes are judged.
func TestConduct(t *testing.T) { subject.TestConduct(t) }

// TestStorage: what was learned of tenants is kept over a restart, or learned anew.
func TestStorage(t *testing.T) {
	subject.TestStorage(t, map[string][]byte{
		"damaged":     []byte("not what a court saves"),
		"short":       {1},
		"older":       []byte(`{"version": 0}`),
		"of no judge": []byte(`{"version": 1, "dockets": [{"key": "m", "seen": 946684800000000000, "judge": "AAAA"}]}`),
	}, "what was learned of tenants cannot be gone on with, and is learned anew")
}

// checkShares holds that shares are told of everyone or of nobody: those of one
// fleet and direction sum to 1.
func checkShares(t scenariotest.T, at time.Duration, points []scenariotest.Point) {
	t.Helper()
	sums := map[string]float64{}
	for _, p := range points {
		if p.Name == emit.TenantTokenShare && !p.Ended {
			labels := maps.Clone(p.Labels)
			delete(labels, emit.AttributeTenant)
			sums[scenariotest.SeriesName(p.Name, labels)] += p.Value
		}
	}
	for series, sum := range sums {
		assert.InDelta(t, 1, sum, 1e-12, "@%s %s", at, series)
	}
}
