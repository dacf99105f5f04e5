// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"fmt"
	"math"
	"net/http"
	"slices"
)

func (f *Fault) validate(key string, fleets []Fleet, errs *mistakes) {
	oneOf(errs, key+".kind", f.Kind, Slow, Hung, Errors, Restart, NewRevision, ColdCache, LongPrompts, Overload, TrafficSurge,
		Throttle, XID, LinkErrors, Gap, StaleSeries, NewBounds)
	f.validateStruck(key, fleets, errs)
	if f.From < 0 {
		errs.add(key+".from", "is %v: write 0s or more", f.From)
	}
	if f.To != 0 && f.To <= f.From {
		errs.add(key+".to", "is %v: write a time after from (%v), or leave it out for a fault that stays", f.To, f.From)
	}
	if known := modes[f.Kind]; len(known) > 0 {
		oneOf(errs, key+".mode", f.Mode, known...)
	} else if f.Mode != "" {
		errs.add(key+".mode", "is only read with kind: stale_series, gap, new_revision, cold_cache, throttle or link_errors")
	}
	f.validateSize(key, errs)
	switch {
	case f.Kind == Gap && f.Status != 0 && http.StatusText(f.Status) == "":
		errs.add(key+".status", "is %d: write an HTTP status such as 503, or leave it out to close the connection", f.Status)
	case f.Kind == Gap && f.Every < 1:
		errs.add(key+".every", "is %d: write 1 for every scrape, 2 for every second one", f.Every)
	case f.Kind == NewBounds && (len(f.Bounds) == 0 || !slices.IsSorted(f.Bounds)):
		errs.add(key+".bounds", "is %v: write the new upper bounds in rising order", f.Bounds)
	case f.Kind == XID && f.Code < 1:
		errs.add(key+".code", "is %d: write the number of an XID, such as 79", f.Code)
	case f.Kind == NewRevision:
		f.validateRollout(key, errs)
	}
}

// validateSize checks by how much a fault strikes.
func (f *Fault) validateSize(key string, errs *mistakes) {
	positive := func(v float64) bool { return v > 0 && !math.IsInf(v, 1) }
	switch f.Kind {
	case Slow:
		if !positive(f.Factor) {
			errs.add(key+".factor", "is %v: write how many times as long a step takes, such as 1.8", f.Factor)
		}
	case Throttle:
		if !positive(f.Factor - 1) {
			errs.add(key+".factor", "is %v: write how many times as long a step takes at the lower clock, more than 1", f.Factor)
		}
	case Overload:
		if !positive(f.Factor) {
			errs.add(key+".factor", "is %v: write how many times as many requests come as at another replica, such as 3", f.Factor)
		}
	case Errors, LongPrompts:
		if !positive(f.Share) || f.Share > 1 {
			errs.add(key+".share", "is %v: write more than 0 and at most 1", f.Share)
		}
	case TrafficSurge:
		if !positive(f.Factor) || !positive(f.PromptFactor) || f.Factor == 1 && f.PromptFactor == 1 {
			errs.add(key, "has factor %v and prompt_factor %v: write how many times as many requests come, such as 2, or how many times as long their prompts are", f.Factor, f.PromptFactor)
		}
	case LinkErrors:
		if !positive(f.Rate) {
			errs.add(key+".rate", "is %v: write the errors a second, more than 0", f.Rate)
		}
	}
}

// validateRollout checks what is rolled out.
func (f *Fault) validateRollout(key string, errs *mistakes) {
	if f.Revision == "" {
		errs.add(key+".revision", "is missing: write the new revision of the model")
	}
	for name, factor := range map[string]float64{
		"factor": f.Factor, "prefill_factor": f.PrefillFactor, "output_factor": f.OutputFactor, "prompt_factor": f.PromptFactor,
	} {
		if !(factor > 0) || math.IsInf(factor, 1) {
			errs.add(key+"."+name, "is %v: write how many times as much it is with the new revision, such as 1.3, or leave it out", factor)
		}
	}
	for name, share := range map[string]float64{"share": f.Share, "error_share": f.ErrorShare, "length_share": f.LengthShare} {
		if !(share >= 0 && share <= 1) {
			errs.add(key+"."+name, "is %v: write 0 to 1", share)
		}
	}
	if f.WarmUp < 0 {
		errs.add(key+".warm_up", "is %v: write how long the prefix cache takes to fill, or leave it out", f.WarmUp)
	}
}

// validateStruck checks whom a fault strikes.
func (f *Fault) validateStruck(key string, fleets []Fleet, errs *mistakes) {
	i := slices.IndexFunc(fleets, func(x Fleet) bool { return x.Name == f.Fleet })
	if i < 0 && (f.Node == "" || f.Fleet != "") {
		errs.add(key+".fleet", "is %q: write the name of one of the fleets", f.Fleet)
		return
	}
	if ways := min(len(f.Replicas), 1) + min(f.Pick, 1) + min(len(f.Node), 1); ways > 1 {
		errs.add(key, "write one of replicas, pick and node: each says which replicas are struck")
		return
	}
	if f.Kind == TrafficSurge {
		f.validateSurge(key, &fleets[max(i, 0)], errs)
		return
	}
	if i >= 0 {
		f.validateReplicas(key, &fleets[i], errs)
	}
	before, found := len(*errs), false
	for i := range fleets {
		fleet := &fleets[i]
		struck := slices.DeleteFunc(numbersTo(fleet.Replicas), func(replica int) bool { return !f.strikes(fleet, replica) })
		if len(struck) > 0 && len(*errs) == before { // one mistake of this sort is enough
			found = true
			f.validateFleet(key, fleet, struck, errs)
		}
	}
	if f.Node != "" && !found {
		errs.add(key+".node", "is %q: write one of the nodes of the fleets", f.Node)
	}
}

// validateSurge checks who sends more. A ServeGen trace tells its clients when it
// is read.
func (f *Fault) validateSurge(key string, fleet *Fleet, errs *mistakes) {
	if len(f.Replicas) > 0 || f.Pick > 0 || f.Node != "" {
		errs.add(key, "a surge comes to a whole fleet: leave out replicas, pick and node")
	}
	if f.Tenant != "" && fleet.Arrivals.Format != ServeGen && fleet.Tenants.number(f.Tenant) == 0 {
		errs.add(key+".tenant", "is %q: write one of the tenants of fleet %s, or leave it out for all", f.Tenant, fleet.Name)
	}
}

func (f *Fault) validateReplicas(key string, fleet *Fleet, errs *mistakes) {
	for _, replica := range f.Replicas {
		if replica < 0 || replica >= fleet.Replicas {
			errs.add(key+".replicas", "holds %d: fleet %s has replicas 0 to %d", replica, fleet.Name, fleet.Replicas-1)
		}
	}
	if f.Pick < 0 || f.Pick > fleet.Replicas {
		errs.add(key+".pick", "is %d: fleet %s has %d replicas", f.Pick, fleet.Name, fleet.Replicas)
	}
}

// validateFleet checks that the fleet has what the fault strikes at.
func (f *Fault) validateFleet(key string, fleet *Fleet, struck []int, errs *mistakes) {
	switch {
	case (f.Kind == ColdCache || f.WarmUp > 0) && fleet.PrefixHitRatio == 0:
		errs.add(key+".kind", "strikes at a cache that never hits: give fleet %s a prefix_hit_ratio", fleet.Name)
	case f.shownByGPU() && len(fleet.Nodes) == 0:
		errs.add(key+".kind", "shows on the page of a node's GPUs: give fleet %s its nodes", fleet.Name)
	case f.routes() && f.Pick == 0 && len(struck) == fleet.Replicas, f.routes() && f.Pick == fleet.Replicas:
		errs.add(key+".replicas", "are all of fleet %s: leave others, from whom the router takes away", fleet.Name)
	case f.Kind == StaleSeries, f.Kind == NewBounds:
		for _, replica := range struck {
			if !f.validateSeries(key, fleet.Engine, fleet.versionOf(replica), errs) {
				return // once is enough
			}
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

// validatePlaces checks the lists that say where replicas run and what they
// serve.
func (f *Fleet) validatePlaces(key string, errs *mistakes) {
	for name, list := range map[string][]string{"nodes": f.Nodes, "gpu_models": f.GPUModels, "revisions": f.Revisions, "engine_versions": f.EngineVersions} {
		if slices.Contains(list, "") {
			errs.add(fmt.Sprintf("%s.%s", key, name), "holds an empty word: write a name, or leave the list out")
		}
	}
}
