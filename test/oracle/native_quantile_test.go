// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser/posrange"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/stats"
)

// nativeQuantiles are those of which a half of the draws is; the others are anywhere.
var nativeQuantiles = []float64{0, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1}

func drawQuantile(r *rand.Rand) float64 {
	if r.IntN(2) == 0 {
		return r.Float64()
	}
	return nativeQuantiles[r.IntN(len(nativeQuantiles))]
}

// nativeQuantile asks Prometheus' own function for native histograms.
func nativeQuantile(q float64, h *histogram.FloatHistogram) float64 {
	value, _ := promql.HistogramQuantile(q, h, "", posrange.PositionRange{})
	return value
}

// exponentialVector is one exponential histogram: as stats knows it, and as Prometheus does.
type exponentialVector struct {
	buckets stats.Exponential
	counts  []uint64
	native  *histogram.FloatHistogram
}

// drawExponential draws buckets of any schema within a factor of 2^40 around 1, and counts of which some are zero. A zero
// bucket may reach into the lowest others.
func drawExponential(r *rand.Rand, count func(*rand.Rand) float64, none bool) exponentialVector {
	v := exponentialVector{counts: []uint64{uint64(count(r))}}
	v.buckets.Scale = r.IntN(13) - 4
	octaves := float64(r.IntN(40) - 20)
	v.buckets.First = int(math.Floor(math.Ldexp(octaves, v.buckets.Scale)))
	switch r.IntN(3) {
	case 0:
		v.buckets.ZeroThreshold = math.Ldexp(1, -128)
	case 1:
		v.buckets.ZeroThreshold = math.Exp2(math.Ldexp(float64(v.buckets.First)+r.Float64(), -v.buckets.Scale))
	}
	v.native = &histogram.FloatHistogram{
		Schema: int32(v.buckets.Scale), ZeroThreshold: v.buckets.ZeroThreshold, ZeroCount: float64(v.counts[0]),
		Count: float64(v.counts[0]), PositiveSpans: []histogram.Span{{Offset: int32(v.buckets.First) + 1, Length: uint32(1 + r.IntN(40))}},
	}
	for range v.native.PositiveSpans[0].Length {
		n := count(r)
		v.counts = append(v.counts, uint64(n))
		v.native.PositiveBuckets = append(v.native.PositiveBuckets, n)
		v.native.Count += n
	}
	if none {
		n := 1 + count(r)
		v.counts = append(v.counts, uint64(n))
		v.native.Count += n
		v.native.Sum = math.NaN()
	} else {
		v.counts = append(v.counts, 0)
	}
	return v
}

// TestExponentialQuantile: stats.Exponential.Quantile is Prometheus' histogram_quantile of native histograms where that is
// defined, and undefined where that is NaN.
func TestExponentialQuantile(t *testing.T) {
	const vectors = 20_000 // of each shape
	for name, draw := range map[string]func(*rand.Rand) exponentialVector{
		"counts as scraped": func(r *rand.Rand) exponentialVector { return drawExponential(r, whole(100), false) },
		"few observations":  func(r *rand.Rand) exponentialVector { return drawExponential(r, sparse(whole(2), 0.8), false) },
		"ties":              func(r *rand.Rand) exponentialVector { return drawExponential(r, sparse(fixed(4), 0.7), false) },
		"huge counts":       func(r *rand.Rand) exponentialVector { return drawExponential(r, floored(powers(12)), false) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(3, 4))
			for range vectors {
				v, q := draw(r), drawQuantile(r)
				want := nativeQuantile(q, v.native)
				before := slices.Clone(v.counts)
				got, state := v.buckets.Quantile(q, v.counts)
				require.Equal(t, before, v.counts, "the counts were changed")
				require.Equalf(t, math.IsNaN(want), state == stats.Undefined, "q %v of %+v: Prometheus %v, here %v %v", q, v, want, got, state)
				require.Truef(t, state == stats.Undefined || equal(want, got), "q %v of %+v: Prometheus %v, here %v %v", q, v, want, got, state)
			}
		})
	}
}

// TestExponentialQuantileOfNotAllNumbers: observations that are not a number count, and are larger than any. Prometheus
// says so where one is hit, by NaN. Elsewhere v0.314 goes on through the buckets to find out whether there are any, and
// then takes the bounds of the last one for those of the one that it had found. That is not followed here; what it would
// say otherwise is what it says of the lower half if the sum hides that there are such observations.
func TestExponentialQuantileOfNotAllNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	compared := 0
	for range 20_000 {
		v, q := drawExponential(r, sparse(whole(10), 0.5), true), drawQuantile(r)
		numbers := v.native.Count - float64(v.counts[len(v.counts)-1])
		hit := q*v.native.Count > numbers || numbers == 0
		require.Truef(t, !hit || math.IsNaN(nativeQuantile(q, v.native)), "q %v of %+v", q, v)
		v.native.Sum = 0
		want := nativeQuantile(q, v.native)
		got, state := v.buckets.Quantile(q, v.counts)
		require.Equalf(t, hit, state == stats.Undefined, "q %v of %+v: here %v %v", q, v, got, state)
		if !hit && q < 0.5 {
			require.Truef(t, equal(want, got), "q %v of %+v: Prometheus %v, here %v", q, v, want, got)
			compared++
		}
	}
	assert.Greater(t, compared, 5_000)
}

// TestCustomBucketsQuantile: the collector hands histograms with custom buckets on as explicit ones, and stats.Quantile of
// those is Prometheus' histogram_quantile of the native ones. It counts from above from the median on, which tells another
// side where a rank lies between two buckets with an empty one between them; so ranks are not whole numbers here.
func TestCustomBucketsQuantile(t *testing.T) {
	const vectors = 20_000 // of each shape
	for name, count := range map[string]func(*rand.Rand) float64{
		"counts as scraped": whole(100),
		"few observations":  sparse(whole(2), 0.8),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(5, 6))
			for range vectors {
				v := drawVector(r, 1+r.IntN(23), 0, count)
				q := 0.001 + 0.998*r.Float64()
				want := nativeQuantile(q, v.custom())
				got, state := stats.Quantile(q, v.bounds, v.cumulative)
				require.Equalf(t, math.IsNaN(want), state == stats.Undefined, "q %v of %v: Prometheus %v, here %v %v", q, v, want, got, state)
				require.Truef(t, state == stats.Undefined || equal(want, got), "q %v of %v: Prometheus %v, here %v %v", q, v, want, got, state)
			}
		})
	}
}

// TestCustomBucketsBetweenTwoBuckets: half of 8 observations lie in (0, 1], half in (2, 4]. The median is where the lower
// end, or where the upper begin; no number between is more true than another.
func TestCustomBucketsBetweenTwoBuckets(t *testing.T) {
	v := vector{bounds: []float64{1, 2, 4}, cumulative: []float64{4, 4, 8, 8}}
	got, _ := stats.Quantile(0.5, v.bounds, v.cumulative)
	assert.InDelta(t, 1, got, tolerance)
	assert.InDelta(t, 1, v.prometheusQuantile(0.5), tolerance)
	assert.InDelta(t, 2, nativeQuantile(0.5, v.custom()), tolerance)
}

// custom is the vector as a native histogram with custom buckets.
func (v vector) custom() *histogram.FloatHistogram {
	h := &histogram.FloatHistogram{
		Schema: histogram.CustomBucketsSchema, CustomValues: v.bounds, Count: v.cumulative[len(v.bounds)],
		PositiveSpans: []histogram.Span{{Length: uint32(len(v.cumulative))}},
	}
	below := 0.0
	for _, upTo := range v.cumulative {
		h.PositiveBuckets = append(h.PositiveBuckets, upTo-below)
		below = upTo
	}
	return h
}

// fixed is always the same.
func fixed(n int) func(*rand.Rand) float64 {
	return func(*rand.Rand) float64 { return float64(n) }
}

// floored draws the whole part.
func floored(count func(*rand.Rand) float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return math.Floor(count(r)) }
}
