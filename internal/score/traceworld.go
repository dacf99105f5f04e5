// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"path/filepath"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/judge/outlier"
)

const (
	// traceReplicas serve each trace.
	traceReplicas = 4
	// tracePanes are ten hours: a trace of one hour is played at a tenth of its
	// speed.
	tracePanes = 10 * 60
	// traceFactor is by how much the last replica of each fleet is slow in the
	// last hour.
	traceFactor = 2
)

// traces are the public sets of requests that are played, by their file below
// the folder of data.
var traces = []struct {
	name, file string
	format     fleetsim.TraceFormat
	speed      float64
}{
	{"azure-code", "azure2023/AzureLLMInferenceTrace_code.csv.gz", fleetsim.Azure, 0.1},
	{"azure-conversation", "azure2023/AzureLLMInferenceTrace_conv.csv.gz", fleetsim.Azure, 0.1},
	{"mooncake-conversation", "mooncake/conversation_trace.jsonl.gz", fleetsim.Mooncake, 0.1},
	{"servegen-multimodal", "servegen/multimodal_mm-image_client_rates.csv.gz", fleetsim.ServeGen, 1},
}

// traceWorld is fleets of simulated engines that serve real requests: their
// arrivals and lengths, spread over the replicas by chance.
func traceWorld(data string, seed uint64) scored {
	s := fleetsim.Scenario{Seed: seed}
	for _, t := range traces {
		s.Fleets = append(s.Fleets, fleetsim.Fleet{
			Name: t.name, Engine: fleetsim.VLLM, ModelName: t.name, Replicas: traceReplicas, Router: fleetsim.RandomChoice,
			Latency:  fleetsim.Latency{PodNoise: noisy, DriftNoise: noisy},
			Arrivals: fleetsim.Arrivals{Process: fleetsim.Trace, Format: t.format, File: filepath.Join(data, t.file), Speed: t.speed},
		})
		s.Faults = append(s.Faults, fleetsim.Fault{
			Kind: fleetsim.Slow, Fleet: t.name, Replicas: []int{traceReplicas - 1}, Factor: traceFactor,
			From: (tracePanes - spellPanes) * time.Minute,
		})
	}
	w := playedWorld("traces", s, tracePanes, causeOf(fleetsim.Slow, outlier.Hardware))
	return scored{worlds: []*world{w}, figures: []figure{
		{name: "outlier_traces_false", target: atMost(0), take: falseCount},
		{name: "outlier_traces_found", take: foundShare},
	}}
}
