// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

// Signal is an engine-independent measure of a serving engine. What each
// engine calls it, and in which unit, is data of package dialect.
type Signal uint8

// The signals, in canonical units: seconds, requests, tokens, and ratios of 0
// to 1. Latencies are histograms, loads are gauges, the rest are counters.
const (
	TTFT             Signal = iota // time to first token, s
	ITL                            // inter-token latency, s; per decode step (vLLM) or token (SGLang)
	TPOT                           // time per output token, s; mean of one request
	E2E                            // end-to-end request latency, s
	QueueTime                      // time from arrival to first scheduling, s
	Waiting                        // requests queued
	Running                        // requests in the batch
	KVUsage                        // share of the KV cache in use, 0 to 1
	PrefixHits                     // prompt tokens found in the prefix cache
	PrefixQueries                  // prompt tokens looked up in the prefix cache
	PromptTokens                   // prompt tokens, cached ones included
	GenerationTokens               // output tokens
	Finished                       // requests finished, by reason
	Preemptions                    // requests pushed back to the queue
	SignalCount                    // how many signals there are; not a signal
)

var signalNames = [SignalCount]string{
	TTFT:             "ttft",
	ITL:              "itl",
	TPOT:             "tpot",
	E2E:              "e2e",
	QueueTime:        "queue_time",
	Waiting:          "waiting",
	Running:          "running",
	KVUsage:          "kv_usage",
	PrefixHits:       "prefix_hits",
	PrefixQueries:    "prefix_queries",
	PromptTokens:     "prompt_tokens",
	GenerationTokens: "generation_tokens",
	Finished:         "finished",
	Preemptions:      "preemptions",
}

// String is the signal's name as it stands in configuration and in the
// attribute `signal` of derived metrics.
func (s Signal) String() string {
	if s >= SignalCount {
		return "unknown"
	}
	return signalNames[s]
}

// IsLatency tells whether the signal is a histogram of seconds.
func (s Signal) IsLatency() bool { return s <= QueueTime }

// ParseSignal is the inverse of String.
func ParseSignal(name string) (Signal, bool) {
	for s, n := range signalNames {
		if n == name {
			return Signal(s), true
		}
	}
	return 0, false
}

// mostRequests is more than any engine can hold; a clock read for a count lies
// above it.
const mostRequests = 1_000_000

// InRange tells whether a gauge of the signal can have the value.
func (s Signal) InRange(v float64) bool {
	if s == KVUsage {
		return v >= 0 && v <= 1
	}
	return v >= 0 && v <= mostRequests
}
