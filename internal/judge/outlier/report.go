// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"cmp"
	"slices"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// Reason is why a figure is withheld.
type Reason uint8

// The reasons. Given is none: the figure stands.
const (
	Given           Reason = iota
	NotReported            // the replica tells nothing of the signal
	Warming                // the replica has not been there for a full window
	Unreliable             // two processes answer under the replica's name
	NoBuckets              // only count and sum are known
	FewObservations        // the quantile would stand on too few observations
	FewReplicas            // too few replicas to compare
	LowestBucket           // everything lies in the lowest bucket: times were not measured
	Saturated              // at or above the top finite bound: the true value is unknown
	NoCommonBounds         // the replica's histogram shares no bucket bound with the fleet's
	MixedEngines           // replicas of different engines, which measure the latency differently
	MixedUnits             // some replicas count tokens, others blocks
	Implausible            // more was found than was looked for
	ZeroBaseline           // the comparison would divide by zero
	Unbounded              // the bound is infinite
	TokensAtEnd            // tokens are counted only when their request ends
	NotAsked               // the options do not ask for it
	ReasonCount            // how many reasons there are; not a reason
)

var reasonNames = [ReasonCount]string{ //nolint:gosec // tokens of a model, no credentials
	Given: "given", NotReported: "not_reported", Warming: "warming", Unreliable: "unreliable",
	NoBuckets: "no_buckets", FewObservations: "few_observations", FewReplicas: "few_replicas",
	LowestBucket: "lowest_bucket", Saturated: "saturated", NoCommonBounds: "no_common_bounds",
	MixedEngines: "mixed_engines", MixedUnits: "mixed_units", Implausible: "implausible", ZeroBaseline: "zero_baseline", Unbounded: "unbounded",
	TokensAtEnd: "tokens_at_end", NotAsked: "not_asked",
}

// String is the reason's name as it stands in self-telemetry.
func (r Reason) String() string {
	if r >= ReasonCount {
		return "unknown"
	}
	return reasonNames[r]
}

// Figure is one number, or why there is none. The zero Figure is a given zero.
type Figure struct {
	Value    float64
	Withheld Reason
}

// over is one figure over another, if both stand.
func (f Figure) over(base Figure) Figure {
	if why := cmp.Or(f.Withheld, base.Withheld); why != Given {
		return withheld(why)
	}
	return ratio(f.Value, base.Value)
}

func withheld(r Reason) Figure { return Figure{Withheld: r} }

// State is how far the judgement of a replica came.
type State uint8

// The states; a replica is in exactly one.
const (
	Judged       State = iota // at least one ratio is given
	StillWarming              // not yet there for a full window
	Unreachable               // its scrape fails; what it told before still counts
	AllWithheld               // there, but none of its ratios can be given
	StateCount                // how many states there are; not a state
)

var stateNames = [StateCount]string{
	Judged: "judged", StillWarming: "warming", Unreachable: "unreachable", AllWithheld: "withheld",
}

// String is the state's name as it stands in the attribute `state`.
func (s State) String() string {
	if s >= StateCount {
		return "unknown"
	}
	return stateNames[s]
}

// Report is what was found of one fleet. It is borrowed; the next judgement
// overwrites it.
type Report struct {
	Replicas []Replica
	// Latency and Spread have one figure for each signal and quantile, signal
	// after signal, in seconds and as the slowest replica over the fleet.
	Latency []Figure
	Spread  []Figure
	// Load is the fleet's sum of requests and mean of usage, by fleet.LoadOf.
	Load [loads]Figure
	// WaitingImbalance is the longest queue over the mean queue, now.
	WaitingImbalance Figure
	// Work has one figure for each of Works.
	Work   [works]Figure
	States [StateCount]int
	// Coverage is the judged replicas over the expected ones.
	Coverage Figure
}

// Replica is what was found of one replica.
type Replica struct {
	Identity *fleet.Identity
	State    State
	// Latency has one entry for each signal and quantile, signal after signal.
	Latency []Latency
	// Observations has one figure for each signal.
	Observations []Figure
	// Load and LoadRatio are by fleet.LoadOf.
	Load      [loads]Figure
	LoadRatio [loads]Figure
	// Work and WorkRatio have one figure for each of Works: its own, and that over
	// what it is compared to.
	Work      [works]Figure
	WorkRatio [works]Figure
	// Stuck is 1 if it has work and makes no token, or says nothing, else 0.
	Stuck Figure
}

// Latency is one quantile of one signal: its value in seconds, over what it is
// compared to, and that ratio's bounds. A bound is made of one rank bound of
// each side, at 5 % error each, so it holds with at least 90 % confidence, as
// far as observations spread evenly within buckets.
type Latency struct {
	Value, Ratio, LowRatio, HighRatio Figure
}

const loads = 3

// reset empties the report for n replicas, keeping its memory.
func (r *Report) reset(o *Options, replicas int) {
	cells := len(o.Signals) * len(o.Quantiles)
	r.Latency = slices.Grow(r.Latency[:0], cells)[:cells]
	r.Spread = slices.Grow(r.Spread[:0], cells)[:cells]
	r.Replicas = slices.Grow(r.Replicas[:0], replicas)[:replicas]
	r.States = [StateCount]int{}
	for i := range r.Replicas {
		p := &r.Replicas[i]
		p.Latency = slices.Grow(p.Latency[:0], cells)[:cells]
		p.Observations = slices.Grow(p.Observations[:0], len(o.Signals))[:len(o.Signals)]
	}
}
