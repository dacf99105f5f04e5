// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
)

// stream returns the random stream of one purpose of one owner. Streams are
// independent: what one consumes leaves all others as they are.
func stream(seed uint64, owner, purpose string) *rand.Rand {
	name := fnv.New64a()
	name.Write([]byte(owner))
	name.Write([]byte{0})
	name.Write([]byte(purpose))
	return rand.New(rand.NewPCG(seed, name.Sum64()))
}

// Shape names a family of positive distributions.
type Shape string

// The shapes a scenario may ask for.
const (
	ShapeLognormal Shape = "lognormal"
	ShapeGamma     Shape = "gamma"
	ShapeWeibull   Shape = "weibull"
)

// variate draws positive numbers of mean 1 with a given coefficient of
// variation (standard deviation over mean).
type variate struct {
	shape Shape
	cv    float64
	// a and b are the family's own parameters: mu and sigma of the logarithm,
	// shape and scale of gamma, shape and scale of Weibull.
	a, b float64
}

func newVariate(shape Shape, cv float64) variate {
	v := variate{shape: shape, cv: cv}
	if cv == 0 {
		return v
	}
	switch shape {
	case ShapeGamma:
		v.a, v.b = 1/(cv*cv), cv*cv
	case ShapeWeibull:
		v.a = weibullShape(cv)
		v.b = 1 / math.Gamma(1+1/v.a)
	case ShapeLognormal:
		variance := math.Log1p(cv * cv)
		v.a, v.b = -variance/2, math.Sqrt(variance)
	}
	return v
}

func (v variate) draw(r *rand.Rand) float64 {
	if v.cv == 0 {
		return 1
	}
	switch v.shape {
	case ShapeGamma:
		return v.b * gamma(r, v.a)
	case ShapeWeibull:
		return v.b * math.Pow(r.ExpFloat64(), 1/v.a)
	default:
		return math.Exp(v.a + v.b*r.NormFloat64())
	}
}

// gamma draws from the gamma distribution of the given shape and scale 1, by
// Marsaglia and Tsang, "A simple method for generating gamma variables" (ACM
// TOMS 26, 2000), with their boost for shapes below 1.
func gamma(r *rand.Rand, shape float64) float64 {
	boost := 1.0
	if shape < 1 {
		boost = math.Pow(1-r.Float64(), 1/shape)
		shape++
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-r.Float64()) < 0.5*x*x+d-d*v+d*math.Log(v) {
			return boost * d * v
		}
	}
}

// weibullShape finds the shape k whose coefficient of variation is cv, from
// cv² = Γ(1+2/k)/Γ(1+1/k)² - 1, which falls as k grows.
func weibullShape(cv float64) float64 {
	low, high := 0.05, 200.0
	for range 100 {
		k := math.Sqrt(low * high)
		double, _ := math.Lgamma(1 + 2/k)
		single, _ := math.Lgamma(1 + 1/k)
		if math.Expm1(double-2*single) > cv*cv {
			low = k
		} else {
			high = k
		}
	}
	return math.Sqrt(low * high)
}
