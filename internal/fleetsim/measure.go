// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"slices"
	"sort"
)

// measure names a number that an engine keeps: a gauge it holds now, or a
// counter since its process started.
type measure int

const (
	zero  measure = iota // always 0: a family that is declared but idle here
	one                  // always 1: the value of an info series
	unset                // always -1: what V0 of vLLM shows for a ratio it has not measured

	// Gauges, read when a page is written.
	running
	waiting
	kvUsage         // tokens held over capacity, 0 to 1
	kvUsed          // tokens
	kvFree          // tokens
	kvCapacity      // tokens
	decodeLengths   // prompt and generated tokens of all requests in decode
	throughput      // generated tokens a second
	hitRate         // cached over prompt tokens of the newest batch, 0 to 1; 0 when that was a decode
	hitShare        // cached over looked-up tokens since the start, 0 to 1
	pageHitShare    // the same of whole KV pages
	contextLength   // tokens
	pageSize        // tokens
	pages           // KV pages
	pagesUsed       //
	pagesFree       //
	pageUsage       // used over all pages, 0 to 1
	prefilling      // requests of the batch whose prompt is not yet done
	decoding        // the others
	maxBatch        // max_num_seqs
	maxBatchTokens  // max_num_batched_tokens
	prefillFill     // prefilling over max_num_seqs, 0 to 1
	stepSeconds     // of the newest step
	prefillTokens   // of the newest step
	clock           // Unix seconds of this moment
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
	gpuMemory // bytes

	// Counters.
	steps
	decodeSteps // those that prefilled nothing
	preemptions
	preemptedPrompt    // tokens
	preemptedGenerated // tokens
	promptTokens       // all prompt tokens, cached ones included, at the first token
	promptComputed
	promptCached
	cacheQueried // tokens looked up, at scheduling
	cacheFound   // tokens found, at scheduling
	foundDevice  // of those, on the device
	foundHost    // and in host memory
	pagesReused  // KV pages found, at scheduling
	pagesMissed  // KV pages not found
	generated    // tokens, as they are made
	processed    // prompt tokens and generated ones
	stopped      // requests that ended by themselves
	cutOff       // requests that ended at max_tokens
	finished     // requests
	failed       // requests that ended in an error
	finishedPromptTokens
	finishedCached // tokens; the next two are its parts
	finishedCachedDevice
	finishedCachedHost
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

// whole tells whether a gauge of the Rust frontend holds whole numbers.
func (m measure) whole() bool { return m != kvUsage }

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
	// What TensorRT-LLM observes at the end of a request, and not if it is zero.
	ttftAtEnd
	tpotAtEnd
	decodeAtEnd
	cachedLength   // prompt tokens of a request that were cached
	prefillLengths // prompt tokens of a step that prefilled
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
	i := sort.SearchFloat64s(h.bounds, v)
	h.counts[i] += n
	h.count += n
	h.sum += v * float64(n)
}

// numbers are all that a page can show of an engine.
type numbers struct {
	values  [numMeasures]float64
	samples [numSamples]histogram
}

func (n *numbers) clone() *numbers {
	copied := *n
	for i := range copied.samples {
		copied.samples[i].counts = slices.Clone(copied.samples[i].counts)
	}
	return &copied
}

// used tells whether a series has counted anything.
func (n *numbers) used(k kind, s *series) bool {
	if k == histogramKind || k == summaryKind {
		return n.samples[s.sample].count > 0
	}
	return n.values[s.value] > 0
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
