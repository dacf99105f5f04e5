// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"cmp"
	"slices"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// Judge compares every replica of a fleet with the fleet. Not safe for
// concurrent use.
type Judge struct {
	report Report
	pool   fleet.Pool
	own    []uint64
	others []uint64
	ranks  ranks

	fractions []fraction
	values    []float64
	middle    middle
}

// Judge reads one closed frame. The report is valid until the next call.
func (j *Judge) Judge(f *fleet.Frame, o *Options) *Report {
	j.report.reset(o, len(f.Members))
	mixed := engines(f) > 1
	for s, signal := range o.Signals {
		j.latency(f, o, s, f.Index(signal), mixed)
	}
	j.work(f, o)
	tokens := makesTokens(f)
	for i := range f.Members {
		m, r := &f.Members[i], &j.report.Replicas[i]
		r.Identity = m.Identity
		r.Stuck = stuck(f, m, tokens)
		r.State = stateOf(m, r)
		j.report.States[r.State]++
	}
	j.load(f)
	j.report.Coverage = ratio(float64(j.report.States[Judged]), float64(len(f.Members)))
	return &j.report
}

func stateOf(m *fleet.MemberFrame, r *Replica) State {
	switch {
	case m.Unreachable:
		return Unreachable
	case m.Warming:
		return StillWarming
	}
	for i := range r.Latency {
		if r.Latency[i].Ratio.Withheld == Given {
			return Judged
		}
	}
	return AllWithheld
}

// engines counts the engines that observed something in the window.
func engines(f *fleet.Frame) int {
	var known []string
	for _, members := range [2][]fleet.MemberFrame{f.Members, f.Departed} {
		for i := range members {
			if engine := members[i].Identity.Engine; !slices.Contains(known, engine) {
				known = append(known, engine)
			}
		}
	}
	return len(known)
}

// told tells whether anyone in the fleet tells the signal that frames have there.
func told(f *fleet.Frame, in int) bool {
	tells := func(m fleet.MemberFrame) bool { return m.Told[in].Layout != nil }
	return slices.ContainsFunc(f.Members, tells) || slices.ContainsFunc(f.Departed, tells)
}

// latency judges the signal s, which frames have at in: each replica by itself,
// then against the rest.
// Engines measure latencies at different places and weigh them differently, so
// of several none is compared with another, or added to it.
func (j *Judge) latency(f *fleet.Frame, o *Options, s, in int, mixed bool) {
	j.pool.Gather(f, f.Distributions(in))
	quantiles := len(o.Quantiles)
	for i, q := range o.Quantiles {
		at, enough := s*quantiles+i, o.Enough(q)
		total := quantileOf(q, j.pool.Layout, j.pool.Counts, enough)
		j.report.Latency[at] = total.value()
		able, slowest := 0, quantile{withheld: FewReplicas}
		j.middle.reset()
		for m := range f.Members {
			member, replica := &f.Members[m], &j.report.Replicas[m]
			replica.Observations[s] = observations(&member.Told[in])
			own := ownQuantile(member, in, q, enough)
			replica.Latency[at] = Latency{Value: own.value()}
			if own.withheld != Given {
				replica.Latency[at].refuse(own.withheld)
				continue
			}
			able++
			shared := j.comparable(&member.Told[in], q, own)
			slowest = slower(slowest, shared)
			if o.Baseline == Median {
				j.compete(&member.Told[in], q, o.Bounds, shared)
			}
		}
		j.middle.settle()
		j.report.Spread[at] = spread(slowest, total, able, o.MinReplicas)
		switch {
		case !told(f, in):
			j.report.Latency[at], j.report.Spread[at] = withheld(NotReported), withheld(NotReported)
		case mixed:
			j.report.Latency[at], j.report.Spread[at] = withheld(MixedEngines), withheld(MixedEngines)
		}
		for m := range f.Members {
			cell := &j.report.Replicas[m].Latency[at]
			switch {
			case cell.Value.Withheld != Given:
			case mixed:
				cell.refuse(MixedEngines)
			case able < o.MinReplicas:
				cell.refuse(FewReplicas)
			default:
				j.compare(&f.Members[m].Told[in], q, o, cell)
			}
		}
	}
}

// observations is how many observations a replica's quantiles stand on.
func observations(d *fleet.Distribution) Figure {
	switch {
	case d.Layout == nil:
		return withheld(NotReported)
	case d.Unreliable:
		return withheld(Unreliable)
	default:
		return Figure{Value: float64(d.Observations())}
	}
}

// ownQuantile is a replica's own quantile, on its own bucket bounds.
func ownQuantile(m *fleet.MemberFrame, in int, q float64, enough uint64) quantile {
	d := &m.Told[in]
	switch {
	case d.Layout == nil:
		return quantile{withheld: NotReported}
	case m.Warming:
		return quantile{withheld: Warming}
	case d.Unreliable:
		return quantile{withheld: Unreliable}
	case !d.Layout.Bucketed():
		return quantile{withheld: NoBuckets}
	}
	return quantileOf(q, d.Layout, d.Counts, enough)
}

// comparable is a replica's quantile on the bounds that the whole fleet has.
func (j *Judge) comparable(d *fleet.Distribution, q float64, own quantile) quantile {
	if d.Layout == j.pool.Layout {
		return own
	}
	if j.pool.Excludes(d.Layout) {
		return quantile{withheld: NoCommonBounds}
	}
	j.own = j.pool.Regroup(j.own, d)
	return quantileOf(q, j.pool.Layout, j.own, 0)
}

// compete adds a replica's quantile, and its bounds, to those of which the one in
// the middle is looked for.
func (j *Judge) compete(d *fleet.Distribution, q float64, bounds bool, shared quantile) {
	if j.middle.add(shared); bounds && shared.withheld == Given {
		j.own = j.pool.Regroup(j.own, d)
		j.middle.addBounds(j.ranks.bounds(q, j.pool.Layout, j.own))
	}
}

// compare sets the ratio of a replica to its baseline, and the ratio's bounds.
func (j *Judge) compare(d *fleet.Distribution, q float64, o *Options, cell *Latency) {
	if j.pool.Excludes(d.Layout) {
		cell.refuse(NoCommonBounds)
		return
	}
	j.own = j.pool.Regroup(j.own, d)
	own, base := quantileOf(q, j.pool.Layout, j.own, 0), j.middle.quantile
	if o.Baseline != Median {
		base = j.rest(q, o)
	}
	ratio := own.over(base)
	cell.refuse(cmp.Or(ratio.Withheld, NotAsked))
	cell.Ratio = ratio
	if !o.Bounds || ratio.Withheld != Given {
		return
	}
	ownLow, ownHigh := j.ranks.bounds(q, j.pool.Layout, j.own)
	baseLow, baseHigh := j.middle.low, j.middle.high
	if o.Baseline != Median {
		baseLow, baseHigh = j.ranks.bounds(q, j.pool.Layout, j.others)
	}
	cell.LowRatio, cell.HighRatio = ownLow.over(baseHigh), ownHigh.over(baseLow)
}

// rest is the quantile of the fleet, with or without the replica itself.
func (j *Judge) rest(q float64, o *Options) quantile {
	j.others = append(j.others[:0], j.pool.Counts...)
	if o.Baseline == Peers {
		for i, c := range j.own {
			j.others[i] -= c
		}
	}
	return quantileOf(q, j.pool.Layout, j.others, o.Enough(q))
}

// refuse withholds all comparisons.
func (l *Latency) refuse(r Reason) {
	l.Ratio, l.LowRatio, l.HighRatio = withheld(r), withheld(r), withheld(r)
}

// spread is the slowest replica over the whole fleet.
func spread(slowest, total quantile, able, minReplicas int) Figure {
	if able < minReplicas {
		return withheld(FewReplicas)
	}
	return slowest.over(total)
}

// slower is the slower of two quantiles. One beyond the top bound may be the
// slowest by any amount.
func slower(a, b quantile) quantile {
	switch {
	case b.withheld != Given || a.saturated:
		return a
	case a.withheld != Given || b.saturated || b.seconds > a.seconds:
		return b
	}
	return a
}

// ratio divides if it can.
func ratio(a, b float64) Figure {
	if b == 0 {
		return withheld(ZeroBaseline)
	}
	return Figure{Value: a / b}
}
