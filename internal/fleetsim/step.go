// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"math"
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
	if e.stepPrefill > 0 {
		v[prefillSeconds] += took
	} else {
		v[decodeSeconds] += took
	}
	e.rate.add(e.now, float64(made))
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
	v[finishedCachedTokens] += float64(r.cached)
	v[finishedGenerated] += float64(r.made)
	if r.made == r.limit {
		v[cutOff]++
	} else {
		v[stopped]++
	}
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

// rateMeter measures a rate over the newest whole second.
type rateMeter struct {
	second, now, past float64
}

func (m *rateMeter) add(at, n float64) {
	m.roll(at)
	m.now += n
}

// roll moves to the second of at and returns the rate of the one before it.
func (m *rateMeter) roll(at float64) float64 {
	switch second := math.Floor(at); second - m.second {
	case 0:
	case 1:
		m.second, m.past, m.now = second, m.now, 0
	default:
		m.second, m.past, m.now = second, 0, 0
	}
	return m.past
}

// refresh writes the gauges of this moment into the engine's values.
func (e *engine) refresh() {
	v, limits := &e.values, &e.fleet.Limits
	held, capacity := float64(e.held), float64(limits.KVCacheTokens)
	v[one] = 1
	v[running] = float64(len(e.running))
	v[waiting] = float64(len(e.waiting))
	v[kvUsed] = held
	v[kvFree] = capacity - held
	v[kvUsage] = held / capacity
	v[kvCapacity] = capacity
	v[decodeLengths] = 0
	for _, r := range e.running {
		if r.todo == 0 {
			v[decodeLengths] += float64(r.prompt + r.made)
		}
	}
	v[throughput] = e.rate.roll(e.now)
	v[batchFill] = v[running] / float64(limits.MaxNumSeqs)
	v[newTokenRatio] = 0.7
	v[contextLength] = float64(limits.MaxModelLen)
	v[pageSize] = kvPageTokens
	v[pages] = math.Floor(capacity / kvPageTokens)
	e.refreshProcess()
}

// refreshProcess writes what the Python runtime would say of itself: made up,
// but rising and falling with the work.
func (e *engine) refreshProcess() {
	v := &e.values
	v[processStart] = e.epoch + e.started
	v[createdAt] = e.epoch + e.ready
	v[firstFinishedAt] = e.epoch + e.firstFinished
	v[processCPU] = math.Round(100*(60+0.6*v[busySeconds])) / 100
	v[processMemory] = 1.6e9 + 4096*math.Min(v[finished], 50_000)
	v[virtualMemory] = 2.7378753536e10
	v[openFiles] = 41 + v[running] + v[waiting]
	v[maxFiles] = 65535
	v[gcYoung] = 2000 + math.Floor(v[steps]/40)
	v[gcMiddle] = math.Floor(v[gcYoung] / 11)
	v[gcOld] = math.Floor(v[gcMiddle] / 20)
	v[gcYoungObjects] = 5 * v[gcYoung]
	v[gcMiddleObjects] = 11 * v[gcMiddle]
	v[gcOldObjects] = 98 * v[gcOld]
	v[weightsSeconds], v[cacheSeconds], v[graphSeconds] = 31.5, 2.25, 11.75
	v[schedulerSeconds], v[tokenizerSeconds] = 52.5, loadingTime
	v[weightsGB], v[cacheGB], v[graphGB], v[spareGB] = 27.5, 41.25, 1.5, 7.75
}
