// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// fleet is one of the scenario's, with what was found out about its replicas.
type fleet struct {
	fleetKey
	rows []row // slowest first
}

// row is one replica.
type row struct {
	figure
	name     string
	verdict  string
	injected string // what the scenario does to it; empty when nothing
}

// flagged tells whether the replica is found to be an outlier, or stuck.
func (r *row) flagged() bool { return r.outlier == 1 || r.stuck == 1 }

// measuresITL tells whether the engine of a replica has a histogram of
// inter-token latency; TensorRT-LLM has the mean of each request alone.
func measuresITL(scenario *fleetsim.Scenario, e *fleetsim.Engine) bool {
	i := slices.IndexFunc(scenario.Fleets, func(f fleetsim.Fleet) bool { return f.Name == e.Fleet() })
	return scenario.Fleets[i].Engine != fleetsim.TensorRTLLM
}

// arrange puts the figures beside the scenario that they should tell of, as it
// stood when it had run for elapsed.
func arrange(scenario *fleetsim.Scenario, engines []*fleetsim.Engine, got figures, elapsed time.Duration) []fleet {
	fleets := make([]fleet, len(scenario.Fleets))
	for i := range scenario.Fleets {
		f := &scenario.Fleets[i]
		fleets[i].fleetKey = fleetKey{f.ModelName, string(f.Engine)}
		for _, e := range engines {
			if e.Fleet() != f.Name {
				continue
			}
			r := row{figure: *newFigure(), name: e.Name(), injected: injected(scenario.Faults, e, elapsed)}
			found := got.replicas[r.name]
			if found != nil {
				r.figure = *found
			}
			r.verdict = verdict(found, got.states[fleets[i].fleetKey])
			fleets[i].rows = append(fleets[i].rows, r)
		}
		slices.SortStableFunc(fleets[i].rows, slowestFirst)
	}
	return fleets
}

// verdict is what was found of a replica; nil: nothing was heard of it. Where
// there is no verdict it is the state that the replica is in: the collector counts
// states by fleet, so it may be one of several.
func verdict(f *figure, states []string) string {
	switch {
	case f == nil && len(states) == 0:
		return "not heard from"
	case f != nil && f.stuck == 1:
		return "STUCK"
	case f != nil && f.outlier == 1:
		return "OUTLIER"
	case f != nil && f.outlier == 0:
		return "ok"
	case f != nil && f.evidence < 1: // it is watched, and not yet for long enough
		return "warming"
	}
	return cmp.Or(strings.Join(states, " or "), "-")
}

// injected says which faults have struck the engine within the window.
func injected(faults []fleetsim.Fault, e *fleetsim.Engine, elapsed time.Duration) string {
	var words []string
	for i := range faults {
		f := &faults[i]
		over := f.To != 0 && f.To <= elapsed-window
		if f.Fleet != e.Fleet() || !slices.Contains(f.Replicas, e.Replica()) || f.From >= elapsed || over {
			continue
		}
		word := string(f.Kind)
		if f.Factor != 0 {
			word += fmt.Sprintf(" (factor %v)", f.Factor)
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

// slowestFirst puts replicas without a ratio last.
func slowestFirst(a, b row) int {
	if aMissing, bMissing := math.IsNaN(a.ratio), math.IsNaN(b.ratio); aMissing != bMissing {
		if aMissing {
			return 1
		}
		return -1
	}
	return cmp.Compare(b.ratio, a.ratio)
}
