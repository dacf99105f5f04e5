// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// A catalog is a map, below, at and beyond the size at which it becomes one.
func TestCatalogIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c catalog
		model := make(map[ID]*Series)
		ids := rapid.Uint64Range(0, uint64(rapid.SampledFrom([]int{4, fewSeries, 3 * fewSeries}).Draw(t, "ids")))
		for range rapid.IntRange(0, 4*fewSeries).Draw(t, "steps") {
			id := ID(ids.Draw(t, "id"))
			switch known := model[id]; {
			case known == nil && rapid.Bool().Draw(t, "put"):
				model[id] = new(Series)
				c.put(id, model[id])
			case rapid.IntRange(0, 3).Draw(t, "remove") == 0:
				c.remove(id)
				delete(model, id)
			}
			assert.Same(t, model[id], c.find(id))
		}
		assert.Equal(t, model, maps.Collect(c.all()))
		for id := range c.all() {
			if id%2 == 0 {
				c.remove(id)
			}
		}
		for id := range model {
			if id%2 == 0 {
				delete(model, id)
			}
		}
		assert.Equal(t, model, maps.Collect(c.all()))
	})
}
