// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"math"
	"net/http"
	"slices"
)

// finishStep gives every request of the batch what the step brought it, lets
// go of those that are done, and makes room when the KV cache is over full.
func (e *engine) finishStep() {
	e.stepEnd = math.Inf(1)
	took := e.now - e.stepStart
	decoded, made := uint64(0), 0
	kept := e.running[:0]
	for _, r := range e.running {
		if r.todo > 0 {
			r.todo -= r.chunk
			if r.chunk == 0 || r.todo > 0 {
				kept = append(kept, r)
				continue
			}
			e.prefilled(r)
		}
		switch {
		case r.made == 0:
			e.firstToken(r)
		case r.last == e.stepStart:
			decoded++
		default: // back after a preemption
			e.samples[itl].observe(e.now-r.last, 1)
		}
		made++
		r.made++
		r.last = e.now
		r.held++
		e.held++
		if r.made < r.output {
			kept = append(kept, r)
		} else {
			e.finish(r)
		}
	}
	clear(e.running[len(kept):])
	e.running = kept
	e.preempt()
	if decoded > 0 {
		e.samples[itl].observe(took, decoded)
	}
	e.countStep(took, made)
}

func (e *engine) countStep(took float64, made int) {
	e.samples[stepTokens].observe(float64(e.stepPrefill+made), 1)
	v := &e.values
	v[steps]++
	v[generated] += float64(made)
	v[busySeconds] += took
	v[stepSeconds] = took
	v[prefillTokens] = float64(e.stepPrefill)
	if e.stepPrefill > 0 {
		v[prefillSeconds] += took
		e.samples[prefillLengths].observe(float64(e.stepPrefill), 1)
	} else {
		v[decodeSeconds] += took
		if v[decodeSteps]++; int(v[decodeSteps])%decodeLogging == 0 {
			v[hitRate] = 0
		}
	}
	e.rate.add(e.now, float64(made))
	e.gpu.work(e.now, took)
}

// prefilled notes that the whole prompt of a request is in the cache.
func (e *engine) prefilled(r *request) {
	if r.made > 0 {
		return // a preempted request prefills once more, and counts once
	}
	e.values[promptTokens] += float64(r.prompt)
	e.values[promptCached] += float64(r.cached)
	e.values[promptComputed] += float64(r.prompt - r.cached)
}

func (e *engine) firstToken(r *request) {
	r.first = e.now
	e.samples[ttft].observe(e.now-r.arrived, 1)
	e.samples[waitTime].observe(r.scheduled-r.arrived, 1)
	e.samples[prefillStageTime].observe(e.now-r.scheduled, 1)
}

// finish ends a request and makes the observations that engines make then.
func (e *engine) finish(r *request) {
	e.tell(r, http.StatusOK, e.now)
	e.held -= r.held
	e.firstFinished = min(e.firstFinished, e.now)
	observe := func(s sample, v float64) { e.samples[s].observe(v, 1) }
	total, decode := e.now-r.arrived, e.now-r.first
	observe(e2e, total)
	observe(queueTime, r.scheduled-r.arrived)
	observe(prefillTime, r.first-r.scheduled)
	observe(inferenceTime, e.now-r.scheduled)
	observe(decodeTime, decode)
	observe(tpot, decode/float64(max(r.made-1, 1)))
	observe(ttftAtEnd, r.first-r.arrived)
	if r.made > 1 {
		observe(tpotAtEnd, decode/float64(r.made-1))
		observe(decodeAtEnd, decode)
	}
	observe(cachedLength, float64(r.cached))
	observe(promptLength, float64(r.prompt))
	observe(computedLength, float64(r.prompt-r.cached))
	observe(generatedLength, float64(r.made))
	observe(maxGeneratedLength, float64(r.made))
	observe(maxTokensParam, float64(r.limit))
	observe(nParam, 1)
	observe(httpDuration, total)
	observe(httpDurationFine, total)
	observe(requestSize, math.Round(bytesPerPost+bytesPerToken*float64(r.prompt)))
	observe(responseSize, 0) // a stream has no content length
	v := &e.values
	v[finished]++
	v[finishedPromptTokens] += float64(r.prompt)
	host := r.cachedHost(e.fleet.HostHitShare)
	v[finishedCached] += float64(r.cached)
	v[finishedCachedDevice] += float64(r.cached - host)
	v[finishedCachedHost] += float64(host)
	v[finishedGenerated] += float64(r.made)
	if r.made == r.limit {
		v[cutOff]++
	} else {
		v[stopped]++
	}
}

// fail ends a request as it arrives. vLLM observes what it did not come to as
// zero; the others count it and no more.
func (e *engine) fail(r *request) {
	e.tell(r, http.StatusInternalServerError, r.arrived+failingTime)
	e.values[failed]++
	if e.fleet.Engine != VLLM {
		return
	}
	e.firstFinished = min(e.firstFinished, e.now)
	observe := func(v float64, samples ...sample) {
		for _, s := range samples {
			e.samples[s].observe(v, 1)
		}
	}
	observe(failingTime, e2e, queueTime, httpDuration, httpDurationFine)
	observe(0, inferenceTime, prefillTime, decodeTime, tpot, generatedLength, maxGeneratedLength, responseSize)
	observe(float64(r.prompt), promptLength, computedLength)
	observe(float64(r.limit), maxTokensParam)
	observe(1, nParam)
	observe(math.Round(bytesPerPost+bytesPerToken*float64(r.prompt)), requestSize)
}

// preempt sends the newest requests back to the head of the line until the KV
// cache holds what the others need. They will prefill again.
func (e *engine) preempt() {
	for e.held > e.fleet.Limits.KVCacheTokens {
		last := len(e.running) - 1
		r := e.running[last]
		e.running = e.running[:last]
		e.held -= r.held
		e.waiting = slices.Insert(e.waiting, 0, r)
		e.values[preemptions]++
		e.values[preemptedPrompt] += float64(r.prompt)
		e.values[preemptedGenerated] += float64(r.made)
	}
}
