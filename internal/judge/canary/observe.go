// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"iter"
	"math"
	"slices"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// observe adds what a pane tells of one measure.
func (j *Judge) observe(r *rollout, of *record, m *Measure, f *fleet.Frame, quality []*fleet.Frame) {
	t := &j.tape
	t.begin()
	switch m.kind {
	case distribution:
		if m.Family == Quality {
			f = j.listen(r, m, quality)
		} else {
			t.clump = j.clumpOf(f, m.ways[0].part)
			j.gather(f.Index(m.ways[0].part))
		}
		if f != nil {
			j.buckets(of, f)
		}
	case fraction:
		j.parts(of, m, f)
	case categories:
		j.reasons(of)
	case level:
		j.rates(of, m, f)
	}
	for arm, told := range t.told {
		of.Told[arm] = of.Told[arm] || told
	}
	if t.told[Canary] && t.told[Baseline] {
		of.Apart = !t.inCommon
	}
	if (m.Family != Quality || of.hold(t)) && t.observed() {
		of.advance(m, t, &j.options)
	}
}

// clumpOf is how many observations of a signal one request makes. While requests go
// on and none ends, all may be of one.
func (j *Judge) clumpOf(f *fleet.Frame, s fleet.Signal) float64 {
	var observations, requests uint64
	counted := false
	for _, members := range j.arms {
		n, _ := observationsOf(f, members, s)
		ended, told := observationsOf(f, members, fleet.Finished)
		observations, requests, counted = observations+n, requests+ended, counted || told
	}
	if !counted {
		return 1
	}
	return max(1, float64(observations)/float64(max(1, requests)))
}

// gather finds what the arms tell of the signal with that index.
func (j *Judge) gather(signal int) {
	if signal < 0 {
		return
	}
	for arm, members := range j.arms {
		j.tape.among[arm] = slices.AppendSeq(j.tape.among[arm], tellers(members, signal))
	}
}

// listen finds what is told of the quality of the arms' answers, and by a frame of
// whose kind.
func (j *Judge) listen(r *rollout, m *Measure, quality []*fleet.Frame) (kind *fleet.Frame) {
	for _, f := range quality {
		signal := f.Index(m.ways[0].part)
		if signal < 0 {
			continue
		}
		kind = f
		for _, members := range [][]fleet.MemberFrame{f.Members, f.Departed} { // who tells in bursts has often departed
			for i := range members {
				member := &members[i]
				if arm, ok := r.armOf(member.Identity, &j.options); ok {
					j.tape.among[arm] = slices.AppendSeq(j.tape.among[arm], tellers([]*fleet.MemberFrame{member}, signal))
				}
			}
		}
	}
	return kind
}

// buckets reads histograms: on the boundaries of the record, as far as both arms
// still have them.
func (j *Judge) buckets(of *record, f *fleet.Frame) {
	t := &j.tape
	t.told = [ArmCount]bool{len(t.among[Canary]) > 0, len(t.among[Baseline]) > 0}
	j.pool.Gather(f, t.countable())
	if len(j.pool.Counts) == 0 || !j.pool.Layout.Bucketed() {
		t.inCommon = !slices.ContainsFunc(slices.Concat(t.among[:]...), func(d *fleet.Distribution) bool { return d.Observations() > 0 })
		return
	}
	t.bounds = j.pool.Layout.UpperBounds(t.bounds[:0])
	of.align(j.pool.Layout, t.bounds)
	values := of.values()
	var apart [ArmCount]bool
	for arm := range t.counts {
		t.counts[arm] = grown(t.counts[arm], len(values)+1)
		for _, d := range t.among[arm] {
			if !j.place(d, values) {
				apart[arm] = apart[arm] || d.Observations() > 0
				continue
			}
			for i, n := range t.own {
				t.counts[arm][i] += n
			}
			t.sums[arm] += sumOf(d)
		}
	}
	t.cut()
	t.inCommon = len(values) > 0 && !(apart[Canary] && t.n[Canary] == 0) && !(apart[Baseline] && t.n[Baseline] == 0)
	t.survival.Measure(values, t.counts[Baseline])
	mean, variance := t.scored()
	for _, d := range t.among[Baseline] {
		if j.place(d, values) {
			t.scatterOf(mean, variance)
			n := float64(sum(t.own))
			t.spread(func(boundary int) float64 { return float64(sum(t.own[boundary+1:])) }, n)
		}
	}
}

// countable yields what both arms told that has buckets and observations.
func (t *tape) countable() iter.Seq[*fleet.Distribution] {
	return func(yield func(*fleet.Distribution) bool) {
		for _, among := range t.among {
			for _, d := range among {
				if d.Layout.Bucketed() && d.Observations() > 0 && !yield(d) {
					return
				}
			}
		}
	}
}

// place counts one distribution into the buckets between the values; false: it has
// no such bounds.
func (j *Judge) place(d *fleet.Distribution, values []float64) bool {
	t := &j.tape
	if !d.Layout.Bucketed() || j.pool.Excludes(d.Layout) {
		return false
	}
	if d.Observations() == 0 {
		t.own = append(t.own[:0], make([]uint64, len(values)+1)...)
		return true
	}
	counts := j.pool.Regroup(nil, d)
	t.own = slices.Grow(t.own[:0], len(values)+1)[:len(values)+1]
	clear(t.own)
	i := 0
	for b, n := range counts {
		for i < len(values) && (b >= len(t.bounds) || t.bounds[b] > values[i]) {
			i++
		}
		t.own[i] += n
	}
	return true
}

// sumOf is the sum of a distribution's observations, if it is told.
func sumOf(d *fleet.Distribution) float64 {
	switch {
	case d.Observations() == 0:
		return 0
	case !d.SumKnown:
		return math.NaN()
	}
	return d.Sum
}

// mostBoundaries bounds what is remembered of a measure.
const mostBoundaries = 32

// align drops the boundaries that a pane's layout lacks. The first layout is where
// they come from: every bound, or so many as may be.
func (r *record) align(layout *window.Layout, bounds []float64) {
	e, exponential := layout.Exponential()
	if len(r.Bounds) == 0 {
		*r = record{Verdict: r.Verdict, Told: r.Told}
		step := 1
		for len(bounds) > mostBoundaries*step {
			step *= 2
		}
		for i, v := range bounds {
			// Of exponential buckets those bounds that stay when they are merged.
			if (i+e.First)%step == 0 {
				r.Bounds = append(r.Bounds, boundary{Value: v})
			}
		}
		return
	}
	for i, b := range slices.Backward(r.Bounds) {
		v := b.Value
		_, there := slices.BinarySearch(bounds, v)
		outside := exponential && (v < bounds[0] || v > bounds[len(bounds)-1])
		if !there && !outside {
			r.drop(i)
		}
	}
}

// values are those of the boundaries.
func (r *record) values() []float64 {
	values := make([]float64, len(r.Bounds))
	for i := range r.Bounds {
		values[i] = r.Bounds[i].Value
	}
	return values
}

// hold adds what was held back to a pane; false: one of the arms still has no
// observations, and the pane is held back as well.
func (r *record) hold(t *tape) bool {
	for arm := range t.counts {
		t.counts[arm] = grown(t.counts[arm], len(r.Held[arm]))
		for i, n := range r.Held[arm] {
			t.counts[arm][i] += n
		}
		t.sums[arm] += r.HeldSums[arm]
		t.beyond[arm] = t.beyond[arm][:0]
	}
	t.cut()
	t.squares, t.scatter = t.squares[:0], t.scatter[:0]
	if t.observed() {
		t.survival.Measure(r.values(), t.counts[Baseline])
		r.Held, r.HeldSums = [ArmCount][]uint64{}, [ArmCount]float64{}
		return true
	}
	for arm := range t.counts {
		r.Held[arm], r.HeldSums[arm] = slices.Clone(t.counts[arm]), t.sums[arm]
	}
	return false
}
