// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// catalog finds the series of a target. A page of one replica has some dozens of
// them, which a sorted list holds in less than half of the memory of a map.
type catalog struct {
	few  []entry // in the order of their ids
	many map[ID]*Series
}

type entry struct {
	id     ID
	series *Series
}

// fewSeries are held in a list. To put one more into it moves half of them.
const fewSeries = 64

func (c *catalog) find(id ID) *Series {
	if c.many != nil {
		return c.many[id]
	}
	if i, ok := c.place(id); ok {
		return c.few[i].series
	}
	return nil
}

func (c *catalog) place(id ID) (at int, found bool) {
	return slices.BinarySearchFunc(c.few, id, func(e entry, id ID) int { return cmp.Compare(e.id, id) })
}

// put adds a series, of which there is none yet.
func (c *catalog) put(id ID, s *Series) {
	if c.many == nil && len(c.few) == fewSeries {
		c.many = maps.Collect(c.all())
		c.few = nil
	}
	if c.many != nil {
		c.many[id] = s
		return
	}
	i, _ := c.place(id)
	c.few = slices.Insert(c.few, i, entry{id, s})
}

func (c *catalog) remove(id ID) {
	if c.many != nil {
		delete(c.many, id)
		return
	}
	if i, ok := c.place(id); ok {
		c.few = slices.Delete(c.few, i, i+1)
	}
}

// all yields every series. They may be removed meanwhile, each when it was yielded.
func (c *catalog) all() iter.Seq2[ID, *Series] {
	if c.many != nil {
		return maps.All(c.many)
	}
	return func(yield func(ID, *Series) bool) {
		for _, e := range slices.Backward(c.few) {
			if !yield(e.id, e.series) {
				return
			}
		}
	}
}
