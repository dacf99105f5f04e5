// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// diary is every weight that was ever counted: what HeavyHitters cannot afford.
type diary []entry

type entry struct {
	key        string
	at, weight float64
}

// weigh sums the weights that entries of a key, or of all for "", have at now.
func (d diary) weigh(key string, now, halfLife float64) (sum float64) {
	for _, e := range d {
		if key == "" || e.key == key {
			sum += e.weight * math.Exp2(-(now-e.at)/halfLife)
		}
	}
	return sum
}

func (d diary) without(key string) (rest diary) {
	for _, e := range d {
		if e.key != key {
			rest = append(rest, e)
		}
	}
	return rest
}

func count[V any](h *HeavyHitters[V], key string, at, weight float64) {
	if x := h.Find(key); x != nil {
		h.Add(x, at, weight)
	} else {
		h.Insert(key, at, weight)
	}
}

func TestHeavyHittersBoundTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 6).Draw(t, "capacity")
		halfLife := rapid.SampledFrom([]float64{0.5, 10, 600, math.Inf(1)}).Draw(t, "half life")
		now := rapid.SampledFrom([]float64{0, 1.8e9}).Draw(t, "start")
		h := NewHeavyHitters[int](capacity, halfLife)
		var told diary
		forgot := false
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			key := "key " + strconv.Itoa(rapid.IntRange(0, 9).Draw(t, "key"))
			if x := h.Find(key); x != nil && rapid.IntRange(0, 9).Draw(t, "forget") == 0 {
				h.Forget(x)
				told, forgot = told.without(key), true
				require.Nil(t, h.Find(key))
				continue
			}
			e := entry{key, now - rapid.Float64Range(0, 5).Draw(t, "late"), rapid.Float64Range(0, 1e6).Draw(t, "weight")}
			told = append(told, e)
			count(h, e.key, e.at, e.weight)
			require.NotNil(t, h.Find(key), "the key that was counted last is kept")
			now += rapid.SampledFrom([]float64{0, 0.1, 3, 400}).Draw(t, "step")
			check(t, h, told, now, halfLife, !forgot)
		}
	})
}

func check(t *rapid.T, h *HeavyHitters[int], told diary, now, halfLife float64, whole bool) {
	require.LessOrEqual(t, h.Len(), h.capacity)
	all := told.weigh("", now, halfLife)
	rounding := 1e-9 * all
	kept := map[string]bool{}
	for x := range h.All() {
		kept[x.Key] = true
		require.Same(t, x, h.Find(x.Key))
		count, err := h.Weight(x, now)
		truth := told.weigh(x.Key, now, halfLife)
		require.GreaterOrEqual(t, count, truth-rounding, x.Key)
		require.LessOrEqual(t, count-err, truth+rounding, x.Key)
		if whole {
			require.LessOrEqual(t, err, all/float64(h.capacity)+rounding, x.Key)
		}
	}
	require.Len(t, kept, h.Len())
	for _, e := range told {
		if whole && told.weigh(e.key, now, halfLife) > all/float64(h.capacity)+rounding {
			require.Contains(t, kept, e.key, "has more than an equal share")
		}
	}
}

// The stream and what becomes of it are the example of Metwally et al., section
// 3: X, Y, Y, Z with two counters.
func TestSpaceSavingOfThePaper(t *testing.T) {
	h := NewHeavyHitters[string](2, math.Inf(1))
	x, _, evicted := h.Insert("X", 0, 1)
	require.False(t, evicted)
	x.Value = "first"
	y, _, evicted := h.Insert("Y", 1, 1)
	require.False(t, evicted)
	h.Add(y, 2, 1)

	z, out, evicted := h.Insert("Z", 3, 1)
	require.True(t, evicted)
	assert.Equal(t, "X", out.Key)
	assert.Equal(t, "first", out.Value)
	assert.Empty(t, z.Value)
	assert.Nil(t, h.Find("X"))
	count, err := h.Weight(z, 3)
	assert.Equal(t, []float64{2, 1}, []float64{count, err})
	count, err = h.Weight(y, 3)
	assert.Equal(t, []float64{2, 0}, []float64{count, err})
}

func TestWeightHalvesOverAHalfLife(t *testing.T) {
	h := NewHeavyHitters[struct{}](4, 600)
	x, _, _ := h.Insert("a", 1.8e9, 8)
	for halfLives, want := range []float64{8, 4, 2, 1, 0.5} {
		got, _ := h.Weight(x, 1.8e9+600*float64(halfLives))
		assert.InEpsilon(t, want, got, 1e-12)
	}
	h.Add(x, 1.8e9+1200, 3)
	got, _ := h.Weight(x, 1.8e9+1200)
	assert.InEpsilon(t, 5.0, got, 1e-12)
}

// A year has 52,560 half lives of 10 minutes, and 2^1024 is no float64.
func TestWeightsStayFiniteForAYear(t *testing.T) {
	const minute, year = 60.0, 365 * 86400.0
	h := NewHeavyHitters[struct{}](2, 10*minute)
	for at := 0.0; at <= year; at += 60 * minute {
		count(h, "always", at, 1)
	}
	// One an hour: 1 + 2^-6 + 2^-12 + …
	got, _ := h.Weight(h.Find("always"), year)
	assert.InEpsilon(t, 1/(1-math.Exp2(-6)), got, 1e-9)
	h.Insert("after a century", 100*year, 1)
	got, _ = h.Weight(h.Find("always"), 100*year)
	assert.Zero(t, got)
}

func TestAnInheritedErrorDecays(t *testing.T) {
	h := NewHeavyHitters[struct{}](1, 1)
	h.Insert("a", 0, 1)
	b, _, _ := h.Insert("b", 0, 1)
	h.Forget(b)
	c, _, evicted := h.Insert("c", 1, 1)
	require.False(t, evicted)
	count, err := h.Weight(c, 1)
	assert.Equal(t, []float64{1.5, 0.5}, []float64{count, err}, "c may have been a, a half life ago")
	h.Forget(c)
	d, _, _ := h.Insert("d", 1000, 1)
	count, err = h.Weight(d, 1000)
	assert.InEpsilon(t, 1, count, 1e-12)
	assert.Less(t, err, 1e-12)
}

func TestCapacityOfOne(t *testing.T) {
	h := NewHeavyHitters[struct{}](0, 1)
	h.Insert("a", 0, 1)
	_, out, evicted := h.Insert("b", 0, 1)
	assert.True(t, evicted)
	assert.Equal(t, "a", out.Key)
	assert.Equal(t, 1, h.Len())
}
