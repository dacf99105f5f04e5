// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// quickFleets is a scenario from flags: one fleet an engine.
type quickFleets struct {
	vllm, sglang, tensorrtLLM count
	vllmVersion               string
	rate                      rate
	tenants                   count
	slow                      slowEngines
}

// scenario numbers the engines as their ports are: vLLM first, then SGLang,
// then TensorRT-LLM.
func (q *quickFleets) scenario() (fleetsim.Scenario, error) {
	var s fleetsim.Scenario
	s.Fleets = append(s.Fleets, q.fleet("vllm", fleetsim.VLLM, "qwen3-8b", q.vllm)...)
	for i := range s.Fleets {
		s.Fleets[i].Version = fleetsim.Version(q.vllmVersion)
	}
	s.Fleets = append(s.Fleets, q.fleet("sglang", fleetsim.SGLang, "llama-3.3-70b", q.sglang)...)
	s.Fleets = append(s.Fleets, q.fleet("tensorrt-llm", fleetsim.TensorRTLLM, "llama-3.3-70b", q.tensorrtLLM)...)
	if len(s.Fleets) == 0 {
		return s, errors.New("there is no engine to simulate: set --vllm, --sglang or --tensorrt-llm to 1 or more")
	}
	for _, slow := range q.slow {
		fault, err := slow.fault(s.Fleets)
		if err != nil {
			return s, err
		}
		s.Faults = append(s.Faults, fault)
	}
	return s, nil
}

func (q *quickFleets) fleet(name string, engine fleetsim.EngineKind, model string, replicas count) []fleetsim.Fleet {
	if replicas == 0 {
		return nil
	}
	return []fleetsim.Fleet{{
		Name: name, Engine: engine, ModelName: model, Replicas: int(replicas),
		Latency:  fleetsim.Latency{PodNoise: 0.03, DriftNoise: 0.03},
		Arrivals: fleetsim.Arrivals{Rate: float64(q.rate) * float64(replicas)},
		Tenants:  fleetsim.Tenants{Count: int(q.tenants)},
	}}
}

// count is a number of replicas.
type count int

func (c *count) String() string { return strconv.Itoa(int(*c)) }

// Set reads 0 or more.
func (c *count) Set(text string) error {
	number, err := strconv.Atoi(text)
	if err != nil || number < 0 {
		return errors.New("write a whole number, 0 or more")
	}
	*c = count(number)
	return nil
}

// rate is in requests a second for each replica.
type rate float64

func (r *rate) String() string { return strconv.FormatFloat(float64(*r), 'g', -1, 64) }

// Set reads more than 0.
func (r *rate) Set(text string) error {
	number, err := positive(text)
	if err != nil {
		return errors.New("write the requests a second for each replica, more than 0")
	}
	*r = rate(number)
	return nil
}

// positive reads a number above 0 that is finite.
func positive(text string) (float64, error) {
	number, err := strconv.ParseFloat(text, 64)
	if err == nil && (!(number > 0) || math.IsInf(number, 1)) {
		err = strconv.ErrRange
	}
	return number, err
}

// slowEngine is one value of --slow.
type slowEngine struct {
	engine int
	factor float64
}

// fault finds the replica among the fleets, which are numbered through.
func (s slowEngine) fault(fleets []fleetsim.Fleet) (fleetsim.Fault, error) {
	replica := s.engine
	for i := range fleets {
		if replica < fleets[i].Replicas {
			return fleetsim.Fault{Kind: fleetsim.Slow, Fleet: fleets[i].Name, Replicas: []int{replica}, Factor: s.factor}, nil
		}
		replica -= fleets[i].Replicas
	}
	return fleetsim.Fault{}, fmt.Errorf("--slow %d=%v: engines are numbered 0 to %d", s.engine, s.factor, s.engine-replica-1)
}

type slowEngines []slowEngine

func (s *slowEngines) String() string { return "" }

// Set reads I=F.
func (s *slowEngines) Set(text string) error {
	number, factor, found := strings.Cut(text, "=")
	engine, engineErr := strconv.Atoi(number)
	times, factorErr := positive(factor)
	if !found || engineErr != nil || factorErr != nil || engine < 0 {
		return errors.New("write the engine's number and how many times as long a step takes, such as 3=1.8")
	}
	*s = append(*s, slowEngine{engine: engine, factor: times})
	return nil
}
