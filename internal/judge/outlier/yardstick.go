// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"math"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/stats"
)

// yardstick says how many times slower a replica is, over the window and as far
// as buckets tell. Only those that are suspected are measured, so the pool of a
// signal is made when it is first asked for. A ratio is infinite if the replica
// lies above all bounds, and the others do not.
type yardstick struct {
	frame  *fleet.Frame
	pools  []fleet.Pool // by signal of the frame
	made   []bool
	own    []uint64
	others []uint64
}

// at are the quantiles that are looked at: whoever is slower may be so in the
// middle or in the tail.
var at = [...]float64{0.5, 0.95}

// begin makes the yardstick one of another frame.
func (y *yardstick) begin(f *fleet.Frame) {
	y.frame = f
	for len(y.pools) < len(f.Signals) {
		y.pools = append(y.pools, fleet.Pool{})
	}
	y.made = append(y.made[:0], make([]bool, len(f.Signals))...)
}

func (y *yardstick) pool(s int) *fleet.Pool {
	p := &y.pools[s]
	if !y.made[s] {
		p.Gather(y.frame, y.frame.Distributions(s))
		y.made[s] = true
	}
	return p
}

// median is a replica's median latency over that of the whole fleet.
func (y *yardstick) median(i, s int) (ratio float64, known bool) {
	return y.quotient(i, s, at[0], false)
}

// slower is how many times slower a replica is than its peers, at the quantile
// where it is more so.
func (y *yardstick) slower(i, s int) (ratio float64, known bool) {
	for _, q := range at {
		if r, ok := y.quotient(i, s, q, true); ok {
			ratio, known = max(ratio, r), true
		}
	}
	return ratio, known
}

// quotient is a quantile of a replica over that of its peers, or of the fleet.
func (y *yardstick) quotient(i, s int, q float64, peers bool) (ratio float64, known bool) {
	p, d := y.pool(s), &y.frame.Members[i].Told[s]
	if d.Layout == nil || d.Unreliable || d.Observations() == 0 || !d.Layout.Bucketed() || p.Excludes(d.Layout) {
		return 0, false
	}
	y.own = p.Regroup(y.own, d)
	y.others = append(y.others[:0], p.Counts...)
	if peers {
		for b, c := range y.own {
			y.others[b] -= c
		}
	}
	own, state := interpolate(q, p.Layout, y.own)
	other, otherState := interpolate(q, p.Layout, y.others)
	switch {
	case !(other > 0) || otherState == stats.Saturated:
		return 0, false
	case state == stats.Saturated: // slower by any amount
		return math.Inf(1), true
	}
	return own / other, true
}
