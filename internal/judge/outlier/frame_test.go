// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// layouts are those of all frames here: equal bounds are one layout.
var layouts window.Layouts

// distribution has one count a bucket, not cumulative, the unbounded one last.
func distribution(bounds []float64, counts ...uint64) fleet.Distribution {
	return fleet.Distribution{Layout: layouts.Intern(bounds), Counts: counts, SumKnown: true}
}

// replica tells one latency.
func replica(d fleet.Distribution) fleet.MemberFrame {
	return fleet.MemberFrame{Identity: &fleet.Identity{Engine: "vllm"}, Told: []fleet.Distribution{d}}
}

// frameOf is a closed frame with these replicas, which tell latencies. It is made from one that a
// registry has closed: only those can tell which bounds two layouts share.
func frameOf(t *testing.T, members ...fleet.MemberFrame) *fleet.Frame {
	t.Helper()
	const now = window.Instant(time.Hour)
	registry := fleet.NewRegistry(fleet.Options{
		Grids:       []window.Grid{window.NewGrid(30*time.Second, 5*time.Minute, 0)},
		MaxReplicas: 1,
	})
	registry.Open(now)
	target, err := registry.Acquire(1, true)
	require.NoError(t, err)
	_, err = target.Join(1, &fleet.Identity{Replica: "a"}, fleet.TTFT, fleet.Spelling{})
	require.NoError(t, err)
	target.Unlock()
	var frame fleet.Frame
	registry.Close(now, fleet.Ask{}, func(f *fleet.Frame) { frame = *f })
	frame.Departed, frame.Signals = nil, []fleet.Signal{fleet.TTFT, fleet.ITL}
	for i := range members {
		members[i].Identity = &fleet.Identity{Replica: fmt.Sprint(i), Engine: members[i].Identity.Engine}
	}
	frame.Members = members
	return &frame
}

// options judge one quantile of one latency as configured by default.
func options(q float64) *Options {
	return &Options{Signals: []fleet.Signal{fleet.TTFT}, Quantiles: []float64{q}, MinReplicas: 2, Bounds: true}
}

// given asserts that a figure stands and has the value, within rounding.
func given(t *testing.T, want float64, got Figure, about ...any) {
	t.Helper()
	assert.Equal(t, Given.String(), got.Withheld.String(), about...)
	assert.InEpsilon(t, want, got.Value, 1e-9, about...)
}

// refused asserts that a figure is withheld for the reason, and carries no
// number.
func refused(t *testing.T, want Reason, got Figure, about ...any) {
	t.Helper()
	assert.Equal(t, want.String(), got.Withheld.String(), about...)
	assert.Zero(t, got.Value, about...)
}

// fine are log-spaced bounds so close together that buckets cost no accuracy:
// 800 a factor of ten, from 0.01 to 1000.
var fine = func() []float64 {
	bounds := make([]float64, 4001)
	for i := range bounds {
		bounds[i] = math.Pow(10, -2+float64(i)/800)
	}
	return bounds
}()

// lognormal are the counts that n observations of a log-normal latency, of
// median scale and of spread sigma, have in the fine buckets if they fall exactly
// as expected.
func lognormal(n, scale float64) []uint64 {
	below := func(x float64) float64 {
		return math.Round(n / 2 * math.Erfc(-math.Log(x/scale)/sigma/math.Sqrt2))
	}
	counts := make([]uint64, len(fine)+1)
	last := 0.0
	for i, b := range fine {
		counts[i] = uint64(below(b) - last)
		last = below(b)
	}
	counts[len(fine)] = uint64(n - last)
	return counts
}
