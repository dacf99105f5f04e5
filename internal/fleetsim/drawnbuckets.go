// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"math"
	"math/rand/v2"
	"slices"
)

// poisson draws a number from the Poisson distribution of the given mean, by
// Ahrens and Dieter, "Computer methods for sampling from gamma, beta, Poisson
// and binomial distributions" (Computing 12, 1974): events come at exponential
// gaps, of which the first that are as good as certain are jumped over.
func poisson(r *rand.Rand, mean float64) (n uint64) {
	var at float64
	if jump := math.Floor(mean - 2*math.Sqrt(mean)); jump >= 1 {
		at = gamma(r, jump)
		if at > mean { // too far: events before a known one are spread evenly
			for range uint64(jump) - 1 {
				if at*r.Float64() < mean {
					n++
				}
			}
			return n
		}
		n = uint64(jump)
	}
	for at += r.ExpFloat64(); at < mean; at += r.ExpFloat64() {
		n++
	}
	return n
}

// bucketDraw draws the bucket of a random latency. Each shape is a power of a
// standard variate: bounds are brought to the scale of that variate once a pane,
// so that no draw needs a logarithm or a power.
type bucketDraw struct {
	shape Shape
	// param is what the standard variate depends on: sigma of the log-normal,
	// the shape of the others.
	param float64
	edges []float64 // the bounds on the variate's scale, of a latency as it is
	now   []float64 // the same, of one that is slowed down
	usual int       // a bucket in the middle of the distribution, where to look first
}

func newBucketDraw(l *DrawnLatency) bucketDraw {
	v := newVariate(l.Distribution, l.CV)
	b := bucketDraw{shape: l.Distribution, param: v.a, edges: make([]float64, len(l.Bounds)), now: make([]float64, len(l.Bounds))}
	if b.shape == ShapeLognormal {
		b.param = v.b
	}
	for i, bound := range l.Bounds {
		switch x := bound / l.Mean; b.shape {
		case ShapeGamma:
			b.edges[i] = x / v.b
		case ShapeWeibull:
			b.edges[i] = math.Pow(x/v.b, v.a)
		default:
			b.edges[i] = (math.Log(x) - v.a) / v.b
		}
	}
	b.slowDown(0)
	return b
}

// slowDown makes latencies exp(logFactor) times as long as they are.
func (b *bucketDraw) slowDown(logFactor float64) {
	var middle float64
	switch b.shape {
	case ShapeGamma:
		middle = b.param
		b.scaleEdges(math.Exp(-logFactor))
	case ShapeWeibull:
		middle = 1
		b.scaleEdges(math.Exp(-logFactor * b.param))
	default:
		shift := logFactor / b.param
		for i, edge := range b.edges {
			b.now[i] = edge - shift
		}
	}
	b.usual, _ = slices.BinarySearch(b.now, middle)
}

func (b *bucketDraw) scaleEdges(by float64) {
	for i, edge := range b.edges {
		b.now[i] = edge * by
	}
}

// draw returns a bucket's index; the last is above all bounds.
func (b *bucketDraw) draw(r *rand.Rand) int {
	var x float64
	switch b.shape {
	case ShapeGamma:
		x = gamma(r, b.param)
	case ShapeWeibull:
		x = r.ExpFloat64()
	default:
		x = r.NormFloat64()
	}
	i := b.usual
	for i < len(b.now) && x > b.now[i] {
		i++
	}
	for i > 0 && x <= b.now[i-1] {
		i--
	}
	return i
}
