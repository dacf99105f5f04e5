// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canarydeltaprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/llmfleet/llmfleet/internal/scenariotest"
)

// FuzzConsume feeds any requests, and holds what is told and how many replicas and
// fleets are followed.
func FuzzConsume(f *testing.F) {
	subject.FuzzConsume(f, anyConfig, func(t scenariotest.T, config *Config, counts scenariotest.Counts) {
		assert.LessOrEqual(t, counts[`members{input="engines"}`], float64(config.MaxReplicas))
		assert.LessOrEqual(t, counts[`members{input="quality"}`], float64(config.MaxReplicas))
		assert.LessOrEqual(t, counts["fleets"], float64(config.MaxFleets))
	})
}

// anyConfig follows little and judges soon.
func anyConfig() *Config {
	config := subject.Defaults()
	config.Pane = 10 * time.Second
	config.MaxReplicas, config.MaxFleets = 8, 2
	config.Quality = map[string]QualityConfig{
		"score":    {Metric: "answer_score", Type: typeHistogram, Better: betterHigher},
		"toxicity": {Metric: "toxicity_score", Type: typeGauge, Better: betterLower},
	}
	return config
}
