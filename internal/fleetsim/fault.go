// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"net/http"
	"slices"
	"sort"
	"time"
)

// FaultKind names what goes wrong.
type FaultKind string

// The faults a scenario may inject.
const (
	// Slow makes every step Factor times as long.
	Slow FaultKind = "slow"
	// Hung accepts requests and makes no tokens; the page answers.
	Hung FaultKind = "hung"
	// Restart replaces the process: counters and process_start_time_seconds
	// begin anew, requests on board are lost. From From to To it is down.
	Restart FaultKind = "restart"
	// Gap leaves the page without an answer while the engine works on.
	Gap FaultKind = "gap"
	// StaleSeries freezes the family Series at its value, or lets it vanish,
	// while the rest of the page goes on.
	StaleSeries FaultKind = "stale_series"
	// NewBounds restarts the engine as an upgrade does: the histogram Series
	// comes back with Bounds.
	NewBounds FaultKind = "new_bounds"
)

// StaleMode says what a stale series looks like.
type StaleMode string

// The ways a series goes stale.
const (
	Freeze StaleMode = "freeze"
	Vanish StaleMode = "vanish"
)

// Fault strikes some replicas of one fleet.
type Fault struct {
	Kind FaultKind `yaml:"kind"`
	// Fleet is the name of the fleet. Default: the only one.
	Fleet string `yaml:"fleet"`
	// Replicas are the numbers of those struck, from 0. Default: all.
	Replicas []int `yaml:"replicas"`
	// From and To say when, since the simulation began. Without To the fault
	// stays; a restart without To is down for no time.
	From time.Duration `yaml:"from"`
	To   time.Duration `yaml:"to"`
	// Factor of slow.
	Factor float64 `yaml:"factor"`
	// Status that a gap answers with. Default: 0, the connection is closed.
	Status int `yaml:"status"`
	// Series is the family of stale_series and new_bounds.
	Series string `yaml:"series"`
	// Mode of stale_series. Default: vanish.
	Mode StaleMode `yaml:"mode"`
	// Bounds of new_bounds, rising.
	Bounds []float64 `yaml:"bounds"`
}

func (f *Fault) setDefaults(fleets []Fleet) {
	if f.Fleet == "" && len(fleets) == 1 {
		f.Fleet = fleets[0].Name
	}
	if f.Kind == StaleSeries && f.Mode == "" {
		f.Mode = Vanish
	}
	if i := slices.IndexFunc(fleets, func(x Fleet) bool { return x.Name == f.Fleet }); i >= 0 && len(f.Replicas) == 0 {
		for replica := range fleets[i].Replicas {
			f.Replicas = append(f.Replicas, replica)
		}
	}
}

func (f *Fault) validate(key string, fleets []Fleet, errs *mistakes) {
	oneOf(errs, key+".kind", f.Kind, Slow, Hung, Restart, Gap, StaleSeries, NewBounds)
	f.validateTarget(key, fleets, errs)
	if f.From < 0 {
		errs.add(key+".from", "is %v: write 0s or more", f.From)
	}
	if f.To != 0 && f.To <= f.From {
		errs.add(key+".to", "is %v: write a time after from (%v), or leave it out for a fault that stays", f.To, f.From)
	}
	if f.Kind == Slow && f.Factor <= 0 {
		errs.add(key+".factor", "is %v: write how many times as long a step takes, such as 1.8", f.Factor)
	}
	if f.Kind == Gap && f.Status != 0 && http.StatusText(f.Status) == "" {
		errs.add(key+".status", "is %d: write an HTTP status such as 503, or leave it out to close the connection", f.Status)
	}
	if f.Kind == StaleSeries {
		oneOf(errs, key+".mode", f.Mode, Freeze, Vanish)
	}
	if f.Kind == NewBounds && (len(f.Bounds) == 0 || !slices.IsSorted(f.Bounds)) {
		errs.add(key+".bounds", "is %v: write the new upper bounds in rising order", f.Bounds)
	}
}

func (f *Fault) validateTarget(key string, fleets []Fleet, errs *mistakes) {
	i := slices.IndexFunc(fleets, func(x Fleet) bool { return x.Name == f.Fleet })
	if i < 0 {
		errs.add(key+".fleet", "is %q: write the name of one of the fleets", f.Fleet)
		return
	}
	fleet := &fleets[i]
	for _, replica := range f.Replicas {
		if replica < 0 || replica >= fleet.Replicas {
			errs.add(key+".replicas", "holds %d: fleet %s has replicas 0 to %d", replica, fleet.Name, fleet.Replicas-1)
		}
	}
	if f.Kind != StaleSeries && f.Kind != NewBounds {
		return
	}
	for _, replica := range f.Replicas {
		if !f.validateSeries(key, fleet.Engine, fleet.versionOf(replica), errs) {
			return // once is enough
		}
	}
}

// validateSeries reports a series that is not on a page, and returns whether it
// is there.
func (f *Fault) validateSeries(key string, engine EngineKind, version Version, errs *mistakes) bool {
	d := dialectOf(engine, version)
	if d == nil {
		return false // the fleet's own mistake
	}
	switch family := d.find(f.Series); {
	case family == nil:
		errs.add(key+".series", "is %q: write a family of a %s page, version %s, such as %s", f.Series, engine, version, d.example())
	case f.Kind == NewBounds && family.kind != histogramKind:
		errs.add(key+".series", "%s is no histogram: write one, such as %s", f.Series, d.example())
	default:
		return true
	}
	return false
}

// turn is a moment at which an engine changes its behaviour.
type turn struct {
	at    float64
	apply func(*engine)
}

// turns lists, in order of time, what the faults do to one replica.
func turns(faults []Fault, fleet string, replica int) []turn {
	var all []turn
	for i := range faults {
		if f := &faults[i]; f.Fleet == fleet && slices.Contains(f.Replicas, replica) {
			all = append(all, f.turns()...)
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].at < all[j].at })
	return all
}

// turns of one fault: its beginning and, if it ends, its end.
func (f *Fault) turns() []turn {
	var begin, end func(*engine)
	switch f.Kind {
	case Slow:
		begin = func(e *engine) { e.factors = append(e.factors, f.Factor) }
		end = func(e *engine) { e.factors = without(e.factors, f.Factor) }
	case Hung:
		begin, end = (*engine).hang, (*engine).resume
	case Gap:
		begin = func(e *engine) { e.gaps = append(e.gaps, f.Status) }
		end = func(e *engine) { e.gaps = without(e.gaps, f.Status) }
	case StaleSeries:
		begin = func(e *engine) { e.suspend(f.Series, f.Mode) }
		end = func(e *engine) { delete(e.stale, f.Series) }
	case NewBounds:
		begin = func(e *engine) {
			e.bounds[e.dialect.find(f.Series).series[0].sample] = f.Bounds
			e.shutDown()
			e.boot()
		}
	case Restart:
		begin, end = (*engine).shutDown, (*engine).boot
		if f.To == 0 {
			begin = func(e *engine) { e.shutDown(); e.boot() }
		}
	}
	all := []turn{{at: f.From.Seconds(), apply: begin}}
	if f.To != 0 && end != nil {
		all = append(all, turn{at: f.To.Seconds(), apply: end})
	}
	return all
}

// without removes one element equal to v.
func without[T comparable](all []T, v T) []T {
	i := slices.Index(all, v)
	return slices.Delete(all, i, i+1)
}
