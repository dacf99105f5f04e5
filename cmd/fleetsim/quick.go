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
	vllm, sglang count
	rate         rate
	slow         slowEngines
}

// scenario numbers the engines as their ports are: vLLM first, then SGLang.
func (q *quickFleets) scenario() (fleetsim.Scenario, error) {
	var s fleetsim.Scenario
	s.Fleets = append(s.Fleets, q.fleet("vllm", fleetsim.VLLM, "qwen3-8b", q.vllm)...)
	s.Fleets = append(s.Fleets, q.fleet("sglang", fleetsim.SGLang, "llama-3.3-70b", q.sglang)...)
	if len(s.Fleets) == 0 {
		return s, errors.New("there is no engine to simulate: set --vllm or --sglang to 1 or more")
	}
	vllm, all := int(q.vllm), int(q.vllm+q.sglang)
	for _, slow := range q.slow {
		fleet, replica := "vllm", slow.engine
		if replica >= vllm {
			fleet, replica = "sglang", replica-vllm
		}
		if slow.engine >= all {
			return s, fmt.Errorf("--slow %d=%v: engines are numbered 0 to %d", slow.engine, slow.factor, all-1)
		}
		s.Faults = append(s.Faults, fleetsim.Fault{Kind: fleetsim.Slow, Fleet: fleet, Replicas: []int{replica}, Factor: slow.factor})
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
