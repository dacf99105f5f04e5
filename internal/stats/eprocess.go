// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package stats

import "math"

// MaxEffects is how many effects a Grid has at most.
const MaxEffects = 4

// Grid are the effects that an EProcess tests for, one to MaxEffects log odds
// ratios of one sign. Positive ones are evidence against "at most a share p lies
// above", negative ones against "at least p does".
type Grid []float64

// LogE is the log of the e-value of x of n observations above, where a share p
// may be:
//
//	e = exp(d·x) / (1 + p·(e^d - 1))^n
//
// for the effect d. Its mean is at most 1 for the reasons given at Null.LogE; of a
// negative d too, as Hoeffding's theorem is of all convex functions.
func (g Grid) LogE(effect int, p, x, n float64) float64 {
	d := g[effect]
	return d*x - n*math.Log1p(p*math.Expm1(d))
}

// EProcess is the evidence, gathered over panes, against a null hypothesis on which
// share lies above: "at most p" or "at least p", with a p of each pane's own. For
// each effect it holds
//
//	M := (M + w_k) · e,  w_k = StartWeight(k),
//
// which is the sum, over the panes 0 to k, of w_i times the product of the e-values
// from pane i on: the Shiryaev-Roberts sum of e-processes that begin with each
// pane (Shin, Ramdas and Rinaldo, E-detectors, arXiv:2203.03532), with weights
// that sum to 1 in place of ones. With those not begun yet, of which each is 1,
// it is a mixture of e-processes, over when the effect began and how large it is,
// and therefore one itself: under the null, it ever reaches 1/alpha with a
// probability of at most alpha (Ville 1939). So does any mean of such processes
// over boundaries. The zero value is before the first pane.
type EProcess [MaxEffects]float64

// atFirst is the weight of the effects that are there from the first pane on.
const atFirst = 0.9

// StartWeight is the weight of the effects that begin in pane k, counted from 0:
// most are there from the first pane, and when the others begin costs evidence that
// grows with the logarithm of the pane only.
func StartWeight(k int) float64 {
	if k <= 0 {
		return atFirst
	}
	return (1 - atFirst) / (float64(k) * float64(k+1))
}

// Unstarted is the weight of the effects that begin after pane k: 1 less
// StartWeight of panes 0 to k. Before the first pane, k < 0, it is 1.
func Unstarted(k int) float64 {
	if k < 0 {
		return 1
	}
	return (1 - atFirst) / float64(k+1)
}

// mostEvidence keeps sums of processes from overflowing; what is cut off is
// evidence, so the guarantee stands.
const mostEvidence = 1e300

// Update takes a pane, in which x of n observations lay above and the null is of
// the share p, 0 to 1. The grid is the same for all panes. Where observations come
// in clumps, dispersion says by how much more than independent ones their counts
// vary, 1 or more: the log of e is divided by it. weight is the pane's StartWeight;
// a pane without observations, x = n = 0, counts as well. p, dispersion and grid
// must be known without a look at x, given the pooled counts. An e that is not a
// number leaves the evidence as it is.
func (m *EProcess) Update(g Grid, p, x, n, dispersion, weight float64) {
	for i := range g {
		m.gain(i, g.LogE(i, p, x, n)/dispersion, weight)
	}
}

// UpdateScores takes a pane whose observations lie in B buckets, each with a score:
// own counts, 0 or more, are the n that are tested, and pool the counts that they
// would be drawn from under the null, these among them. For the effect d,
//
//	e = exp(d · sum of own scores) / (mean of exp(d · score) over the pool)^n,
//
// of which Update's is the case of the scores 0 and 1. Its mean is at most 1 if own
// is a random part of the pool, by the same theorem of Hoeffding (1963, theorem 4);
// and if it lies lower than such a part, so long as scores rise with the buckets and
// d is positive, or higher, and d is negative. All else is as for Update.
func (m *EProcess) UpdateScores(g Grid, scores, own, pool []float64, dispersion, weight float64) {
	var sum, n, all float64
	for b, score := range scores {
		sum += own[b] * score
		n += own[b]
		all += pool[b]
	}
	for i, d := range g {
		mean := 0.0
		for b, score := range scores {
			mean += pool[b] / all * math.Exp(d*score)
		}
		m.gain(i, (d*sum-n*math.Log(mean))/dispersion, weight)
	}
}

// gain takes a pane's log of e for one effect.
func (m *EProcess) gain(effect int, logE, weight float64) {
	evidence := (m[effect] + weight) * math.Exp(logE)
	if !math.IsNaN(evidence) {
		m[effect] = min(max(evidence, 0), mostEvidence)
	}
}

// E is the e-process: the mean over the grid's effects, with unstarted, the
// Unstarted of the pane that was taken last.
func (m *EProcess) E(g Grid, unstarted float64) float64 {
	sum := 0.0
	for i := range g {
		sum += m[i]
	}
	return sum/float64(len(g)) + unstarted
}
