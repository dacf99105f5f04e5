// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantshareprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// FuzzConsume feeds any requests, and holds what is told and how many engines and
// fleets are followed.
func FuzzConsume(f *testing.F) {
	subject.FuzzConsume(f, anyConfig, func(t scenariotest.T, config *Config, counts scenariotest.Counts) {
		assert.LessOrEqual(t, counts[`members{input="engines"}`], float64(config.MaxReplicas))
		assert.LessOrEqual(t, counts["fleets"], float64(config.MaxFleets))
	})
}

// anyConfig follows little, names few and judges soon.
func anyConfig() *Config {
	config := subject.Defaults()
	config.Pane, config.Window, config.HalfLife = 10*time.Second, 30*time.Second, 50*time.Second
	config.MaxReplicas, config.MaxTenants, config.MaxFleets, config.Top = 4, 8, 2, 2
	config.Metrics = emit.Switches{}
	for _, m := range emit.Of(componentType) {
		config.Metrics[m.Name] = emit.Switch{Enabled: true}
	}
	return config
}
