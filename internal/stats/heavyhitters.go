// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"container/heap"
	"iter"
	"math"
	"slices"
)

// HeavyHitters finds the keys that had the most weight of late, and keeps a
// value for each, in memory for a fixed number of keys. It is Space-Saving
// (Metwally, Agrawal and El Abbadi, ICDT 2005) with weights that are forward
// decayed (Cormode, Shkapenyuk, Srivastava and Xu, ICDE 2009): what lies a half
// life back counts half.
//
// Every key with more than 1/capacity of the whole decayed weight is kept. Times
// are seconds since any one instant, and need not ascend.
type HeavyHitters[V any] struct {
	capacity int
	halfLife float64
	// landmark is the time whose weights count as they are: later ones are
	// inflated instead of all earlier ones being deflated.
	landmark float64
	// floor is the count of the last key that made room. No key that is not kept
	// can have had more, but for those that were told to be forgotten.
	floor float64
	byKey map[string]*Hitter[V]
	least hitterHeap[V]
}

// Hitter is a key that is kept.
type Hitter[V any] struct {
	Key   string
	Value V

	count, err float64 // as of the landmark
	place      int     // in the heap
}

// NewHeavyHitters keeps up to capacity keys, at least one; halfLife is in
// seconds and positive. With an infinite half life nothing decays.
func NewHeavyHitters[V any](capacity int, halfLife float64) *HeavyHitters[V] {
	return &HeavyHitters[V]{
		capacity: max(capacity, 1),
		halfLife: halfLife,
		byKey:    map[string]*Hitter[V]{},
	}
}

// Find returns the hitter of a key, or nil if the key is not kept.
func (h *HeavyHitters[V]) Find(key string) *Hitter[V] { return h.byKey[key] }

// Add counts weight, which is not negative, for a key that is kept.
func (h *HeavyHitters[V]) Add(x *Hitter[V], at, weight float64) {
	x.count += h.inflate(at, weight)
	heap.Fix(&h.least, x.place)
}

// Insert begins to keep a key that is not kept, with weight and the zero Value.
// If there is no room, the key of the least count makes it: out is what was
// kept of it. As the new key may have been dropped before, it inherits that
// count, as its error. Insert keeps the string key.
func (h *HeavyHitters[V]) Insert(key string, at, weight float64) (x *Hitter[V], out Hitter[V], evicted bool) {
	inflated := h.inflate(at, weight)
	if len(h.least) < h.capacity {
		x = &Hitter[V]{}
		heap.Push(&h.least, x)
	} else {
		x = h.least[0]
		out, evicted = *x, true
		delete(h.byKey, x.Key)
		h.floor = x.count
	}
	*x = Hitter[V]{Key: key, count: h.floor + inflated, err: h.floor, place: x.place}
	h.byKey[key] = x
	heap.Fix(&h.least, x.place)
	return x, out, evicted
}

// Weight is what x counts, decayed to the time at, and by how much that may be
// too high: the true weight lies in [count-err, count].
func (h *HeavyHitters[V]) Weight(x *Hitter[V], at float64) (count, err float64) {
	decay := math.Exp2((h.landmark - at) / h.halfLife)
	return x.count * decay, x.err * decay
}

// Forget drops x, and all that it counted: if its key comes back, its bounds
// hold for what came since.
func (h *HeavyHitters[V]) Forget(x *Hitter[V]) {
	heap.Remove(&h.least, x.place)
	delete(h.byKey, x.Key)
}

// All yields what is kept, in no order that means anything; nothing may be
// counted, inserted or forgotten on the way.
func (h *HeavyHitters[V]) All() iter.Seq[*Hitter[V]] { return slices.Values(h.least) }

// Len is the number of keys that are kept.
func (h *HeavyHitters[V]) Len() int { return len(h.least) }

// inflate is weight in the measure of the landmark.
func (h *HeavyHitters[V]) inflate(at, weight float64) float64 {
	// Far enough below the largest exponent of a float64, 1023, that sums of
	// large weights stay finite.
	const largest = 500
	if (at-h.landmark)/h.halfLife > largest {
		h.rescale(at)
	}
	return weight * math.Exp2((at-h.landmark)/h.halfLife)
}

// rescale moves the landmark. All counts shrink by the same factor, so the heap
// stays in order.
func (h *HeavyHitters[V]) rescale(landmark float64) {
	factor := math.Exp2((h.landmark - landmark) / h.halfLife)
	for _, x := range h.least {
		x.count *= factor
		x.err *= factor
	}
	h.floor *= factor
	h.landmark = landmark
}

// hitterHeap is a heap.Interface with the least count first.
type hitterHeap[V any] []*Hitter[V]

func (h hitterHeap[V]) Len() int           { return len(h) }
func (h hitterHeap[V]) Less(i, j int) bool { return h[i].count < h[j].count }

func (h hitterHeap[V]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *hitterHeap[V]) Push(x any) {
	hitter := x.(*Hitter[V])
	hitter.place = len(*h)
	*h = append(*h, hitter)
}

func (h *hitterHeap[V]) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return x
}
