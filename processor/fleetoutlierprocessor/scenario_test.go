// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
	"testing"

	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.uber.org/zap"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
	"github.com/llmfleet/llmfleet/processor/fleetoutlierprocessor/internal/metadata"
)

// subject is the processor under test.
var subject = scenariotest.Deriver[*Config]{
	Factory: NewFactory(),
	Scope:   metadata.ScopeName,
	Common: func(c *Config) scenariotest.Common {
		return scenariotest.Common{Pane: c.Interval, Lateness: c.Lateness, Storage: c.Storage}
	},
	Page: waitingEngine,
}

// TestScenarios runs every story of testdata/scenarios through the processor.
// testdata/README.md tells the format.
func TestScenarios(t *testing.T) { subject.TestScenarios(t) }

// TestConduct: whatever comes next, pages are read and panes are judged.
func TestConduct(t *testing.T) { subject.TestConduct(t) }

// TestStorage: evidence is kept over a restart, or gathered anew.
func TestStorage(t *testing.T) {
	subject.TestStorage(t, map[string][]byte{
		"damaged": []byte("not what an alarm saves"),
		"short":   {1},
	}, "the alarm's evidence cannot be gone on with, and is gathered anew")
}

// TestWithoutAnAlarmNothingIsKept: the storage is not even asked for.
func TestWithoutAnAlarmNothingIsKept(t *testing.T) {
	config := subject.Stored(t)
	config.Alarm = nil
	subject.Start(t, zap.NewNop(), config, consumertest.NewNop())
}
