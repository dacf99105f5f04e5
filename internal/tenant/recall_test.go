// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// crowd is tenants whose rates follow Zipf's law of exponent 1, as tenants of a
// shared service roughly do: the k-th sends 1/k of what the first does.
type crowd struct {
	random     *rand.Rand
	cumulative []float64
	names      []string
}

func newCrowd(tenants int, seed uint64) *crowd {
	c := &crowd{random: rand.New(rand.NewPCG(seed, seed))}
	sum := 0.0
	for k := range tenants {
		sum += 1 / float64(k+1)
		c.cumulative = append(c.cumulative, sum)
		c.names = append(c.names, fmt.Sprintf("%016x", k))
	}
	return c
}

func (c *crowd) draw() string {
	k, _ := slices.BinarySearch(c.cumulative, c.random.Float64()*c.cumulative[len(c.cumulative)-1])
	return c.names[k]
}

// tokens are lognormal around a median of 1000.
func (c *crowd) tokens() uint64 { return uint64(1000 * math.Exp(c.random.NormFloat64())) }

func TestTheTwentyNamedAreTheTopTwenty(t *testing.T) {
	const minutes, perMinute = 40, 20_000
	d := openDesk(t, LedgerOptions{})
	c := newCrowd(100_000, 1)
	weights := map[string]float64{} // decayed to now, exactly
	for range minutes {
		for name := range weights {
			weights[name] *= math.Exp2(-1.0 / 10)
		}
		for range perMinute {
			r := Request{Tenant: c.draw(), Tokens: [TokenTypeCount]uint64{InputUncached: c.tokens()}, TTFT: -1}
			weights[r.Tenant] += 1 + float64(r.Tokens[InputUncached])
			d.Count(&r, d.now)
		}
		d.closeAfter(time.Minute)
	}
	// Names lag behind ranks on purpose. Without requests, all weights fall alike
	// and ranks hold still.
	for range persistence {
		d.closeAfter(time.Minute)
	}
	byWeight := slices.SortedFunc(maps.Keys(weights), func(a, b string) int { return cmp.Compare(weights[b], weights[a]) })

	var named []string
	for _, a := range d.models[Unknown].named {
		named = append(named, a.Name)
	}
	assert.ElementsMatch(t, byWeight[:20], named)
}
