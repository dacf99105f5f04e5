// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package emit

import "github.com/llmfleet/llmfleet/internal/fleet"

// canonical are the signals of an engine, each in one spelling whatever the
// engine's own is, with what they say.
var canonical = []struct {
	signal      fleet.Signal
	description string
	attributes  []string
}{
	{fleet.TTFT, "Time to first token.", nil},
	{fleet.ITL, "Inter-token latency, weighted as the engine weights it: vLLM by decode step, SGLang by token.", nil},
	{fleet.TPOT, "Time per output token, mean of a request.", nil},
	{fleet.E2E, "Time from a request's arrival to its last token.", nil},
	{fleet.QueueTime, "Time from a request's arrival to its first scheduling.", nil},
	{fleet.KVTransferTime, "Time to move one request's KV cache.", nil},
	{fleet.Waiting, "Requests that wait for a place in the batch.", nil},
	{fleet.Running, "Requests in the batch.", nil},
	{fleet.KVUsage, "Share of the KV cache in use, mean over ranks.", nil},
	{fleet.PrefixHits, "Prompt tokens found in the prefix cache.", nil},
	{fleet.PrefixQueries, "Prompt tokens looked up in the prefix cache.", nil},
	{fleet.PrefixBlockHits, "Blocks found in the prefix cache, of engines that count blocks.", nil},
	{fleet.PrefixBlockQueries, "Blocks looked up in the prefix cache, of engines that count blocks.", nil},
	{fleet.PromptTokens, "Prompt tokens, cached ones included.", nil},
	{fleet.GenerationTokens, "Output tokens.", nil},
	{fleet.PromptLength, "Prompt tokens of one request.", nil},
	{fleet.OutputLength, "Output tokens of one request.", nil},
	{fleet.Finished, "Requests that ended, failed ones included, by reason.", []string{AttributeReason}},
	{fleet.Errors, "Requests that failed, by reason.", []string{AttributeReason}},
	{fleet.Preemptions, "Requests put back into the queue.", nil},
	{fleet.KVTransferBytes, "KV cache moved between engines or to and from other memory.", nil},
	{fleet.KVTransferFailures, "Moves of KV cache that failed.", nil},
	{fleet.StartupTime, "How long a stage of the engine's start took.", []string{AttributeStage}},
}

// Canonical is the metric of an engine's signal in the one spelling; nil if
// engines do not tell it.
func Canonical(s fleet.Signal) *Metric {
	for i := range Metrics {
		if Metrics[i].Name == canonicalName(s) {
			return &Metrics[i]
		}
	}
	return nil
}

func canonicalName(s fleet.Signal) string {
	name := "llmfleet.engine." + s.String()
	if s.Unit() == "1" {
		name += "_ratio"
	}
	return name
}

func canonicalMetrics() []Metric {
	var all []Metric
	for _, c := range canonical {
		all = append(all, Metric{
			canonicalName(c.signal), c.signal.Kind(), c.signal.Unit(), c.description,
			Replica, c.attributes, true, fleetIdentity, Development,
		})
	}
	return all
}
