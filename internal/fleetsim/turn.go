// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"slices"
	"sort"
)

// turn is a moment at which an engine changes its behaviour.
type turn struct {
	at    float64
	apply func(*engine)
}

// turns lists, in order of time, what the faults do to one replica.
func turns(faults []Fault, fleet *Fleet, replica int) []turn {
	var all []turn
	for i := range faults {
		if f := &faults[i]; f.strikes(fleet, replica) && !f.onlyRoutes() {
			all = append(all, f.turns()...)
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].at < all[j].at })
	return all
}

// turns of one fault: its beginning and, if it ends, its end.
func (f *Fault) turns() []turn {
	begin, end := f.effect()
	all := []turn{{at: f.From.Seconds(), apply: begin}}
	if f.To != 0 && end != nil {
		all = append(all, turn{at: f.To.Seconds(), apply: end})
	}
	return all
}

// effect is what a fault does to an engine when it begins and, unless that is
// nil, when it ends.
func (f *Fault) effect() (begin, end func(*engine)) {
	switch f.Kind {
	case Slow:
		return slowdown(f.Factor)
	case Hung:
		return (*engine).hang, (*engine).resume
	case Errors:
		return func(e *engine) { e.failures = append(e.failures, f.Share) }, func(e *engine) { e.failures = without(e.failures, f.Share) }
	case Restart:
		if f.To == 0 {
			return (*engine).restart, nil
		}
		return (*engine).shutDown, (*engine).boot
	case NewRevision:
		return f.rollOut, f.rollBack
	case ColdCache:
		return f.coldCache, nil
	case Throttle:
		return f.throttle()
	case XID:
		return func(e *engine) { e.gpu.xid = f.Code }, nil
	case LinkErrors:
		return func(e *engine) { e.gpu.rise(e.now, f.Mode, f.Rate) }, func(e *engine) { e.gpu.rise(e.now, f.Mode, -f.Rate) }
	case Gap:
		g := &gap{status: f.gapStatus(), every: f.Every}
		return func(e *engine) { e.gaps = append(e.gaps, g) }, func(e *engine) { e.gaps = without(e.gaps, g) }
	case StaleSeries:
		return func(e *engine) { e.suspend(f.Series, f.Mode) }, func(e *engine) { delete(e.stale, f.Series) }
	default: // NewBounds
		return f.newBounds, nil
	}
}

func slowdown(factor float64) (begin, end func(*engine)) {
	return func(e *engine) { e.factors = append(e.factors, factor) }, func(e *engine) { e.factors = without(e.factors, factor) }
}

func (f *Fault) coldCache(e *engine) {
	if f.Mode == Reboot {
		e.restart()
	}
	e.cold, e.warm = f.From.Seconds(), f.To.Seconds()
}

func (f *Fault) throttle() (begin, end func(*engine)) {
	slow, normal := slowdown(f.Factor)
	begin = func(e *engine) {
		slow(e)
		e.gpu.throttle(e.now, f.Mode, f.Factor)
	}
	end = func(e *engine) {
		normal(e)
		e.gpu.release(e.now, f.Mode, f.Factor)
	}
	return begin, end
}

func (f *Fault) newBounds(e *engine) {
	e.bounds[e.dialect.find(f.Series).series[0].sample] = f.Bounds
	e.restart()
}

// gapStatus is what a scrape gets in a gap.
func (f *Fault) gapStatus() int {
	if f.Status == 0 && f.Mode == TimeOut {
		return TimedOut
	}
	return f.Status
}

// gap is a gap fault in force.
type gap struct {
	status, every int
	scrapes       int
}

// strikes counts a scrape and tells whether it is one that gets no page.
func (g *gap) strikes() bool {
	g.scrapes++
	return g.scrapes%g.every == 0
}

// without removes one element equal to v.
func without[T comparable](all []T, v T) []T {
	i := slices.Index(all, v)
	return slices.Delete(all, i, i+1)
}
