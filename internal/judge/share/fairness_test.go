// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestFairness(t *testing.T) {
	for name, c := range map[string]struct {
		tokens []float64
		want   float64
	}{
		"nobody":         {nil, 0},
		"nothing":        {[]float64{0, 0}, 0},
		"alone":          {[]float64{7}, 1},
		"alike":          {[]float64{3, 3, 3, 3}, 1},
		"one has all":    {[]float64{0, 5, 0, 0}, 0.25},
		"half have all":  {[]float64{2, 2, 0, 0}, 0.5},
		"one, two, six":  {[]float64{1, 2, 6}, 81.0 / (3 * 41)},
		"large":          {[]float64{math.MaxFloat64, math.MaxFloat64}, 1},
		"next to nobody": {[]float64{math.SmallestNonzeroFloat64}, 1},
	} {
		t.Run(name, func(t *testing.T) { assert.InDelta(t, c.want, Fairness(c.tokens), 1e-12) })
	}
}

func TestFairnessIsBetweenOneTenantAndAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.SliceOfN(rapid.Float64Range(0, 1e12), 1, 20).Draw(t, "tokens")
		tokens[0] = max(1, tokens[0])
		index := Fairness(tokens)
		assert.GreaterOrEqual(t, index, 1/float64(len(tokens))-1e-12)
		assert.LessOrEqual(t, index, 1+1e-12)
	})
}
