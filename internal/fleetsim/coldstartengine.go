// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"time"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// Shares of engines.
const (
	fetchesModel = 0.3 // of those without a sidecar that does
	compiled     = 0.25
	twoRanks     = 0.3
	failsAgain   = 0.25 // of those that fail
)

// How long an engine takes: as vLLM's logs have it.
var (
	bootTakes    = lognormal(16, 0.5)
	configTakes  = lognormal(4, 0.8)
	weightsTake  = lognormal(22.7, 0.48)
	compileTakes = lognormal(55, 0.3)
	cachedTakes  = lognormal(5, 0.5)
	profileTakes = lognormal(18, 0.9)
	cacheTakes   = lognormal(2, 0.5)
	graphsTake   = lognormal(15, 1)
	warmupTakes  = lognormal(3, 0.6)
	probeTakes   = seconds(0.1, 10)
	tokenTakes   = lognormal(20, 1)
)

// serve lets the engine come up in its container, after the workers of its group
// if there are any, and returns when the pod is ready.
func (p *startingPod) serve(runs *moment, workers window.Instant) (ready *moment) {
	failures := 0
	if p.odds(p.world.plan.Restarts) {
		failures = 1
		if p.odds(failsAgain) {
			failures = 2
		}
	}
	first := runs
	for attempt := range failures {
		exited := p.fail(runs, workers, attempt)
		runs = p.restart(first, exited, attempt+1)
	}
	serves := p.engine(runs, failures).whole(workers)
	ready = p.then(p.all(serves), probeTakes)
	p.ready(ready)
	p.stage("ready", "", 0, serves, ready)
	p.tell(lifecycle.Fact{Name: lifecycle.FirstToken, Attempt: -1, Clock: lifecycle.Clock{Kind: lifecycle.Engine, Of: p.uid}}, p.then(ready, tokenTakes))
	return ready
}

func (p *startingPod) ready(at *moment) {
	fact := lifecycle.Fact{Name: lifecycle.Ready, Clock: p.nodeClock()}
	p.tellObject(fact, at)
	p.tellMetric(fact, at)
}

// restart is the kubelet's: at once after the first failure, then after a
// back-off that doubles. Events of containers count, the pod's status is new.
func (p *startingPod) restart(first, exited *moment, attempt int) (runs *moment) {
	wait := seconds(0.5, 1.5)
	if attempt > 1 {
		wait = seconds(10, 12)
		backOff := p.then(exited, seconds(0.2, 1))
		p.tellEvent(lifecycle.Fact{Name: lifecycle.RestartBackOff, Container: engineContainer, Clock: p.nodeClock()}, backOff)
	}
	image := p.then(exited, wait)
	p.tellEvent(lifecycle.Fact{Name: lifecycle.PullFinished, Container: engineContainer, Clock: p.nodeClock(), Cached: true}, image)
	runs = p.then(image, seconds(0.1, 1))
	started := lifecycle.Fact{Name: lifecycle.ContainerStarted, Container: engineContainer, Clock: p.nodeClock()}
	p.tellAgain(started, first, runs, attempt+1)
	started.Attempt = attempt
	p.tellObject(started, runs)
	p.stage("crash_loop", engineContainer, attempt, exited, image)
	p.stage("container.create", engineContainer, attempt, image, runs)
	return runs
}

// enginePod is one attempt of an engine to come up. Where one stage ends and the
// next begins, each is told by its own lines only.
type enginePod struct {
	*startingPod

	attempt int
	now     *moment
}

func (p *startingPod) engine(runs *moment, attempt int) *enginePod {
	return &enginePod{p, attempt, runs}
}

// says lets the engine's log tell that something happens after a while; began is
// when that began which the line says the length of, nil if it says none.
func (e *enginePod) says(name lifecycle.Name, after length, began *moment) *moment {
	e.now = e.then(e.now, after)
	e.tellLine(lifecycle.Fact{Name: name, Container: engineContainer, Attempt: e.attempt}, e.now, began)
	return e.now
}

func (e *enginePod) passes(name string, start *moment) {
	e.stage(name, engineContainer, e.attempt, start, e.now)
}

// boot comes as far as to the first weight.
func (e *enginePod) boot(workers window.Instant) {
	runs := e.now
	initializing := e.says(lifecycle.EngineInitializing, bootTakes, nil)
	e.passes("engine.boot", runs)
	// Nothing is said while the engine reads its configuration, or waits for workers.
	e.now = &moment{at: max(e.then(initializing, configTakes).at, workers)}
	if e.fetched != nil && e.now.at < e.fetched.at {
		e.now = &moment{at: e.later(e.fetched.at, shortly)}
	}
}

// weights loads them. The engine says when it begins and how long all of it took;
// a download is a part of that.
func (e *enginePod) weights() {
	start := e.says(lifecycle.WeightsStarted, shortly, nil)
	load := start
	if e.fetched == nil && e.odds(fetchesModel) {
		load = e.then(start, fetchTakes)
		e.now = load
		e.tellLine(lifecycle.Fact{Name: lifecycle.DownloadFinished, Container: engineContainer, Attempt: e.attempt}, load, start)
		e.passes("model.download", start)
	}
	e.now = e.then(load, weightsTake)
	finished := lifecycle.Fact{Name: lifecycle.WeightsFinished, Container: engineContainer, Attempt: e.attempt}
	if e.odds(twoRanks) {
		finished.Copy = "0"
		e.tellLine(finished, &moment{at: e.now.at.Add(-300 * time.Millisecond)}, start)
		finished.Copy = "1"
	}
	e.tellLine(finished, e.now, start)
	e.passes("weights.load", load)
	if load != start {
		e.parts(2, whole{"weights.load", start, e.now})
	}
}

// compile compiles the model, or finds it compiled.
func (e *enginePod) compile() {
	start := e.moment(e.now.at)
	cached := e.odds(compiled)
	takes := compileTakes
	if cached {
		takes = cachedTakes
	}
	e.now = e.then(start, takes)
	e.tellLine(lifecycle.Fact{Name: lifecycle.CompileFinished, Container: engineContainer, Attempt: e.attempt, Cached: cached}, e.now, start)
	e.passes("compile", start)
}

// whole comes up all the way, and returns when the engine serves.
func (e *enginePod) whole(workers window.Instant) (serves *moment) {
	e.boot(workers)
	e.weights()
	e.compile()
	start := e.now // the memory is measured from here on
	e.says(lifecycle.ProfileFinished, profileTakes, e.moment(start.at))
	e.says(lifecycle.KVCacheFinished, cacheTakes, nil)
	e.passes("kv_cache.init", start)
	start = e.moment(e.now.at)
	e.now = e.then(start, graphsTake)
	graphs := lifecycle.Fact{
		Name: lifecycle.GraphsFinished, Container: engineContainer, Attempt: e.attempt,
		Clock: lifecycle.Clock{Kind: lifecycle.Engine, Of: e.uid}, Grain: time.Second,
		Took: e.now.at.Sub(start.at).Round(time.Second), // the line has no fractions
	}
	e.tellTook(graphs, e.now, start)
	e.passes("graph.capture", start)
	start = e.now
	e.says(lifecycle.WarmupFinished, warmupTakes, nil)
	e.says(lifecycle.EngineReady, seconds(0.2, 2), nil)
	e.passes("warmup", start)
	return e.now
}

// fail comes up to somewhere and ends. Nothing says what it was at, but for
// weights that are being loaded.
func (p *startingPod) fail(runs *moment, workers window.Instant, attempt int) (exited *moment) {
	e := p.engine(runs, attempt)
	how := lifecycle.Fact{Reason: "Error", ExitCode: 1}
	switch p.draw.IntN(3) {
	case 0:
		exited = p.exit(engineContainer, attempt, runs, bootTakes, how)
		p.untold("engine.boot", engineContainer, attempt, runs, exited)
	case 1:
		e.boot(workers)
		start := e.says(lifecycle.WeightsStarted, shortly, nil)
		exited = p.exit(engineContainer, attempt, start, weightsTake, lifecycle.Fact{Reason: "OOMKilled", ExitCode: 137})
		p.stage("weights.load", engineContainer, attempt, start, exited)
	default:
		e.boot(workers)
		e.weights()
		start := e.now
		exited = p.exit(engineContainer, attempt, start, compileTakes, how)
		p.untold("compile", engineContainer, attempt, start, exited)
	}
	return exited
}
