// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"fmt"
	"slices"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

const (
	panesADay  = 24 * 60
	panesAWeek = 7 * panesADay
	// warmup and settled are panes: nobody is flagged before the first, and
	// faults come after the second, when replicas are known to their fleet.
	warmup  = 60
	settled = 300
	// spellPanes is how long a replica is slow: who is not found in that time is
	// not found.
	spellPanes = 60
	// longSpell is that of worlds in which many are slow: they are in the baseline
	// that each is held against.
	longSpell = 4 * 60
	noisy     = 0.05
	busy      = 60 // requests a replica and pane
	quiet     = 12
)

var (
	onlyTTFT = []fleet.Signal{fleet.TTFT}
	allThree = []fleet.Signal{fleet.TTFT, fleet.ITL, fleet.E2E}
)

// scale is how much is played.
type scale struct {
	panes  int // after warm-up, of a world that counts false alarms
	rounds int // in which each replica that is meant to be slow is
	crowd  int // healthy replicas of the worlds that no target asks a thousand of
	seeds  int // with which each cause is played
}

var (
	aDay  = scale{panes: panesADay, rounds: 1, crowd: 300, seeds: 4}
	aWeek = scale{panes: panesAWeek, rounds: 5, crowd: 1000, seeds: 20}
)

// slowFew are replicas beside a crowd that are slow now and then, so many by
// each factor: few at any time, so that the fleet stays what it is.
func (s scale) slowFew(crowd, each int, factors ...float64) (spells []spell) {
	all := each * len(factors)
	room := s.panes + warmup - settled - spellPanes
	for i := range all * s.rounds {
		from := settled + room*i/(all*s.rounds)
		spells = append(spells, spell{
			place: place{replica: crowd + i%all}, from: from, to: from + spellPanes, factor: factors[i%len(factors)],
		})
	}
	return spells
}

// largeFleet is one fleet with noise between pods and in each, and with some
// replicas beside the crowd that are slow now and then.
func (s scale) largeFleet(name string, crowd, slow int, factors ...float64) drawnPlan {
	return drawnPlan{
		name: name, fleets: 1, replicas: crowd + slow*len(factors), panes: warmup + s.panes, latencies: onlyTTFT, engine: fleetsim.VLLM,
		shape: fleetsim.ShapeLognormal, noise: noisy, requests: busy, spells: s.slowFew(crowd, slow, factors...),
	}
}

// smallFleets are several fleets with noise between pods and in each.
func smallFleets(name string, fleets, replicas, panes int) drawnPlan {
	return drawnPlan{
		name: name, fleets: fleets, replicas: replicas, panes: panes, latencies: onlyTTFT, engine: fleetsim.VLLM,
		shape: fleetsim.ShapeLognormal, noise: noisy, requests: busy,
	}
}

// endSlow adds panes to the plan in which some replicas of every nth fleet are
// slow.
func (p drawnPlan) endSlow(panes, replicas, every int, factor float64) drawnPlan {
	for of := 0; of < p.fleets; of += every {
		for i := range replicas {
			p.spells = append(p.spells, spell{place: place{of, i}, from: p.panes, to: p.panes + panes, factor: factor})
		}
	}
	p.panes += panes
	return p
}

// figure is what a card says of a world.
type figure struct {
	name   string
	target Target
	// take reads a rule's value, what it stands on for us, and its unit.
	take func(o *outcome, r rule) (value float64, unit, note string)
	// oursOnly: the peers have no such figure.
	oursOnly bool
}

// scored is a world, or several alike, and the figures of all together.
type scored struct {
	worlds  []*world
	figures []figure
}

// outlierWorlds are all worlds of the outlier's card, the longest first.
func outlierWorlds(s scale, seed uint64) []scored {
	falseAlarms := func(name string, target Target) figure {
		return figure{name: "outlier_false_per_week_" + name, target: target, take: falsePerWeek}
	}
	delay2 := func(name string) figure { return figure{name: "outlier_delay_2x_" + name, take: delayOf(2)} }
	of := func(p drawnPlan, figures ...figure) scored { return scored{[]*world{drawnWorld(p, seed)}, figures} }
	like := func(name string, edit func(*drawnPlan)) scored {
		p := s.largeFleet(name, s.crowd, 10, 2)
		edit(&p)
		return of(p, falseAlarms(name, atMost(5)), delay2(name))
	}

	three := smallFleets("60x20", 60, 20, warmup+s.panes).endSlow(spellPanes, 1, 10, 2)
	three.latencies = allThree
	iid := s.largeFleet("iid", 1000, 60, 1.5)
	iid.noise = 0
	worlds := []scored{
		of(three, falseAlarms("60x20", atMost(5)), delay2("60x20")),
		of(iid, falseAlarms("iid", atMost(1)), figure{name: "outlier_delay_1p5x_iid", target: atMost(5), take: delayOf(1.5)}),
		of(s.largeFleet("noise05", 1000, 60, 1.5, 2), falseAlarms("noise05", atMost(5)),
			figure{name: "outlier_delay_1p5x_noise05", target: atMost(12), take: delayOf(1.5)},
			figure{name: "outlier_delay_2x_noise05", target: atMost(4), take: delayOf(2)}),
		like("gamma", func(p *drawnPlan) { p.shape = fleetsim.ShapeGamma }),
		like("weibull", func(p *drawnPlan) { p.shape = fleetsim.ShapeWeibull }),
		like("sglang", func(p *drawnPlan) { p.engine = fleetsim.SGLang }),
		like("12_requests", func(p *drawnPlan) { p.requests = quiet }),
		of(smallFleets("10x32", 10, 32, warmup+s.panes).endSlow(spellPanes, 1, 1, 2), falseAlarms("10x32", atMost(5)), delay2("10x32")),
	}
	worlds = append(worlds, badShare("25pct", 5, 1.5, seed), badShare("40pct", 8, 2, seed))
	return append(worlds, smallFleet(seed))
}

// badShare is fleets of 20 with many slow replicas.
func badShare(name string, slow int, factor float64, seed uint64) scored {
	const fleets, replicas = 40, 20
	plan := smallFleets("bad_"+name, fleets, replicas, settled).endSlow(longSpell, slow, 1, factor)
	return scored{[]*world{drawnWorld(plan, seed)}, []figure{
		{name: "outlier_bad_" + name + "_found", target: atLeast(0.95), take: foundShare},
		{name: "outlier_bad_" + name + "_healthy_flagged", target: atMost(0), take: falseCount},
	}}
}

// smallFleet is ten collectors with one fleet of four replicas each, a week
// long: forty replica-weeks that must not wait for a fleet-week.
func smallFleet(seed uint64) scored {
	small := scored{figures: []figure{
		{name: "outlier_small_fleet_false", target: atMost(3), take: falseCount},
		{name: "outlier_small_fleet_found", take: foundShare},
	}}
	for i := range 10 {
		p := smallFleets(fmt.Sprintf("small_fleet-%d", i), 1, 4, warmup+panesAWeek).endSlow(spellPanes, 1, 1, 2)
		small.worlds = append(small.worlds, drawnWorld(p, seed))
	}
	return small
}

// falsePerWeek is onsets of healthy replicas, of all of the world's together.
func falsePerWeek(o *outcome, r rule) (value float64, unit, note string) {
	perWeek := float64(o.falseOnsets[r]) * panesAWeek / float64(o.panes)
	return perWeek, "{onset}/wk", o.falseNote(r)
}

func falseCount(o *outcome, r rule) (value float64, unit, note string) {
	return float64(o.falseOnsets[r]), "{onset}", o.falseNote(r)
}

// noneMeans is the most events that are expected, with 95 % confidence, where
// none was seen: -ln 0.05, the rule of three (Hanley and Lippman-Hand, JAMA 1983).
const noneMeans = 3

// falseNote says in how much false alarms were counted; and where none was seen,
// what their rate may be all the same.
func (o *outcome) falseNote(r rule) string {
	text := fmt.Sprintf("%d in %s", o.falseOnsets[r], o.watched())
	if o.falseOnsets[r] > 0 {
		return text
	}
	weeks := float64(o.panes) / panesAWeek
	return text + fmt.Sprintf("; none in %.3g collector-weeks: at most %.3g a collector-week with 95 %% confidence", weeks, noneMeans/weeks)
}

// watched is how much false alarms were waited for.
func (o *outcome) watched() string {
	text := fmt.Sprintf("%.4g replica-weeks", float64(o.healthyPanes)/panesAWeek)
	if n := len(o.never); n > 0 {
		text += fmt.Sprintf(", without %d drawn slower than tolerated", n)
	}
	return text
}

// delayOf is the median time in which a replica is found that is so many times
// as slow; +Inf if most are not.
func delayOf(factor float64) func(*outcome, rule) (float64, string, string) {
	return func(o *outcome, r rule) (value float64, unit, note string) {
		delays := o.delaysOf(factor, r)
		most := delays[(len(delays)*9-1)/10]
		return median(delays), "min", fmt.Sprintf("found %d of %d, 90 %% within %s", found(delays), len(delays), short(most))
	}
}

// foundShare is the share of spells that were found while they lasted.
func foundShare(o *outcome, r rule) (value float64, unit, note string) {
	delays := slices.Clone(o.delays[r])
	waited := 0
	for _, s := range o.spells {
		waited = max(waited, s.to-s.from)
	}
	share := float64(found(delays)) / float64(len(delays))
	return share, "1", fmt.Sprintf("%d of %d within %d min, median %s min", found(delays), len(delays), waited, short(median(delays)))
}
