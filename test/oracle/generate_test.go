// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"
)

// form is the form of a history's histograms.
type form uint8

const (
	classic     form = iota
	custom           // native, with custom buckets
	exponential      // native
)

// class says what may happen to the pods of a history.
type class struct {
	name                                        string
	form                                        form
	gaps, joins, departures, restarts, failures bool
	growth                                      bool // whether exponential buckets differ, and grow wider
}

var classes = []class{
	{name: "steady"},
	{name: "gaps", gaps: true},
	{name: "joins", joins: true},
	{name: "departures", departures: true},
	{name: "restarts", restarts: true},
	{name: "failures", failures: true},
	{name: "mixed", gaps: true, joins: true, departures: true, restarts: true, failures: true},
	{name: "custom", form: custom, gaps: true, joins: true, departures: true, restarts: true, failures: true},
	{name: "exponential", form: exponential, gaps: true, joins: true, departures: true, restarts: true, failures: true},
	{name: "growth", form: exponential, growth: true, gaps: true, joins: true, departures: true, restarts: true, failures: true},
}

// historyLength leaves a twelfth of the evaluations to the first window, in which every replica is warming.
const historyLength = time.Hour

// maxGap is the longest time between two pages of a replica that Prometheus is sure to see across: its lookback.
const maxGap = 5 * time.Minute

// never lies before every visit.
const never = time.Duration(-1)

// ttftBounds are vLLM's buckets of the time to first token, of which a history takes some.
var ttftBounds = []float64{
	0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
}

// generator draws one history; everything it does follows from the seed.
type generator struct {
	class
	*rand.Rand
	bounds []float64
}

// generate makes the history of a class that belongs to a seed. Model names hold the seed, so that many histories fit
// into one storage without meeting in a query.
func generate(c class, seed uint64) history {
	worlds := fnv.New64a()
	fmt.Fprint(worlds, c.name) // another class draws other worlds from the same seed
	g := generator{class: c, Rand: rand.New(rand.NewPCG(seed, worlds.Sum64()))}
	first := 4 + g.IntN(5)
	g.bounds = ttftBounds[first : len(ttftBounds)-g.IntN(9)]
	if g.IntN(3) > 0 { // mostly fewer buckets: more histories in the same time
		g.bounds = thin(g.bounds, 2)
	}
	h := history{class: c.name, form: c.form, seed: seed, bounds: g.bounds, length: historyLength}
	for m := range 1 + g.IntN(2) {
		model := fmt.Sprintf("%s-%d-%d", c.name, seed, m)
		h.models = append(h.models, model)
		for i := range 2 + g.IntN(4) {
			h.pods = append(h.pods, g.pod(fmt.Sprintf("%s-pod-%d", model, i), model, i > 0))
		}
	}
	return h
}

// thin keeps every n-th bound.
func thin(bounds []float64, n int) []float64 {
	var kept []float64
	for i := 0; i < len(bounds); i += n {
		kept = append(kept, bounds[i])
	}
	return kept
}

// pod draws the life of one pod. The first pod of a model is there from beginning to end.
func (g *generator) pod(name, model string, mayMove bool) pod {
	every := []time.Duration{15 * time.Second, 20 * time.Second, 30 * time.Second}[g.IntN(3)]
	begin, end := time.Duration(0), historyLength
	if g.joins && mayMove && g.IntN(3) > 0 {
		begin = time.Duration(g.Float64() * float64(historyLength)).Truncate(time.Millisecond)
	}
	leaves := g.departures && mayMove && g.IntN(3) > 0
	if leaves {
		end = begin + time.Duration(g.Float64()*float64(historyLength-begin)).Truncate(time.Millisecond)
	}
	e := g.engine()
	p := pod{name: name, model: model}
	e.serve(g, time.Hour) // a past before the first page, which nobody may count
	g.scrapeAll(&p, e, begin+g.phase(every), end, every)
	if leaves && len(p.scrapes) > 0 && g.IntN(2) == 0 {
		// Service discovery took the target away; the other half vanishes without a word.
		last := p.scrapes[len(p.scrapes)-1].at
		p.scrapes = append(p.scrapes, scrape{at: last.Add(every), outcome: removed})
	}
	return p
}

// phase is where between two ticks of its scrape interval a pod is scraped; one in four exactly on the grid.
func (g *generator) phase(every time.Duration) time.Duration {
	if g.IntN(4) == 0 {
		return 0
	}
	return time.Duration(g.Int64N(every.Milliseconds())) * time.Millisecond
}

// scrapeAll visits a pod from begin to end and records what each visit gave.
func (g *generator) scrapeAll(p *pod, e engine, begin, end, every time.Duration) {
	var (
		lastPage    = begin // of the pages read
		lastRestart = begin - window
		read        bool // any page
		waiting     float64
		outage      = never // visits up to here are missed or fail
		silent      bool
	)
	for at := begin; at <= end; at += every {
		if at > outage && read {
			outage, silent = g.outage(at, every)
		}
		waiting = max(0, math.Round(waiting+3*g.NormFloat64()))
		if at <= outage && at+every-lastPage <= maxGap {
			if !silent {
				p.scrapes = append(p.scrapes, g.failure(p, at))
			}
			continue
		}
		if g.restarts && read && at-lastRestart > window/2+every && g.IntN(25) == 0 {
			// At most two restarts in a window: a counter that falls more often is withheld as unreliable.
			e.restart(g, at-lastPage)
			lastRestart = at
		} else {
			e.serve(g, at-lastPage)
		}
		lastPage, read = at, true
		page := scrape{at: epoch.Add(at), delay: g.delay(), waiting: waiting, running: float64(g.IntN(64))}
		e.show(&page)
		p.scrapes = append(p.scrapes, page)
	}
}

// outage decides whether visits from at on fail, until when, and whether they are missed in silence (a gap) or told by
// markers (a failure).
func (g *generator) outage(at, every time.Duration) (until time.Duration, silent bool) {
	if !g.gaps && !g.failures || g.IntN(15) > 0 {
		return never, false
	}
	visits := 1 + g.IntN(3)
	if g.IntN(4) == 0 {
		visits = 1 + int(maxGap/every) // as long as may be; scrapeAll ends it in time
	}
	return at + time.Duration(visits-1)*every, !g.failures || g.gaps && g.IntN(2) == 0
}

// failure is a visit without an answer: the first one brings the markers.
func (g *generator) failure(p *pod, at time.Duration) scrape {
	result := failed
	if last := p.scrapes[len(p.scrapes)-1]; last.outcome != scraped {
		result = stillFailed
	}
	return scrape{at: epoch.Add(at), delay: g.delay(), outcome: result}
}

// delay is how long a page is under way: less than lateness, so that every page is there when its pane is judged.
func (g *generator) delay() time.Duration {
	return time.Duration(g.IntN(2000)) * time.Millisecond
}

// poisson draws a Poisson variate: exactly for a small mean, else by its normal limit.
func (g *generator) poisson(mean float64) uint64 {
	if mean > 50 {
		return uint64(max(0, mean+math.Sqrt(mean)*g.NormFloat64()))
	}
	var n uint64
	for passed := g.ExpFloat64(); passed < mean; passed += g.ExpFloat64() {
		n++
	}
	return n
}
