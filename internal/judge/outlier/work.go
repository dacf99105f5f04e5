// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"cmp"
	"slices"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/stats"
)

// Work is something that replicas do, beside how fast: one sum over another, or
// a sum a second of the window.
type Work struct {
	// Signal is its name in the attribute `signal`.
	Signal    fleet.Signal
	ways      []way // of which the first that a replica tells counts
	perSecond bool  // there is no whole but the time
}

// way is one way in which engines tell a work. Part and whole are the same if
// one histogram tells both: the sum of its observations, and their number.
type way struct{ part, whole fleet.Signal }

const (
	errorRatio = iota
	prefixHits
	generationTokens
	preemptions
	promptLength
	outputLength
	works
)

// Works are the works that are judged, as Report.Work and Replica.Work have
// them: the shares of requests that failed and of prompt tokens that were found
// in the prefix cache, output tokens and preemptions a second, and the mean
// lengths of a prompt and of an output.
var Works = [works]Work{
	errorRatio: {Signal: fleet.Errors, ways: []way{{fleet.Errors, fleet.Finished}}},
	prefixHits: {Signal: fleet.PrefixHits, ways: []way{
		{fleet.PrefixHits, fleet.PrefixQueries},
		{fleet.PrefixBlockHits, fleet.PrefixBlockQueries},
	}},
	generationTokens: {Signal: fleet.GenerationTokens, ways: []way{{part: fleet.GenerationTokens}}, perSecond: true},
	preemptions:      {Signal: fleet.Preemptions, ways: []way{{part: fleet.Preemptions}}, perSecond: true},
	promptLength: {Signal: fleet.PromptLength, ways: []way{
		{fleet.PromptLength, fleet.PromptLength},
		{fleet.PromptTokens, fleet.Finished},
	}},
	outputLength: {Signal: fleet.OutputLength, ways: []way{
		{fleet.OutputLength, fleet.OutputLength},
		{fleet.GenerationTokens, fleet.Finished},
	}},
}

// Asks are the signals that the work is made of. A work is judged if the frame
// tells those of one way.
func (w *Work) Asks() (all []fleet.Signal) {
	for _, way := range w.ways {
		all = append(all, way.part)
		if !w.perSecond && way.whole != way.part {
			all = append(all, way.whole)
		}
	}
	return all
}

// asked tells whether the frame can tell the work.
func (w *Work) asked(f *fleet.Frame) bool {
	return slices.ContainsFunc(w.ways, func(way way) bool {
		return f.Index(way.part) >= 0 && (w.perSecond || f.Index(way.whole) >= 0)
	})
}

// of is what one replica told of the work, over the window or over the alarm's
// pane.
func (w *Work) of(f *fleet.Frame, told []fleet.Distribution) fraction {
	for _, way := range w.ways {
		part, why := find(f, told, way.part)
		if why != Given {
			if why == NotReported {
				continue
			}
			return fraction{withheld: why}
		}
		x := fraction{part: float64(part.Observations()), unit: way.part.Unit()}
		if w.perSecond {
			return x
		}
		whole, why := find(f, told, way.whole)
		switch {
		case why == NotReported || whole == part && !part.SumKnown:
			continue
		case why != Given:
			return fraction{withheld: why}
		}
		x.whole = float64(whole.Observations())
		switch {
		case whole == part:
			x.part = part.Sum
		case way.whole.Unit() == x.unit && x.part > x.whole: // more than all
			return fraction{withheld: Implausible}
		}
		return x
	}
	return fraction{withheld: NotReported}
}

// find is what a replica told of a signal. What was not asked for is not told.
func find(f *fleet.Frame, told []fleet.Distribution, s fleet.Signal) (*fleet.Distribution, Reason) {
	i := f.Index(s)
	switch {
	case i < 0 || i >= len(told) || told[i].Layout == nil:
		return nil, NotReported
	case told[i].Unreliable:
		return nil, Unreliable
	}
	return &told[i], Given
}

// errorsOf are the requests of one replica that failed, and all that ended; told
// are its distributions, over the window or over the alarm's pane.
func errorsOf(f *fleet.Frame, told []fleet.Distribution) (failed, all uint64, known bool) {
	x := Works[errorRatio].of(f, told)
	return uint64(x.part), uint64(x.whole), x.withheld == Given
}

// hitRatio is what the prefix caches of some replicas held of what was looked up.
func hitRatio(f *fleet.Frame, members []fleet.MemberFrame) Figure {
	sum := fraction{withheld: NotReported}
	for i := range members {
		sum.add(Works[prefixHits].of(f, members[i].Told))
	}
	return sum.figure()
}

// fraction is one sum over another, of one replica or of several.
type fraction struct {
	part, whole float64
	unit        string // of the part
	withheld    Reason
}

// add adds what is told. Tokens and blocks make no sum.
func (x *fraction) add(o fraction) {
	switch {
	case o.withheld != Given || x.withheld == MixedUnits:
	case x.withheld != Given:
		*x = o
	case x.unit != o.unit:
		*x = fraction{withheld: MixedUnits}
	default:
		x.part += o.part
		x.whole += o.whole
	}
}

// without is what is left of a sum less what was added to it.
func (x fraction) without(o fraction) fraction {
	x.part -= o.part
	x.whole -= o.whole
	return x
}

func (x fraction) figure() Figure {
	if x.withheld != Given {
		return withheld(x.withheld)
	}
	return ratio(x.part, x.whole)
}

// work judges all that replicas do beside being fast.
func (j *Judge) work(f *fleet.Frame, o *Options) {
	for at := range Works {
		if o.Work && Works[at].asked(f) {
			j.spreadOf(f, o, at)
			continue
		}
		j.report.Work[at] = withheld(NotAsked)
		for i := range j.report.Replicas {
			r := &j.report.Replicas[i]
			r.Work[at], r.WorkRatio[at] = withheld(NotAsked), withheld(NotAsked)
		}
	}
}

// spreadOf judges one work: each replica by itself, then against the rest. What
// is counted a second is compared with the replicas that are there, each for the
// whole window; the fleet's is a sum, of whoever was there and for how long.
func (j *Judge) spreadOf(f *fleet.Frame, o *Options, at int) {
	w, window := &Works[at], o.Window.Seconds()
	total, present := fraction{withheld: NotReported}, fraction{withheld: NotReported}
	j.fractions, j.values = j.fractions[:0], j.values[:0]
	for i := range f.Members {
		own := w.of(f, f.Members[i].Told)
		if w.perSecond {
			own.whole = window
		}
		total.add(own)
		if why := w.unknown(&f.Members[i]); own.withheld == Given && why != Given {
			own = fraction{withheld: why}
		}
		present.add(own)
		figure := own.figure()
		if figure.Withheld == Given {
			j.values = append(j.values, figure.Value)
		}
		j.fractions = append(j.fractions, own)
		j.report.Replicas[i].Work[at] = figure
	}
	for i := range f.Departed {
		total.add(w.of(f, f.Departed[i].Told))
	}
	base := total
	if w.perSecond {
		base, total.whole = present, window
	}
	j.report.Work[at] = total.figure()
	j.relate(o, at, base)
}

// relate sets every replica's ratio to what it is compared to: to the replica in
// the middle, or to the base with or without itself.
func (j *Judge) relate(o *Options, at int, base fraction) {
	able, middle := len(j.values), stats.Median(j.values)
	for i := range j.report.Replicas {
		r := &j.report.Replicas[i]
		own, over := r.Work[at], &r.WorkRatio[at]
		switch why := cmp.Or(own.Withheld, base.withheld); {
		case why != Given:
			*over = withheld(why)
		case able < o.MinReplicas:
			*over = withheld(FewReplicas)
		case o.Baseline == Median:
			*over = ratio(own.Value, middle)
		case o.Baseline == Peers:
			*over = own.over(base.without(j.fractions[i]).figure())
		default:
			*over = own.over(base.figure())
		}
	}
}

// unknown is why nothing can be said yet of what a replica does, or any more: a
// rate is one of the whole window, the last part of which an unreachable replica
// has not told.
func (w *Work) unknown(m *fleet.MemberFrame) Reason {
	switch {
	case m.Warming:
		return Warming
	case m.Unreachable && w.perSecond:
		return NotReported
	}
	return Given
}
