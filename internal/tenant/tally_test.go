// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func observe(b buckets, seconds ...float64) Durations {
	t := b.newTally()
	for _, s := range seconds {
		b.count(&t, &Request{TTFT: s})
	}
	return t.TTFT
}

func TestExplicitBucketsHoldTheirUpperBound(t *testing.T) {
	d := observe(buckets{0.1, 1}, 0, 0.1, 0.11, 1, 1.01, 1e6)
	assert.Equal(t, []uint64{2, 2, 2}, d.Counts)
	assert.Equal(t, uint64(6), d.Count)
	assert.InEpsilon(t, 1000002.22, d.Sum, 1e-12)
	assert.Nil(t, d.Exponential)
}

func TestWhatIsNoTimeIsNotCounted(t *testing.T) {
	for _, b := range []buckets{DefaultBounds, nil} {
		assert.Equal(t, b.newTally().TTFT, observe(b, -1, math.NaN(), math.Inf(1), math.Inf(-1)))
	}
}

// OpenTelemetry's data model: bucket i holds (base^i, base^(i+1)], with base
// 2^(2^-scale).
func TestExponentialBucketsHoldTheirUpperBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.Float64Range(0.001, 1000).Draw(t, "seconds")
		d := observe(nil, seconds)
		place := slices.Index(d.Counts, 1)
		require.Positive(t, place)
		base := math.Pow(2, math.Pow(2, -float64(d.Exponential.Scale)))
		index := float64(d.Exponential.First + place - 1)
		require.LessOrEqual(t, math.Pow(base, index), seconds*(1+1e-12))
		require.GreaterOrEqual(t, math.Pow(base, index+1), seconds*(1-1e-12))
	})
}

func TestExponentialBucketsAtTheirEnds(t *testing.T) {
	d := observe(nil, 0, 1.0/1024, 1)
	assert.Equal(t, uint64(2), d.Counts[0], "no more than the zero threshold")
	assert.Equal(t, uint64(1), d.Counts[80], "1 s is the upper bound of the bucket below 0")
	assert.Len(t, d.Counts, 1+160+1)

	d = observe(nil, 1024, 1025, 1e300)
	assert.Equal(t, uint64(3), d.Counts[160], "the last bucket takes all that is longer")
	assert.Zero(t, d.Counts[161])
}

func TestTalliesAddUp(t *testing.T) {
	requests := []Request{
		{Outcome: OK, Tokens: [TokenTypeCount]uint64{200, 800, 50}, Known: [TokenTypeCount]bool{true, true, true}, TTFT: 0.5},
		{Outcome: OK, Tokens: [TokenTypeCount]uint64{Output: 7}, Known: [TokenTypeCount]bool{Output: true}, TTFT: 2},
		{Outcome: Failed, Tokens: [TokenTypeCount]uint64{InputUncached: 9}, Known: [TokenTypeCount]bool{InputUncached: true}, TTFT: -1},
		{Outcome: Throttled, TTFT: -1},
	}
	b := buckets{1}
	whole, part := b.newTally(), b.newTally()
	for i := range requests {
		b.count(&part, &requests[i])
		whole.add(&part)
		part.reset()
	}
	assert.Equal(t, Tally{
		Tokens:   [TokenTypeCount]uint64{209, 800, 57},
		Requests: [OutcomeCount]uint64{2, 1, 1},
		Known:    [TokenTypeCount]uint64{1, 1, 2},
		TTFT:     Durations{Count: 2, Sum: 2.5, Counts: []uint64{1, 1}},
	}, whole)
	assert.Equal(t, b.newTally(), part)
}
