// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import "slices"

// measure names a number that an engine keeps: a gauge it holds now, or a
// counter since its process started.
type measure int

const (
	zero measure = iota // always 0: a family that is declared but idle here
	one                 // always 1: the value of an info series

	// Gauges, read when a page is written.
	running
	waiting
	kvUsage         // tokens held over capacity, 0 to 1
	kvUsed          // tokens
	kvFree          // tokens
	kvCapacity      // tokens
	decodeLengths   // prompt and generated tokens of all requests in decode
	throughput      // generated tokens a second
	hitRate         // cached over prompt tokens of the newest prefill, 0 to 1
	contextLength   // tokens
	pageSize        // tokens
	pages           // KV pages
	batchFill       // running over max_num_seqs, 0 to 1
	createdAt       // Unix seconds at which the engine's series were made
	firstFinishedAt // Unix seconds of the first finished request
	processStart    // Unix seconds
	processCPU      // seconds
	processMemory   // bytes
	virtualMemory   // bytes
	openFiles       //
	maxFiles        //
	newTokenRatio   // 0 to 1
	weightsSeconds  // start-up stages, seconds
	cacheSeconds
	schedulerSeconds
	tokenizerSeconds
	graphSeconds
	weightsGB // memory, GB
	cacheGB
	graphGB
	spareGB

	// Counters.
	steps
	preemptions
	preemptedPrompt    // tokens
	preemptedGenerated // tokens
	promptTokens       // all prompt tokens, cached ones included, at the first token
	promptComputed
	promptCached
	cacheQueried // tokens looked up, at scheduling
	cacheFound   // tokens found, at scheduling
	generated    // tokens, as they are made
	stopped      // requests that ended by themselves
	cutOff       // requests that ended at max_tokens
	finished     // requests
	finishedPromptTokens
	finishedCachedTokens
	finishedGenerated
	requestBytes
	gcYoung // collections of each generation and what they collected
	gcMiddle
	gcOld
	gcYoungObjects
	gcMiddleObjects
	gcOldObjects
	busySeconds
	prefillSeconds
	decodeSeconds

	numMeasures
)

// sample names a distribution that an engine keeps as a histogram.
type sample int

const (
	ttft sample = iota
	itl
	tpot
	e2e
	queueTime // at the end of a request, as vLLM observes it
	waitTime  // the same at its first token, as SGLang does
	inferenceTime
	prefillTime      // at the end of a request
	prefillStageTime // at its first token
	decodeTime
	promptLength
	computedLength
	generatedLength
	maxGeneratedLength
	maxTokensParam
	nParam
	stepTokens
	httpDuration
	httpDurationFine
	requestSize
	responseSize

	numSamples
)

// histogram counts observations by bucket. counts[i] holds those above
// bounds[i-1] and at or below bounds[i]; the last one those above all bounds.
type histogram struct {
	bounds []float64
	counts []uint64
	count  uint64
	sum    float64
}

func newHistogram(bounds []float64) histogram {
	return histogram{bounds: bounds, counts: make([]uint64, len(bounds)+1)}
}

// observe adds n observations of the value v.
func (h *histogram) observe(v float64, n uint64) {
	i, _ := slices.BinarySearch(h.bounds, v)
	h.counts[i] += n
	h.count += n
	h.sum += v * float64(n)
}

// Histogram is a copy of an engine's distribution: Counts[i] observations lie
// at or below Bounds[i] and above the bound before it, the last count above all
// bounds.
type Histogram struct {
	Bounds []float64
	Counts []uint64
	Count  uint64
	Sum    float64
}

func (h *histogram) snapshot() Histogram {
	return Histogram{Bounds: slices.Clone(h.bounds), Counts: slices.Clone(h.counts), Count: h.count, Sum: h.sum}
}
