// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"math"
	"slices"

	"github.com/llmfleet/llmfleet/internal/stats"
)

// record is what is remembered of one measure of a comparison.
type record struct {
	Panes   int // that counted
	Told    [ArmCount]bool
	Apart   bool // both arms tell it, but nothing that can be compared
	Verdict Verdict
	Bounds  []boundary
	// Shift is the evidence of all buckets of a distribution together, Mean that of
	// its means.
	Shift, Mean evidence

	Counts [ArmCount][]uint64 // of all panes, as tape has them
	Sums   [ArmCount]float64  // NaN if somebody tells none
	Rates  rates              // of a level
	Clump  float64            // that of the newest pane
	// Held are the counts of panes in which only one arm observed something, where
	// both do so too seldom to do it in one pane.
	Held     [ArmCount][]uint64
	HeldSums [ArmCount]float64
}

// evidence is what is won in one way.
type evidence struct {
	// Fail is evidence against "no worse than tolerated", Pass against "as much
	// worse as a pass rules out": by the Side on which the canary's excess lies.
	Fail, Pass [2]stats.EProcess
	// Squares over Weight is how much further replicas lie apart than chance puts
	// them, decayed.
	Squares, Weight float64
}

// boundary is where observations are split: whatever moves them, somewhere more of
// them lie beyond.
type boundary struct {
	// Value is the upper bound of a bucket; Name a reason why requests end.
	Value    float64
	Name     string
	Evidence evidence
}

// grids are the effects that evidence is gathered for: log odds ratios.
type grids struct{ fail, pass stats.Grid }

// gridsOf are those of a kind of measure. Of shares there may be few events, all of
// one arm; of a level there is one observation a pane.
var gridsOf = [...]grids{
	distribution: {logs(1.25, 1.6, 3), logs(1/1.25, 1/1.6, 1/3.)},
	fraction:     {logs(1.3, 2, 4, 10), logs(1/1.3, 1/2., 1/4.)},
	categories:   {logs(1.3, 2, 4, 10), logs(1/1.3, 1/2., 1/4.)},
	level:        {logs(1.6, 3, 19), logs(1/1.6, 1/3., 1/19.)},
}

// shifts are the effects that evidence of all buckets together is gathered for: by
// how many standard deviations of its logarithm a distribution is shifted, beyond
// what is tolerated.
var shifts = grids{fail: stats.Grid{0.08, 0.2, 0.7}, pass: stats.Grid{-0.08, -0.2, -0.7}}

func logs(ratios ...float64) (g stats.Grid) {
	for _, r := range ratios {
		g = append(g, math.Log(r))
	}
	return g
}

// sides are those on which a canary would be worse at a boundary. That fewer
// requests end by themselves is for the worse; that more do for any other reason.
func (m *Measure) sides(b *boundary) (from, to Side) {
	switch {
	case m.kind == categories && slices.Contains(ended, b.Name), m.Worse == Lower:
		return Lower, Lower
	case m.Worse == Either:
		return Higher, Lower
	}
	return Higher, Higher
}

// ended are the reasons of requests that came to their own end.
var ended = []string{"stop", "stop_sequence", "end_turn", "eos_token", "tool_calls"}

// advance takes a pane in which both arms observed something.
func (r *record) advance(m *Measure, t *tape, o *Options) {
	weight := stats.StartWeight(r.Panes)
	r.Panes++
	r.Clump = t.clump
	if m.kind == distribution {
		r.shift(m, t, o, weight)
		r.mean(m, t, o, weight)
	}
	for i := range r.Bounds {
		b := &r.Bounds[i]
		won := &b.Evidence
		if i < len(t.squares) {
			won.learn(t.squares[i], t.clump)
		}
		from, to := m.sides(b)
		for side := from; side <= to; side++ {
			s := t.split(m, b, i, side, o)
			dispersion := won.dispersion(t.clump)
			won.Fail[side].Update(gridsOf[m.kind].fail, s.fail.share, s.fail.beyond, s.n, dispersion, weight)
			won.Pass[side].Update(gridsOf[m.kind].pass, s.pass.share, s.pass.beyond, s.n, dispersion, weight)
		}
	}
	for arm := range r.Counts {
		r.Counts[arm] = grown(r.Counts[arm], len(t.counts[arm]))
		for i, n := range t.counts[arm] {
			r.Counts[arm][i] += n
		}
		r.Sums[arm] += t.sums[arm]
	}
}

func grown(counts []uint64, n int) []uint64 {
	for len(counts) < n {
		counts = append(counts, 0)
	}
	return counts
}

// split is one boundary of one pane: how many of the canary's n observations lie
// beyond it, for each verdict, and which share of them would if the canary were
// just as much worse as the null says.
type split struct {
	n          float64
	fail, pass struct{ beyond, share float64 }
}

// split compares the arms on one side of a boundary. The null is that the canary,
// made so many times better, is interchangeable with its baseline: then so many of
// both together lie beyond.
func (t *tape) split(m *Measure, b *boundary, i int, side Side, o *Options) (s split) {
	if m.kind == level {
		return t.splitLevel(side, o.Tolerance, o.PassTolerance)
	}
	var fail, pass float64 // shares of the baseline, made worse
	if m.kind == distribution {
		_, fail = t.shifted(b.Value, side, m.tolerance(o))
		pass, _ = t.shifted(b.Value, side, o.PassTolerance)
	} else {
		share := t.beyond[Baseline][i] / t.n[Baseline]
		if side == Lower {
			share = 1 - share
		}
		fail = min(1, share*o.Tolerance)
		pass = min(1, max(share*o.PassTolerance, share+negligible))
	}
	x, n := t.beyond[Canary][i], t.n[Canary]
	if side == Lower {
		x = n - x
	}
	base := t.n[Baseline]
	s.n = n
	s.fail.beyond, s.fail.share = x, (x+base*fail)/(n+base)
	s.pass.beyond, s.pass.share = x, (x+base*pass)/(n+base)
	return s
}

// splitLevel is the split of a level, of which a pane is one observation: whether
// the canary's is beyond that of a baseline so many times worse. If it is just so much
// worse, it is in every second pane.
func (t *tape) splitLevel(side Side, fail, pass float64) (s split) {
	ratio := t.rates[Canary] / t.rates[Baseline]
	beyond := func(times float64) float64 {
		if side == Higher && ratio > times || side == Lower && ratio*times < 1 {
			return 1
		}
		return 0
	}
	s.n = 1
	s.fail.beyond, s.fail.share = beyond(fail), 0.5
	s.pass.beyond, s.pass.share = beyond(pass), 0.5
	return s
}

// tolerance is how many times worse a canary may be. What it is asked is not of its
// making, and differs between the arms by chance alone, or next to it.
func (m *Measure) tolerance(o *Options) float64 {
	if m.guards() {
		return min(o.Tolerance, guardTolerance)
	}
	return o.Tolerance
}

const guardTolerance = 1.03

// negligible is a difference between two shares that is none: a pass rules out
// what is larger, where a multiple of next to nothing would take forever.
const negligible = 0.01

// shifted is the share of the baseline's observations that would lie beyond a
// value, if they were so many times worse: between low and high, where buckets do
// not tell.
func (t *tape) shifted(value float64, side Side, times float64) (low, high float64) {
	if side == Higher {
		return t.survival.Exceeding(value / times)
	}
	low, high = t.survival.Exceeding(value * times)
	return 1 - high, 1 - low
}

// learn takes a pane's squares of the baseline's replicas. Of fewer than three
// nothing can be learned.
func (e *evidence) learn(squares []float64, clump float64) {
	replicas := float64(len(squares))
	if replicas < fewReplicas {
		return
	}
	most := mostScatter * e.dispersion(clump)
	sum := 0.0
	for _, square := range squares {
		sum += min(square, most)
	}
	e.Squares = dispersionDecay*e.Squares + sum*replicas/(replicas-1)
	e.Weight = dispersionDecay*e.Weight + replicas
}

// mostScatter is how many times the usual square counts, that of four standard
// deviations: more is no scatter, but a replica that is ill.
const mostScatter = 16

// dispersionDecay is what remains of a pane's weight after the next.
const dispersionDecay = 0.98

// dispersion is by how much more than chance replicas differ. What is known before
// any of them is compared with others is that observations of one request may be
// all alike; it fades.
func (e *evidence) dispersion(clump float64) float64 {
	return max(1, (e.Squares+prior*clump)/(e.Weight+prior))
}

// prior is how many replicas' squares what is known before is worth.
const prior = 10

// of is the e-value of one kind of evidence, on one side.
func (e *evidence) of(side Side, g grids, unstarted float64) (fail, pass float64) {
	return e.Fail[side].E(g.fail, unstarted), e.Pass[side].E(g.pass, unstarted)
}

// Weights of the ways in which a distribution's evidence is won: of all buckets
// together, of single boundaries, which finds what moves a tail, and of means, which
// tells something where buckets are too wide to.
const (
	ofShift  = 4.0
	ofBounds = 1.0
	ofMean   = 1.0
)

// e are the e-values against "the canary is no worse than tolerated" and against "it
// is as much worse as a pass rules out". Of the latter, where it may be worse in
// several ways, all of them have to be ruled out.
func (r *record) e(m *Measure) (fail, pass float64) {
	unstarted := stats.Unstarted(r.Panes - 1)
	var all float64
	var passes, n [2]float64
	pass = math.Inf(1)
	for i := range r.Bounds {
		b := &r.Bounds[i]
		from, to := m.sides(b)
		for side := from; side <= to; side++ {
			f, p := b.Evidence.of(side, gridsOf[m.kind], unstarted)
			fail, all = fail+f, all+1
			passes[side], n[side] = passes[side]+p, n[side]+1
			if m.kind == categories {
				pass = min(pass, p)
			}
		}
	}
	if all == 0 {
		return 1, 1
	}
	fail /= all
	if m.kind == categories {
		return fail, pass
	}
	fails, sides := 0.0, 0.0
	for side := range n {
		if n[side] == 0 {
			continue
		}
		p := passes[side] / n[side]
		if m.kind == distribution {
			f, shifted := r.Shift.of(Side(side), shifts, unstarted)
			fails, p, all = fails+ofShift*f, ofShift*shifted+ofBounds*p, ofShift+ofBounds
			if r.summed() {
				f, means := r.Mean.of(Side(side), gridsOf[level], unstarted)
				fails, p, all = fails+ofMean*f, p+ofMean*means, all+ofMean
			}
			p /= all
			sides++
		}
		pass = min(pass, p)
	}
	if sides > 0 {
		fail = (fails/sides + ofBounds*fail) / all
	}
	return fail, pass
}

// furthest is the boundary at which the evidence of a fail is strongest; false:
// there is none at any.
func (r *record) furthest(m *Measure) (at int, ok bool) {
	most := 1.0
	for i := range r.Bounds {
		won := &r.Bounds[i].Evidence
		for side := range won.Fail {
			if e := won.Fail[side].E(gridsOf[m.kind].fail, 0); e > most {
				at, most, ok = i, e, true
			}
		}
	}
	return at, ok
}

// drop removes a boundary that an arm does not have any more.
func (r *record) drop(i int) {
	r.Bounds = slices.Delete(r.Bounds, i, i+1)
	for _, counts := range [][ArmCount][]uint64{r.Counts, r.Held} {
		for arm := range counts {
			if i+1 < len(counts[arm]) {
				counts[arm][i+1] += counts[arm][i]
			}
		}
	}
	for arm := range r.Counts {
		r.Counts[arm] = dropped(r.Counts[arm], i)
		r.Held[arm] = dropped(r.Held[arm], i)
	}
}

func dropped(counts []uint64, i int) []uint64 {
	if i >= len(counts) {
		return counts
	}
	return slices.Delete(counts, i, i+1)
}
