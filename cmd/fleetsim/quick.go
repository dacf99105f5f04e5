// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// quickFleets is a scenario from flags: one fleet an engine.
type quickFleets struct {
	vllm, sglang int
	rate         float64 // requests a second for each replica
	slow         slowEngines
}

// scenario numbers the engines as their ports are: vLLM first, then SGLang.
func (q *quickFleets) scenario() (fleetsim.Scenario, error) {
	var s fleetsim.Scenario
	s.Fleets = append(s.Fleets, q.fleet("vllm", fleetsim.VLLM, "qwen3-8b", q.vllm)...)
	s.Fleets = append(s.Fleets, q.fleet("sglang", fleetsim.SGLang, "llama-3.3-70b", q.sglang)...)
	if len(s.Fleets) == 0 {
		return s, fmt.Errorf("there is no engine to simulate: set --vllm or --sglang to 1 or more")
	}
	for _, slow := range q.slow {
		fleet, replica := "vllm", slow.engine
		if replica >= q.vllm {
			fleet, replica = "sglang", replica-q.vllm
		}
		if slow.engine >= q.vllm+q.sglang {
			return s, fmt.Errorf("--slow %d: engines are numbered 0 to %d", slow.engine, q.vllm+q.sglang-1)
		}
		s.Faults = append(s.Faults, fleetsim.Fault{Kind: fleetsim.Slow, Fleet: fleet, Replicas: []int{replica}, Factor: slow.factor})
	}
	return s, nil
}

func (q *quickFleets) fleet(name string, engine fleetsim.EngineKind, model string, replicas int) []fleetsim.Fleet {
	if replicas <= 0 {
		return nil
	}
	return []fleetsim.Fleet{{
		Name: name, Engine: engine, ModelName: model, Replicas: replicas,
		Latency:  fleetsim.Latency{PodNoise: 0.03, DriftNoise: 0.03},
		Arrivals: fleetsim.Arrivals{Rate: q.rate * float64(replicas)},
	}}
}

// slowEngine is one value of --slow.
type slowEngine struct {
	engine int
	factor float64
}

type slowEngines []slowEngine

func (s *slowEngines) String() string { return "" }

// Set reads I=F.
func (s *slowEngines) Set(text string) error {
	number, factor, found := strings.Cut(text, "=")
	engine, engineErr := strconv.Atoi(number)
	times, factorErr := strconv.ParseFloat(factor, 64)
	if !found || engineErr != nil || factorErr != nil || engine < 0 || times <= 0 {
		return fmt.Errorf("write the engine's number and how many times as long a step takes, such as 3=1.8")
	}
	*s = append(*s, slowEngine{engine: engine, factor: times})
	return nil
}
