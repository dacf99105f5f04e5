// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/stats"
)

// vector is one classic histogram: finite upper bounds, and cumulative counts with the one of +Inf last.
type vector struct{ bounds, cumulative []float64 }

// shapes are the kinds of histogram on which interpolation can go wrong. Each draws one vector.
var shapes = map[string]func(*rand.Rand) vector{
	"counts as scraped": func(r *rand.Rand) vector { return drawVector(r, 1+r.IntN(23), 0, whole(100)) },
	"empty":             func(r *rand.Rand) vector { return drawVector(r, 1+r.IntN(23), 0, whole(0)) },
	"one finite bucket": func(r *rand.Rand) vector { return drawVector(r, 1, 0, whole(20)) },
	"only +Inf":         func(r *rand.Rand) vector { return drawVector(r, 0, 0, whole(20)) },
	"few observations":  func(r *rand.Rand) vector { return drawVector(r, 1+r.IntN(23), 0, sparse(whole(2), 0.8)) },
	"fractions":         func(r *rand.Rand) vector { return drawVector(r, 1+r.IntN(23), 0, (*rand.Rand).ExpFloat64) },
	"huge counts":       func(r *rand.Rand) vector { return drawVector(r, 1+r.IntN(23), 0, powers(300)) },
	"bounds below zero": func(r *rand.Rand) vector { return drawVector(r, 1+r.IntN(23), -5, whole(100)) },
	"first bound zero": func(r *rand.Rand) vector {
		v := drawVector(r, 2+r.IntN(22), 0, whole(100))
		v.bounds[0] = 0
		return v
	},
	"mass in one bucket": func(r *rand.Rand) vector {
		v := drawVector(r, 1+r.IntN(23), 0, whole(0))
		for i := r.IntN(len(v.cumulative)); i < len(v.cumulative); i++ {
			v.cumulative[i] = 1000
		}
		return v
	},
	"saturated": func(r *rand.Rand) vector {
		v := drawVector(r, 1+r.IntN(23), 0, whole(10))
		v.cumulative[len(v.cumulative)-1] += 1000
		return v
	},
	"falling counts": func(r *rand.Rand) vector {
		v := drawVector(r, 1+r.IntN(23), 0, whole(10))
		for i := range v.cumulative {
			v.cumulative[i] = max(0, v.cumulative[i]+float64(r.IntN(21)-10))
		}
		return v
	},
	// Sums of the same counts in another order differ in the last bits; PromQL evens such differences out.
	"tiny differences": func(r *rand.Rand) vector {
		v := drawVector(r, 1+r.IntN(23), 0, sparse(whole(1000), 0.5))
		for i := range v.cumulative {
			v.cumulative[i] *= 1 + (r.Float64()-0.5)*math.Pow(10, float64(-16+r.IntN(6)))
		}
		return v
	},
}

// TestQuantile: stats.Quantile is Prometheus' classic histogram_quantile where that is defined, and undefined where that
// is NaN.
func TestQuantile(t *testing.T) {
	const vectors = 20_000 // of each shape
	quantiles := []float64{0, 0.05, 0.5, 0.95, 0.99, 1}
	for name, draw := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, 2))
			for range vectors {
				v := draw(r)
				q := quantiles[r.IntN(len(quantiles))]
				if r.IntN(4) == 0 {
					q = r.Float64()
				}
				want := v.prometheusQuantile(q)
				before := slices.Clone(v.cumulative)
				got, state := stats.Quantile(q, v.bounds, v.cumulative)
				require.Equal(t, before, v.cumulative, "the counts were changed")
				require.Equalf(t, math.IsNaN(want), state == stats.Undefined,
					"q %v of %v: Prometheus %v, here %v %v", q, v, want, got, state)
				require.Truef(t, state == stats.Undefined || equal(want, got),
					"q %v of %v: Prometheus %v, here %v %v", q, v, want, got, state)
			}
		})
	}
	assert.GreaterOrEqual(t, vectors*len(shapes), 100_000)
}

// prometheusQuantile asks Prometheus' own function, which sorts and repairs what it is given.
func (v vector) prometheusQuantile(q float64) float64 {
	buckets := make(promql.Buckets, 0, len(v.cumulative))
	for i, count := range v.cumulative {
		bound := math.Inf(1)
		if i < len(v.bounds) {
			bound = v.bounds[i]
		}
		buckets = append(buckets, promql.Bucket{UpperBound: bound, Count: count})
	}
	quantile, _, _, _, _, _ := promql.BucketQuantile(q, buckets)
	return quantile
}

// drawVector draws n ascending bounds above the lowest and the counts between them.
func drawVector(r *rand.Rand, n int, lowest float64, count func(*rand.Rand) float64) vector {
	v := vector{bounds: make([]float64, n), cumulative: make([]float64, n+1)}
	bound, sum := lowest, 0.0
	for i := range v.cumulative {
		sum += count(r)
		v.cumulative[i] = sum
		if i < n {
			bound += 1e-3 + r.ExpFloat64()
			v.bounds[i] = bound
		}
	}
	return v
}

// whole draws integers up to n.
func whole(n int) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return float64(r.IntN(n + 1)) }
}

// sparse leaves a share of the buckets empty.
func sparse(count func(*rand.Rand) float64, empty float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 {
		if r.Float64() < empty {
			return 0
		}
		return count(r)
	}
}

// powers draws numbers of any magnitude up to ten to the n.
func powers(n int) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return math.Pow(10, float64(n)*r.Float64()) }
}
