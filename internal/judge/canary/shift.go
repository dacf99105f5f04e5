// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"math"

	"github.com/llmfleet/llmfleet/internal/stats"
)

// shift gathers the evidence of all buckets together: the canary's observations are
// scored by their rank among those of both arms, where the baseline's are made just
// as much worse as the null says.
func (r *record) shift(m *Measure, t *tape, o *Options, weight float64) {
	r.Shift.learn(t.scatter, t.clump)
	dispersion := r.Shift.dispersion(t.clump)
	own := t.floats(0, t.counts[Canary])
	from, to := m.sides(nil)
	for side := from; side <= to; side++ {
		t.pooled(r, side, m.tolerance(o), true)
		r.Shift.Fail[side].UpdateScores(shifts.fail, t.scores, own, t.pool, dispersion, weight)
		t.pooled(r, side, o.PassTolerance, false)
		r.Shift.Pass[side].UpdateScores(shifts.pass, t.scores, own, t.pool, dispersion, weight)
	}
}

// enoughRequests are so many that the mean of a pane is not that of a few requests,
// which may go on into the next.
const enoughRequests = 10

// mean gathers the evidence of means. A pane is one observation.
func (r *record) mean(m *Measure, t *tape, o *Options, weight float64) {
	if min(t.n[Canary], t.n[Baseline]) < enoughRequests*t.clump {
		return
	}
	for arm := range t.rates {
		t.rates[arm] = t.sums[arm] / t.n[arm]
	}
	if !(t.rates[Canary] > 0 && t.rates[Baseline] > 0) { // or a sum is not told
		return
	}
	from, to := m.sides(nil)
	for side := from; side <= to; side++ {
		s := t.splitLevel(side, m.tolerance(o), o.PassTolerance)
		r.Mean.Fail[side].Update(gridsOf[level].fail, s.fail.share, s.fail.beyond, s.n, 1, weight)
		r.Mean.Pass[side].Update(gridsOf[level].pass, s.pass.share, s.pass.beyond, s.n, 1, weight)
	}
}

// summed tells whether both arms tell the sums of all that they observed.
func (r *record) summed() bool {
	return !math.IsNaN(r.Sums[Canary]) && !math.IsNaN(r.Sums[Baseline])
}

// floats are counts as numbers, in one of the tape's two rows.
func (t *tape) floats(row int, counts []uint64) []float64 {
	t.rows[row] = t.rows[row][:0]
	for _, n := range counts {
		t.rows[row] = append(t.rows[row], float64(n))
	}
	return t.rows[row]
}

// pooled finds the pool of the canary's observations and those of its baseline, made
// so many times worse, by bucket; and the bucket's scores. Where buckets do not tell,
// the baseline is made worse by the whole bucket if it is to be more, or by none of
// it.
func (t *tape) pooled(r *record, side Side, times float64, more bool) {
	t.pool = t.pool[:0]
	beyond := 1.0 // on the upper side of the bucket's lower bound
	for i := range t.counts[Canary] {
		next := 0.0
		if i < len(r.Bounds) {
			low, high := t.shifted(r.Bounds[i].Value, side, times)
			if side == Lower {
				low, high = 1-high, 1-low
			}
			next = low
			if more == (side == Higher) {
				next = high
			}
			next = min(next, beyond)
		}
		t.pool = append(t.pool, float64(t.counts[Canary][i])+t.n[Baseline]*(beyond-next))
		beyond = next
	}
	t.scores = stats.NormalScores(t.scores[:0], t.pool)
	if side == Lower {
		for i := range t.scores {
			t.scores[i] = -t.scores[i]
		}
	}
}

// scored finds the scores of the baseline's buckets, and their mean and variance over
// its observations.
func (t *tape) scored() (mean, variance float64) {
	base := t.floats(1, t.counts[Baseline])
	t.scores = stats.NormalScores(t.scores[:0], base)
	for i, n := range base {
		mean += n * t.scores[i] / t.n[Baseline]
	}
	for i, n := range base {
		variance += n * (t.scores[i] - mean) * (t.scores[i] - mean) / t.n[Baseline]
	}
	return mean, variance
}

// scatterOf finds how far one replica of the baseline lies from the others by its
// scores: its square over its variance.
func (t *tape) scatterOf(mean, variance float64) {
	n, away := 0.0, 0.0
	for i, c := range t.own {
		n += float64(c)
		away += float64(c) * (t.scores[i] - mean)
	}
	if n*variance > 0 {
		t.scatter = append(t.scatter, away*away/(n*variance))
	}
}
