// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import "math"

// Effects are the log odds ratios that an exceedance is tested against: each is
// a guess of how much more often a replica lies above a boundary than it may.
// 1.4, 2 and 4 times the odds cover what is 1.2 to several times slower.
var Effects = [...]float64{math.Log(1.4), math.Log(2), math.Log(4)}

// Null is the hypothesis that at most a share p of observations lies above a
// boundary. It holds log(1 + p·(e^d - 1)) for each effect d.
type Null [len(Effects)]float64

// growth is e^d - 1 of each effect.
var growth = func() (g [len(Effects)]float64) {
	for i, d := range Effects {
		g[i] = math.Expm1(d)
	}
	return g
}()

// NullOf is the null of a share p, 0 to 1.
func NullOf(p float64) (h Null) {
	for i, g := range growth {
		h[i] = math.Log1p(p * g)
	}
	return h
}

// LogE is the log of the e-value of x of n observations above the boundary:
//
//	e = exp(d·x) / (1 + p·(e^d - 1))^n
//
// Its mean is at most 1 if each of the n lies above with probability p or less.
// It is so, too, if p is the share of a pool that the n were drawn from without
// replacement: the moment generating function of a hypergeometric count is at
// most that of the binomial (Hoeffding 1963, theorem 4). Products over windows
// are then test supermartingales, whatever the load does meanwhile (Lindon and
// Malek, NeurIPS 2022).
func (h *Null) LogE(effect int, x, n float64) float64 {
	return Effects[effect]*x - h[effect]*n
}

// Detector is a Shiryaev-Roberts e-detector for each effect. It gathers e-values
// one after the other,
//
//	M := (M + 1) · e,
//
// so that a change is found whenever it comes. While the null holds, M grows by
// 1 a step on average; the mean time until any mean of detectors first reaches A
// is therefore at least A steps (Shin, Ramdas and Rinaldo, E-detectors,
// arXiv:2203.03532).
//
// It keeps single precision: a detector's fate is decided by orders of magnitude.
type Detector [len(Effects)]float32

// most keeps a detector far from overflowing; what is cut off is evidence, so
// the guarantee stands.
const most = 1e30

// Update takes the evidence of x of n observations above the boundary. Where
// observations come in clumps, dispersion says by how much more than
// independent ones their counts vary, 1 or more: the log of e is divided by it.
func (m *Detector) Update(h *Null, x, n, dispersion float64) {
	for i := range m {
		e := math.Exp(min(h.LogE(i, x, n)/dispersion, logMost))
		m[i] = float32(min((float64(m[i])+1)*e, most))
	}
}

var logMost = math.Log(most)

// Sum is the sum over effects.
func (m *Detector) Sum() (sum float64) {
	for _, v := range m {
		sum += float64(v)
	}
	return sum
}
