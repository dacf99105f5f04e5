// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetoutlierprocessor

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// FuzzConsume feeds any requests, and holds what is told and how many replicas are
// followed.
func FuzzConsume(f *testing.F) {
	subject.FuzzConsume(f, anyConfig, func(t scenariotest.T, config *Config, counts scenariotest.Counts) {
		assert.LessOrEqual(t, counts["members"], float64(config.MaxReplicas))
	})
}
