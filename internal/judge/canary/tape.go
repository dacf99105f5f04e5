// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"iter"
	"math"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/stats"
)

// tape is what one pane tells of one measure.
type tape struct {
	// told: an arm tells the measure, if only that there was nothing; in common is
	// what both tell of it.
	told     [ArmCount]bool
	inCommon bool
	// counts of each arm: by the bucket that the record's boundaries make, with one
	// more above the last; or by reason.
	counts [ArmCount][]uint64
	sums   [ArmCount]float64 // NaN if somebody tells none
	// rates are those of a level, mean over replicas.
	rates [ArmCount]float64
	// squares are, by boundary, how far the baseline's replicas lie apart, each in
	// variances of what chance does.
	squares [][]float64
	scatter []float64 // the same of all buckets together
	// clump is how many observations one request makes, which are alike at worst.
	clump float64

	beyond   [ArmCount][]float64 // each boundary, on its upper side
	n        [ArmCount]float64
	survival stats.Survival // the baseline's
	own      []uint64
	bounds   []float64
	rows     [2][]float64
	pool     []float64 // of both arms, the baseline made worse
	scores   []float64 // of its buckets
	among    [ArmCount][]*fleet.Distribution
}

func (t *tape) begin() {
	t.told, t.inCommon, t.rates, t.clump = [ArmCount]bool{}, false, [ArmCount]float64{}, 1
	t.sums = [ArmCount]float64{}
	for arm := range t.counts {
		t.counts[arm], t.beyond[arm], t.among[arm] = t.counts[arm][:0], t.beyond[arm][:0], t.among[arm][:0]
		t.n[arm] = 0
	}
	t.squares, t.scatter = t.squares[:0], t.scatter[:0]
}

// observed tells whether both arms observed something.
func (t *tape) observed() bool { return t.inCommon && t.n[Canary] > 0 && t.n[Baseline] > 0 }

// total counts what each arm observed.
func (t *tape) total() {
	for arm, counts := range t.counts {
		t.n[arm] = float64(sum(counts))
	}
}

// cut finds how much lies above each boundary between buckets.
func (t *tape) cut() {
	t.total()
	for arm, counts := range t.counts {
		above := t.n[arm]
		for i := range max(0, len(counts)-1) {
			above -= float64(counts[i])
			t.beyond[arm] = append(t.beyond[arm], above)
		}
	}
}

// spread finds how far one replica of the baseline lies from the others at each
// boundary: its square over its variance.
func (t *tape) spread(beyond func(boundary int) float64, n float64) {
	for i := range t.beyond[Baseline] {
		if len(t.squares) <= i {
			t.squares = append(t.squares, nil)
		}
		p := t.beyond[Baseline][i] / t.n[Baseline]
		if variance := n * p * (1 - p); variance > 0 {
			t.squares[i] = append(t.squares[i], math.Pow(beyond(i)-n*p, 2)/variance)
		}
	}
}

func sum(counts []uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// tellers yields what members tell of the signal with that index, as far as it
// can be counted.
func tellers(members []*fleet.MemberFrame, signal int) iter.Seq[*fleet.Distribution] {
	return func(yield func(*fleet.Distribution) bool) {
		for _, m := range members {
			if d := &m.Told[signal]; d.Layout != nil && !d.Unreliable && !yield(d) {
				return
			}
		}
	}
}

// observationsOf are those that members tell of a signal; false: none tells it.
func observationsOf(f *fleet.Frame, members []*fleet.MemberFrame, s fleet.Signal) (n uint64, told bool) {
	at := f.Index(s)
	if at < 0 {
		return 0, false
	}
	for d := range tellers(members, at) {
		n, told = n+d.Observations(), true
	}
	return n, told
}
