// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"cmp"
	"slices"
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
	// Errors fails a Share of the requests the moment they arrive.
	Errors FaultKind = "errors"
	// Restart replaces the process: counters and process_start_time_seconds
	// begin anew, requests on board are lost. From From to To it is down.
	Restart FaultKind = "restart"
	// NewRevision rolls Revision of the model out to the replicas: what they serve
	// from then on may differ in latency, lengths, errors and cut answers, and the
	// router may send them a Share of the requests.
	NewRevision FaultKind = "new_revision"
	// ColdCache empties the prefix cache, which is full again at To.
	ColdCache FaultKind = "cold_cache"

	// LongPrompts is the router's: it sends the longest prompts to the replicas
	// struck, in all as many requests as before.
	LongPrompts FaultKind = "long_prompts"
	// Overload is the router's: it sends each replica struck Factor times as
	// many requests as another one.
	Overload FaultKind = "overload"

	// TrafficSurge is of what arrives: Tenant, or everyone, sends Factor times as many
	// requests, with prompts PromptFactor times as long.
	TrafficSurge FaultKind = "surge"

	// Throttle lowers the clock of the GPU: every step takes Factor times as
	// long, and the node's dcgm-exporter tells.
	Throttle FaultKind = "throttle"
	// XID is a driver's error with Code, which the GPU shows from then on.
	XID FaultKind = "xid"
	// LinkErrors counts Rate errors a second at a link of the GPU.
	LinkErrors FaultKind = "link_errors"

	// Gap leaves the page without an answer while the engine works on.
	Gap FaultKind = "gap"
	// StaleSeries freezes the family Series at its value, or lets it vanish,
	// while the rest of the page goes on.
	StaleSeries FaultKind = "stale_series"
	// NewBounds restarts the engine as an upgrade does: the histogram Series
	// comes back with Bounds.
	NewBounds FaultKind = "new_bounds"
)

// Mode says which of its forms a fault takes.
type Mode string

// The modes of stale_series, gap, new_revision, cold_cache, throttle and
// link_errors.
const (
	Vanish  Mode = "vanish"
	Freeze  Mode = "freeze"
	Close   Mode = "close"    // the connection, without an answer
	TimeOut Mode = "timeout"  // no answer until the scraper gives up
	InPlace Mode = "in_place" // the same pod, as a StatefulSet does
	Replace Mode = "replace"  // another pod, as a Deployment does
	Reboot  Mode = "restart"  // a new process, whose cache is empty
	Flush   Mode = "flush"    // the process goes on
	Thermal Mode = "thermal"  // too hot
	Power   Mode = "power"    // over its power limit
	PCIe    Mode = "pcie"
	NVLink  Mode = "nvlink"
)

// modes of each kind that has any, the default first.
var modes = map[FaultKind][]Mode{
	StaleSeries: {Vanish, Freeze},
	Gap:         {Close, TimeOut},
	NewRevision: {InPlace, Replace},
	ColdCache:   {Reboot, Flush},
	Throttle:    {Thermal, Power},
	LinkErrors:  {PCIe, NVLink},
}

// cacheFilling is how long an emptied prefix cache takes to fill.
const cacheFilling = 10 * time.Minute

// Fault strikes some replicas, or adds to what is sent to a fleet.
type Fault struct {
	Kind FaultKind `yaml:"kind"`
	// Fleet is the name of the fleet. Default: the only one, or with Node all.
	Fleet string `yaml:"fleet"`
	// Replicas are the numbers of those struck, from 0. Default: all.
	Replicas []int `yaml:"replicas"`
	// Pick instead strikes so many replicas, which the seed chooses: the same
	// ones for all faults of a fleet.
	Pick int `yaml:"pick"`
	// Node instead strikes all replicas that run there.
	Node string `yaml:"node"`
	// From and To say when, since the simulation began. Without To the fault
	// stays; a restart without To is down for no time, and a cache is full again
	// after ten minutes.
	From time.Duration `yaml:"from"`
	To   time.Duration `yaml:"to"`
	// Factor of slow, throttle and new_revision, where it multiplies the time
	// of a step, and of overload and surge, where it multiplies requests.
	Factor float64 `yaml:"factor"`
	// Share of the requests that errors and long_prompts apply to, by default 1;
	// and of the fleet's requests that the router sends to replicas of a
	// new_revision, by default as many as to any others.
	Share float64 `yaml:"share"`
	// Mode of the kinds that have several forms. Default: the first one.
	Mode Mode `yaml:"mode"`
	// Status that a gap answers with, instead of what its mode says.
	Status int `yaml:"status"`
	// Every is the rhythm of a gap: 2 strikes every second scrape. Default: 1.
	Every int `yaml:"every"`
	// Series is the family of stale_series and new_bounds.
	Series string `yaml:"series"`
	// Bounds of new_bounds, rising.
	Bounds []float64 `yaml:"bounds"`
	// Code of xid.
	Code int `yaml:"code"`
	// Rate of link_errors, errors a second.
	Rate float64 `yaml:"rate"`
	// Revision of new_revision.
	Revision string `yaml:"revision"`
	// PrefillFactor of new_revision multiplies the time that a prompt token takes,
	// OutputFactor tokens of answers. Default: 1.
	PrefillFactor float64 `yaml:"prefill_factor"`
	OutputFactor  float64 `yaml:"output_factor"`
	// ErrorShare of the requests fail with new_revision, and LengthShare of the
	// answers are cut off at max_tokens.
	ErrorShare  float64 `yaml:"error_share"`
	LengthShare float64 `yaml:"length_share"`
	// WarmUp is how long the prefix cache of a new_revision takes to fill. Default:
	// it is full.
	WarmUp time.Duration `yaml:"warm_up"`
	// Tenant of surge. Default: all.
	Tenant string `yaml:"tenant"`
	// PromptFactor of surge and new_revision multiplies tokens of prompts. Default:
	// 1.
	PromptFactor float64 `yaml:"prompt_factor"`
}

func (f *Fault) setDefaults(fleets []Fleet) {
	if f.Fleet == "" && len(fleets) == 1 {
		f.Fleet = fleets[0].Name
	}
	if known := modes[f.Kind]; len(known) > 0 {
		f.Mode = cmp.Or(f.Mode, known[0])
	}
	switch f.Kind {
	case Errors, LongPrompts:
		f.Share = cmp.Or(f.Share, 1)
	case NewRevision:
		f.Factor, f.PrefillFactor = cmp.Or(f.Factor, 1), cmp.Or(f.PrefillFactor, 1)
		f.OutputFactor, f.PromptFactor = cmp.Or(f.OutputFactor, 1), cmp.Or(f.PromptFactor, 1)
	case TrafficSurge:
		f.Factor, f.PromptFactor = cmp.Or(f.Factor, 1), cmp.Or(f.PromptFactor, 1)
		return // it strikes no replicas
	case Gap:
		f.Every = cmp.Or(f.Every, 1)
	case ColdCache:
		f.To = cmp.Or(f.To, f.From+cacheFilling)
	}
	if len(f.Replicas) > 0 || f.Pick > 0 || f.Node != "" {
		return
	}
	if i := slices.IndexFunc(fleets, func(x Fleet) bool { return x.Name == f.Fleet }); i >= 0 {
		f.Replicas = numbersTo(fleets[i].Replicas)
	}
}

// numbersTo lists 0 to n - 1.
func numbersTo(n int) []int {
	numbers := make([]int, 0, max(n, 0))
	for i := range n {
		numbers = append(numbers, i)
	}
	return numbers
}

// choose turns Pick into the numbers of replicas.
func (f *Fault) choose(fleets []Fleet, seed uint64) {
	if f.Pick == 0 {
		return
	}
	i := slices.IndexFunc(fleets, func(x Fleet) bool { return x.Name == f.Fleet })
	f.Replicas = stream(seed, f.Fleet, "pick").Perm(fleets[i].Replicas)[:f.Pick]
	slices.Sort(f.Replicas)
	f.Pick = 0
}

// strikes tells whether a replica of a fleet is among those struck. While it is
// not yet chosen which, each may be.
func (f *Fault) strikes(fleet *Fleet, replica int) bool {
	if f.Kind == TrafficSurge || f.Fleet != "" && f.Fleet != fleet.Name || f.Node != "" && f.Node != fleet.nodeOf(replica) {
		return false
	}
	return len(f.Replicas) == 0 || slices.Contains(f.Replicas, replica)
}

// onlyRoutes tells whether the fault is the router's and not the replica's own.
func (f *Fault) onlyRoutes() bool { return f.Kind == LongPrompts || f.Kind == Overload }

// routes tells whether the router sends requests elsewhere for it.
func (f *Fault) routes() bool { return f.onlyRoutes() || f.Kind == NewRevision && f.Share > 0 }

// shownByGPU tells whether the fault is seen at the GPU.
func (f *Fault) shownByGPU() bool {
	return f.Kind == Throttle || f.Kind == XID || f.Kind == LinkErrors
}
