// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// prefixWays are how engines tell of their prefix caches.
var prefixWays = measures[slices.IndexFunc(measures, func(m Measure) bool { return m.Name == fleet.PrefixHits.String() })].ways

// wayOf is the first way in which all arms that tell a fraction at all do; nil:
// there is none.
func (j *Judge) wayOf(f *fleet.Frame, ways []way) (w *way, told [ArmCount]bool) {
	for i := range ways {
		var tell [ArmCount]bool
		for arm, members := range j.arms {
			tell[arm] = slices.ContainsFunc(members, func(m *fleet.MemberFrame) bool { return ways[i].told(f, m) })
			told[arm] = told[arm] || tell[arm]
		}
		if w == nil && tell[Canary] && tell[Baseline] {
			w = &ways[i]
		}
	}
	return w, told
}

// told tells whether a replica tells both counts of a fraction, and that it counts
// what it may: no more parts than there is of the whole.
func (w *way) told(f *fleet.Frame, m *fleet.MemberFrame) bool {
	part, whole := w.of(f, m)
	return part != nil && whole != nil && part.Observations() <= whole.Observations()
}

func (w *way) of(f *fleet.Frame, m *fleet.MemberFrame) (part, whole *fleet.Distribution) {
	return countOf(f, m, w.part), countOf(f, m, w.whole)
}

// sum adds up what members tell.
func (w *way) sum(f *fleet.Frame, members []*fleet.MemberFrame) (part, whole uint64) {
	for _, m := range members {
		if w.told(f, m) {
			p, q := w.of(f, m)
			part, whole = part+p.Observations(), whole+q.Observations()
		}
	}
	return part, whole
}

// countOf is what a replica tells of a counter; nil: nothing that can be counted.
func countOf(f *fleet.Frame, m *fleet.MemberFrame, s fleet.Signal) *fleet.Distribution {
	at := f.Index(s)
	if at < 0 || m.Told[at].Layout == nil || m.Told[at].Unreliable {
		return nil
	}
	return &m.Told[at]
}

// parts reads a fraction: the counts of each arm are what is no part, and the
// parts.
func (j *Judge) parts(of *record, m *Measure, f *fleet.Frame) {
	t := &j.tape
	w, told := j.wayOf(f, m.ways)
	t.told, t.inCommon = told, w != nil
	if w == nil {
		return
	}
	if len(of.Bounds) == 0 {
		of.Bounds = make([]boundary, 1)
	}
	t.clump = j.clumpOf(f, w.whole)
	for arm, members := range j.arms {
		part, whole := w.sum(f, members)
		t.counts[arm] = append(t.counts[arm], whole-part, part)
	}
	t.cut()
	for _, m := range j.arms[Baseline] {
		if w.told(f, m) {
			part, whole := w.of(f, m)
			t.spread(func(int) float64 { return float64(part.Observations()) }, float64(whole.Observations()))
		}
	}
}

// mostReasons bounds the reasons that are told apart; others are not counted.
const mostReasons = 16

// reasons reads why requests ended.
func (j *Judge) reasons(of *record) {
	t := &j.tape
	ended := make(map[string]uint64)
	for arm, members := range j.arms {
		for _, m := range members {
			t.told[arm] = t.told[arm] || m.Reasons != nil
			for _, r := range m.Reasons {
				ended[r.Reason] += r.Count
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(ended), func(a, b string) int { // where there are too many, the most frequent
		return cmp.Or(cmp.Compare(ended[b], ended[a]), cmp.Compare(a, b))
	})
	for _, name := range names {
		of.reason(name)
	}
	t.inCommon = t.told[Canary] && t.told[Baseline]
	for arm, members := range j.arms {
		t.counts[arm] = grown(t.counts[arm], len(of.Bounds))
		for _, m := range members {
			for i, n := range of.reasonsOf(m) {
				t.counts[arm][i] += n
			}
		}
		for _, n := range t.counts[arm] {
			t.beyond[arm] = append(t.beyond[arm], float64(n))
		}
	}
	t.total()
	for _, m := range j.arms[Baseline] {
		own := of.reasonsOf(m)
		t.spread(func(boundary int) float64 { return float64(own[boundary]) }, float64(sum(own)))
	}
}

// reason makes room for a reason.
func (r *record) reason(name string) {
	if len(r.Bounds) < mostReasons && !slices.ContainsFunc(r.Bounds, func(b boundary) bool { return b.Name == name }) {
		r.Bounds = append(r.Bounds, boundary{Name: name})
	}
}

// reasonsOf are a replica's counts by the record's reasons.
func (r *record) reasonsOf(m *fleet.MemberFrame) []uint64 {
	counts := make([]uint64, len(r.Bounds))
	for _, c := range m.Reasons {
		if i := slices.IndexFunc(r.Bounds, func(b boundary) bool { return b.Name == c.Reason }); i >= 0 {
			counts[i] += c.Count
		}
	}
	return counts
}

// rates is a level over all panes: sums of what the arms made, and of its products.
type rates struct {
	Panes    float64
	Sums     [ArmCount]float64
	Products [ArmCount][ArmCount]float64
}

// rates reads a level: how much one replica makes a second. A pane is one
// observation, of which arm makes more.
func (j *Judge) rates(of *record, m *Measure, f *fleet.Frame) {
	t := &j.tape
	for arm, members := range j.arms {
		tell := 0
		for _, member := range members {
			if d := countOf(f, member, m.ways[0].part); d != nil {
				t.rates[arm] += float64(d.Observations())
				tell++
			}
		}
		t.told[arm] = tell > 0
		if tell > 0 {
			t.rates[arm] /= float64(tell) * j.options.Pane.Seconds()
		}
	}
	t.inCommon = t.told[Canary] && t.told[Baseline]
	if !t.inCommon || t.rates[Baseline] == 0 {
		return
	}
	if len(of.Bounds) == 0 {
		of.Bounds = make([]boundary, 1)
	}
	of.Rates.add(t.rates)
	for arm := range t.counts {
		t.counts[arm], t.n[arm] = append(t.counts[arm], 1), 1
	}
}

// add adds one pane.
func (r *rates) add(pane [ArmCount]float64) {
	r.Panes++
	for a, v := range pane {
		r.Sums[a] += v
		for b, w := range pane {
			r.Products[a][b] += v * w
		}
	}
}

// deviation is how far the canary was from so many times its baseline, root of the
// mean square over panes.
func (r *rates) deviation(ratio float64) float64 {
	p := &r.Products
	squares := p[Canary][Canary] - 2*ratio*p[Canary][Baseline] + ratio*ratio*p[Baseline][Baseline]
	return math.Sqrt(max(0, squares) / (r.Panes - 1))
}
