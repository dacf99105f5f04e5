// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

// Snapshot is what an engine is doing and has measured since its process
// started, whatever its page shows.
type Snapshot struct {
	// Waiting and Running are numbers of requests, KVUsage is 0 to 1.
	Waiting, Running int
	KVUsage          float64
	// TTFT and ITL are in seconds, with the bounds of the page, or vLLM's where
	// the page has no such histogram.
	TTFT, ITL Histogram
	// Finished and Failed are requests: those with an answer, and those that
	// ended in an error.
	Finished, Failed float64
	// PromptTokens and GeneratedTokens are counted as they are processed,
	// PrefixQueries and PrefixHits as they are looked up in the prefix cache.
	PromptTokens, GeneratedTokens, PrefixQueries, PrefixHits float64
}

// Snapshot copies the engine's state of this moment.
func (e *Engine) Snapshot() Snapshot {
	e.sim.refresh()
	v := &e.sim.values
	return Snapshot{
		Waiting:         len(e.sim.waiting),
		Running:         len(e.sim.running),
		KVUsage:         v[kvUsage],
		TTFT:            e.sim.samples[ttft].snapshot(),
		ITL:             e.sim.samples[itl].snapshot(),
		Finished:        v[finished],
		Failed:          v[failed],
		PromptTokens:    v[promptTokens],
		GeneratedTokens: v[generated],
		PrefixQueries:   v[cacheQueried],
		PrefixHits:      v[cacheFound],
	}
}
