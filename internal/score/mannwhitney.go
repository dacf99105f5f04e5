// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"math"
	"slices"
)

// The constants of Kayenta's judge (NetflixACAJudge and MannWhitneyClassifier of
// github.com/spinnaker/kayenta): the confidence of the interval, two-sided, which
// share of the shift it has to lie beyond, and how many times its baseline's mean
// the canary's has to be.
const (
	mannWhitneyConfidence = 0.98
	mannWhitneyTolerance  = 0.25
	mannWhitneyIncrease   = 1
	// mannWhitneyPrecision is how closely the ends of the interval are looked for,
	// as by the solver that Kayenta uses.
	mannWhitneyPrecision = 1e-6
)

// mannWhitney is Kayenta's judge of one metric that is worse when it is higher,
// looked at after every minute: the points of both arms so far.
type mannWhitney struct {
	canary, baseline []float64 // rising
	sums             [2]float64
}

// add adds one minute.
func (w *mannWhitney) add(canary, baseline float64) {
	w.canary, w.baseline = insert(w.canary, canary), insert(w.baseline, baseline)
	w.sums[0] += canary
	w.sums[1] += baseline
}

// insert adds a value to rising ones.
func insert(rising []float64, v float64) []float64 {
	i, _ := slices.BinarySearch(rising, v)
	return slices.Insert(rising, i, v)
}

// high tells whether the judge classifies the metric as high: the interval of the
// shift lies above the tolerated share of it, and so does the ratio of the means.
func (w *mannWhitney) high() bool {
	ratio := w.sums[0] / float64(len(w.canary)) / (w.sums[1] / float64(len(w.baseline)))
	if !(ratio >= mannWhitneyIncrease) {
		return false
	}
	estimate, low := w.shift(0), w.shift(math.Sqrt2*math.Erfinv(mannWhitneyConfidence))
	return low > mannWhitneyTolerance*math.Abs(estimate)
}

// shift is by how much the canary's points lie above the baseline's: the shift at
// which the statistic of what remains falls to z. At 0 it is the Hodges-Lehmann
// estimate, at a quantile of the normal distribution the end of a confidence
// interval (Bauer, JASA 67, 1972; as wilcox.test of R computes it for large
// samples, with its correction for continuity and for ties).
func (w *mannWhitney) shift(z float64) float64 {
	low := w.canary[0] - w.baseline[len(w.baseline)-1]
	high := w.canary[len(w.canary)-1] - w.baseline[0]
	switch {
	case !(w.statistic(low) > z):
		return low
	case !(w.statistic(high) < z):
		return high
	}
	for high-low > mannWhitneyPrecision {
		middle := (low + high) / 2
		switch at := w.statistic(middle); {
		case at == z:
			return middle
		case at > z:
			low = middle
		default:
			high = middle
		}
	}
	return (low + high) / 2
}

// statistic is how many standard deviations the Mann-Whitney statistic of the
// canary's points less a shift lies from its mean, if it is one by chance.
func (w *mannWhitney) statistic(shift float64) float64 {
	var above, tied float64 // pairs, and ties' cubes less themselves
	n, m := float64(len(w.canary)), float64(len(w.baseline))
	for i, j := 0, 0; i < len(w.canary) || j < len(w.baseline); {
		v := math.Inf(1)
		if i < len(w.canary) {
			v = w.canary[i] - shift
		}
		if j < len(w.baseline) {
			v = min(v, w.baseline[j])
		}
		var ofCanary, ofBaseline float64
		for ; i < len(w.canary) && w.canary[i]-shift == v; i++ {
			ofCanary++
		}
		below := float64(j)
		for ; j < len(w.baseline) && w.baseline[j] == v; j++ {
			ofBaseline++
		}
		above += ofCanary * (below + ofBaseline/2)
		alike := ofCanary + ofBaseline
		tied += alike * (alike*alike - 1)
	}
	off := above - n*m/2
	if off != 0 {
		off -= math.Copysign(0.5, off)
	}
	return off / math.Sqrt(n*m/12*(n+m+1-tied/((n+m)*(n+m-1))))
}
