// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
)

const (
	kvPageTokens  = 16   // tokens of one KV cache block
	decodeLogging = 40   // decode steps from one look of SGLang at its gauges to the next
	driftPeriod   = 60   // seconds between two steps of the slow drift
	driftMemory   = .8   // first-order autoregressive coefficient of the drift
	loadingTime   = 57   // seconds from process start to the engine's first series
	failingTime   = .005 // seconds in which a request fails
	bytesPerToken = 4.2
	bytesPerPost  = 420 // headers and fields of a request's JSON body
)

// request is one request on its way through an engine. Times are seconds since
// the simulation began, negative until they come; lengths are tokens.
type request struct {
	number uint64 // in its fleet, from 1
	tenant int    // its number in the roster

	arrived, scheduled, first, last float64

	prompt, cached, output, limit int

	held  int // tokens in the KV cache
	todo  int // prompt tokens still to prefill
	chunk int // of those, in the step under way
	made  int // generated so far
}

// newRequest cuts a request to the limits of a fleet's engines.
func newRequest(f *Fleet, a arrival) *request {
	prompt := min(a.prompt, f.Limits.MaxModelLen-1)
	limit := min(f.Output.Max, f.Limits.MaxModelLen-prompt)
	return &request{
		number: a.number, tenant: a.tenant, arrived: a.at, scheduled: -1, first: -1,
		prompt: prompt, output: min(a.output, limit), limit: limit,
	}
}

// cachedHost is how many of the cached tokens lie in host memory.
func (r *request) cachedHost(share float64) int {
	return int(float64(r.cached)*share) / kvPageTokens * kvPageTokens
}

// engine simulates one serving process: a waiting line, a batch, and one step
// at a time that prefills and decodes for the whole batch.
type engine struct {
	fleet    *Fleet
	name     string // of its pod
	replica  int    // its number in the fleet
	seed     uint64
	rollouts []*Fault                                    // in force; it serves the newest
	tell     func(r *request, status int, ended float64) // of each request that ends
	gpu      *gpu
	epoch    float64 // Unix seconds at which the simulation began
	turns    []turn  // behaviour changes still to come

	waiting, running []*request
	held             int // tokens in the KV cache

	now              float64 // seconds since the simulation began
	stepStart        float64
	stepEnd          float64 // +Inf while idle
	stepPrefill      int
	started, ready   float64 // when this process began and when it made its series
	firstFinished    float64 // +Inf before the first finished request
	rate             rateMeter
	factors          []float64 // of the faults in force that slow it down
	failures         []float64 // shares of the errors faults in force
	failing, cutting *rand.Rand
	gaps             []*gap
	hung             int // hung faults in force
	hungAt           float64
	cold, warm       float64 // when the prefix cache was emptied, and when it is full again
	down             bool
	boots            int // processes that have been ready
	numbers
	bounds            map[sample][]float64 // new bounds
	stale             map[string]*numbers  // what stale families show; nil when they are gone
	dialect           *dialect
	page              []block
	noise             *rand.Rand
	jitter            variate
	offset            float64 // the replica's own factor
	driftRand         *rand.Rand
	drift, driftUntil float64 // on the log scale, and when it changes
	driftFactor       float64
}

func newEngine(f *fleetRun, replica int, turns []turn, seed uint64, epoch float64) *engine {
	name := podName(f.fleet, replica)
	uptime := float64(loadingTime + 600 + 7*replica) // pods of a fleet rarely start at the same second
	e := &engine{
		fleet:     f.fleet,
		name:      name,
		seed:      seed,
		replica:   replica,
		gpu:       newGPU(),
		epoch:     epoch,
		turns:     turns,
		bounds:    map[sample][]float64{},
		stale:     map[string]*numbers{},
		dialect:   dialectOf(f.fleet.Engine, f.fleet.versionOf(replica)),
		started:   -uptime,
		now:       loadingTime - uptime,
		jitter:    newVariate(f.fleet.Latency.Distribution, *f.fleet.Latency.Jitter),
		noise:     stream(seed, name, "jitter"),
		driftRand: stream(seed, name, "drift"),
		failing:   stream(seed, name, "errors"),
		cutting:   stream(seed, name, "length"),
	}
	e.tell = func(r *request, status int, ended float64) { f.tell(r, e.name, status, ended) }
	e.moveIn(name)
	e.drift = f.fleet.Latency.DriftNoise * e.driftRand.NormFloat64()
	e.driftUntil, e.driftFactor = driftPeriod, math.Exp(e.drift)
	e.boot()
	e.now = 0
	return e
}

// shutDown ends the process, with all requests on board, and begins the next,
// which answers after boot.
func (e *engine) shutDown() {
	for _, r := range slices.Concat(e.running, e.waiting) {
		e.tell(r, http.StatusServiceUnavailable, e.now)
	}
	e.boot()
	e.down = true
	e.started = e.now
}

// boot makes the process ready: nothing on board, counters at zero.
func (e *engine) boot() {
	e.down = false
	e.waiting, e.running, e.held = nil, nil, 0
	e.stepEnd = math.Inf(1)
	e.ready = e.now
	e.firstFinished = math.Inf(1)
	e.rate = rateMeter{}
	e.boots++
	e.numbers = numbers{}
	for i := range e.samples {
		e.samples[i] = newHistogram(nil)
	}
	e.samples[ttft], e.samples[itl] = newHistogram(vllmTTFT.v1), newHistogram(vllmITL.v1)
	e.page = newPage(e)
}

// restart replaces the process within no time.
func (e *engine) restart() {
	e.shutDown()
	e.boot()
}

func (e *engine) hang() {
	if e.hung++; e.hung == 1 {
		e.hungAt = e.now
	}
}

// resume lets a hung engine finish the step it was in, later by the pause.
func (e *engine) resume() {
	if e.hung--; e.hung == 0 {
		e.stepEnd += e.now - e.hungAt
		e.start()
	}
}

// advance plays the engine up to t.
func (e *engine) advance(t float64) {
	for len(e.turns) > 0 && e.turns[0].at <= t {
		e.work(e.turns[0].at)
		e.turns[0].apply(e)
		e.turns = e.turns[1:]
	}
	e.work(t)
}

// work ends every step that is due by t.
func (e *engine) work(t float64) {
	for e.hung == 0 && e.stepEnd <= t {
		e.now = e.stepEnd
		e.finishStep()
		e.start()
	}
	e.now = max(e.now, t)
}

// accept puts a request into the waiting line; a process that is down loses it.
func (e *engine) accept(a arrival) {
	serves := e.serves()
	r := newRequest(e.fleet, serves.asServed(a))
	if e.down {
		e.tell(r, http.StatusServiceUnavailable, a.at)
		return
	}
	if falls(e.failing, e.failures...) || falls(e.failing, serves.ErrorShare) {
		e.fail(r)
		return
	}
	if falls(e.cutting, serves.LengthShare) {
		r.limit = r.output
	}
	r.cached = int(float64(r.prompt)*e.fleet.PrefixHitRatio*e.warmth()) / kvPageTokens * kvPageTokens
	e.waiting = append(e.waiting, r)
	e.start()
}

// warmth is how full the prefix cache is, 0 to 1.
func (e *engine) warmth() float64 {
	if e.now >= e.warm {
		return 1
	}
	return (e.now - e.cold) / (e.warm - e.cold)
}

// start begins a step if the engine is idle and has work.
func (e *engine) start() {
	if e.hung > 0 || e.down || !math.IsInf(e.stepEnd, 1) {
		return
	}
	budget := e.fleet.Limits.MaxNumBatchedTokens
	for _, r := range e.running {
		budget -= e.plan(r, budget)
	}
	found, queried := e.values[cacheFound], e.values[cacheQueried]
	for len(e.waiting) > 0 && budget > 0 && e.fits(e.waiting[0]) {
		r := e.waiting[0]
		e.waiting = e.waiting[1:]
		e.admit(r)
		budget -= e.plan(r, budget)
	}
	if queried < e.values[cacheQueried] {
		e.values[hitRate] = (e.values[cacheFound] - found) / (e.values[cacheQueried] - queried)
	}
	if len(e.running) == 0 {
		return
	}
	e.stepPrefill = 0
	for _, r := range e.running {
		e.stepPrefill += r.chunk
	}
	e.stepStart = e.now
	e.stepEnd = e.now + e.duration(len(e.running), e.stepPrefill)
}

// plan gives a request its tokens of the step: a chunk of its prompt, or one to
// decode. It returns what that takes of the budget.
func (e *engine) plan(r *request, budget int) int {
	r.chunk = min(r.todo, max(budget, 0))
	return max(r.chunk, 1)
}

func (e *engine) fits(r *request) bool {
	return len(e.running) < e.fleet.Limits.MaxNumSeqs && e.held+r.prompt+r.made+1 <= e.fleet.Limits.KVCacheTokens
}

func (e *engine) admit(r *request) {
	if r.scheduled < 0 {
		r.scheduled = e.now
	}
	r.todo = r.prompt + r.made - r.cached
	r.held = r.prompt + r.made
	e.held += r.held
	e.running = append(e.running, r)
	e.lookUp(r)
}

// lookUp counts what a request finds in the prefix cache.
func (e *engine) lookUp(r *request) {
	v, host := &e.values, r.cachedHost(e.fleet.HostHitShare)
	reused := r.cached / kvPageTokens
	v[cacheQueried] += float64(r.prompt)
	v[cacheFound] += float64(r.cached)
	v[foundDevice] += float64(r.cached - host)
	v[foundHost] += float64(host)
	v[pagesReused] += float64(reused)
	v[pagesMissed] += math.Ceil(float64(r.prompt)/kvPageTokens) - float64(reused)
}

// duration of a step: the latency model of the package documentation.
func (e *engine) duration(batch, prefill int) float64 {
	l := &e.fleet.Latency
	n := float64(batch)
	bend := 1 + l.Curvature*n/float64(e.fleet.Limits.MaxNumSeqs)
	serves := e.serves()
	seconds := l.Base.Seconds() + l.PerRunning.Seconds()*n*bend + l.PerPrefillToken.Seconds()*float64(prefill)*serves.PrefillFactor
	seconds *= serves.Factor
	for _, factor := range e.factors {
		seconds *= factor
	}
	return seconds * e.offset * e.driftNow() * e.jitter.draw(e.noise)
}

// driftNow steps the slow drift up to now and returns its factor.
func (e *engine) driftNow() float64 {
	if e.now < e.driftUntil {
		return e.driftFactor
	}
	spread := e.fleet.Latency.DriftNoise * math.Sqrt(1-driftMemory*driftMemory)
	for ; e.driftUntil <= e.now; e.driftUntil += driftPeriod {
		e.drift = driftMemory*e.drift + spread*e.driftRand.NormFloat64()
	}
	e.driftFactor = math.Exp(e.drift)
	return e.driftFactor
}
