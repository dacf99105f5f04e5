// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canarydeltaprocessor

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/processor"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/scenariotest"
	"github.com/llmfleet/llmfleet/processor/canarydeltaprocessor/internal/metadata"
)

// subject is the processor under test.
var subject = underTest(NewFactory())

// alone is the same with a canary that labels name: something is told of it with no
// other replica about.
var alone = underTest(processor.NewFactory(
	metadata.Type,
	func() component.Config {
		config := createDefaultConfig().(*Config)
		config.Canary.Match = map[string]string{"engine_version": "2.0"}
		return config
	},
	processor.WithMetrics(createMetrics, metadata.MetricsStability),
))

func underTest(factory processor.Factory) *scenariotest.Deriver[*Config] {
	return &scenariotest.Deriver[*Config]{
		Factory: factory,
		Scope:   metadata.ScopeName,
		Common: func(c *Config) scenariotest.Common {
			return scenariotest.Common{Pane: c.Pane, Lateness: c.Lateness, Storage: c.Storage}
		},
		Page:  engine,
		Holds: checkVerdicts,
	}
}

// TestScenarios runs every story of testdata/scenarios through the processor.
// testdata/README.md tells the format.
func TestScenarios(t *testing.T) { subject.TestScenarios(t) }

// TestConduct: whatever comes next, pages are read and panes are judged.
func TestConduct(t *testing.T) { alone.TestConduct(t) }

// TestStorage: what was learned of canaries is kept over a restart, or their
// comparison begins anew.
func TestStorage(t *testing.T) {
	alone.TestStorage(t, map[string][]byte{
		"damaged": []byte("not what a judge of canaries saves"),
		"short":   {1},
	}, "what was learned of canaries cannot be gone on with, and their comparison begins anew")
}

// checkVerdicts holds that of each fleet and measure exactly one verdict is 1 and
// the two others are 0, and that one measure at most drives the overall one.
func checkVerdicts(t scenariotest.T, at time.Duration, points []scenariotest.Point) {
	t.Helper()
	told, given, driven := map[string]int{}, map[string]float64{}, map[string]float64{}
	for _, p := range points {
		if p.Ended {
			continue
		}
		labels := maps.Clone(p.Labels)
		switch p.Name {
		case emit.CanaryVerdict:
			delete(labels, emit.AttributeVerdict)
			told[scenariotest.SeriesName(p.Name, labels)]++
			given[scenariotest.SeriesName(p.Name, labels)] += p.Value
		case emit.CanaryDriver:
			delete(labels, emit.AttributeMeasure)
			driven[scenariotest.SeriesName(p.Name, labels)] += p.Value
		}
	}
	for series, n := range told {
		assert.Equal(t, 3, n, "@%s %s", at, series)
		assert.InDelta(t, 1, given[series], 0, "@%s %s", at, series)
	}
	for series, n := range driven {
		assert.LessOrEqual(t, n, 1.0, "@%s %s", at, series)
	}
}
