// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Scenario says what to simulate. The zero value of an optional field stands
// for its default, which Parse fills in.
type Scenario struct {
	// Seed of every random choice.
	Seed uint64 `yaml:"seed"`
	// Fleets that run side by side and do not touch each other.
	Fleets []Fleet `yaml:"fleets"`
	// Faults that strike replicas, and surges of what is sent to them.
	Faults []Fault `yaml:"faults"`
	// GatewayPage adds a target: the metrics page of the gateway before all
	// fleets, which counts tokens by tenant.
	GatewayPage bool `yaml:"gateway_page"`
}

// EngineKind names an engine whose page is simulated.
type EngineKind string

// The engines that can be simulated.
const (
	VLLM        EngineKind = "vllm"
	SGLang      EngineKind = "sglang"
	TensorRTLLM EngineKind = "tensorrt_llm"
)

// Fleet is a number of equal replicas that serve one model.
type Fleet struct {
	// Name of the fleet; replica i is the pod Name-i.
	Name string `yaml:"name"`
	// Engine whose page the replicas show.
	Engine EngineKind `yaml:"engine"`
	// Version is how that engine spells its page. Default: current.
	Version Version `yaml:"version"`
	// Versions, if there are any, are those of single replicas instead: replica
	// i has number i, and they repeat from the start.
	Versions []Version `yaml:"versions"`
	// ReplicasPerNode is how many replicas the agent of one node shows on its
	// page, with version ray. Default: all.
	ReplicasPerNode int `yaml:"replicas_per_node"`
	// ModelName is the label model_name.
	ModelName string `yaml:"model_name"`
	// Replicas is how many there are.
	Replicas int `yaml:"replicas"`
	// Nodes that the replicas run on, the GPU models they have, the revisions of
	// the model they serve and the versions of the engine, as a scrape labels
	// them: replica i has number i of each list, and they repeat from the start.
	// Each node has a dcgm-exporter.
	Nodes          []string `yaml:"nodes"`
	GPUModels      []string `yaml:"gpu_models"`
	Revisions      []string `yaml:"revisions"`
	EngineVersions []string `yaml:"engine_versions"`
	// Limits of one engine.
	Limits Limits `yaml:"limits"`
	// Latency of one engine step.
	Latency Latency `yaml:"latency"`
	// Prompt and Output say how many tokens a request brings and asks for.
	Prompt Tokens `yaml:"prompt_tokens"`
	Output Tokens `yaml:"output_tokens"`
	// PrefixHitRatio is the share of every prompt that is found in the prefix
	// cache, 0 to below 1.
	PrefixHitRatio float64 `yaml:"prefix_hit_ratio"`
	// HostHitShare is the share of those hits that is found in host memory and
	// not on the device, 0 to below 1. SGLang and TensorRT-LLM tell them apart.
	HostHitShare float64 `yaml:"host_hit_share"`
	// Arrivals say when requests reach the fleet.
	Arrivals Arrivals `yaml:"arrivals"`
	// Tenants who send the requests. Default: nobody is told.
	Tenants Tenants `yaml:"tenants"`
	// Router chooses the replica of a request. Default: round_robin.
	Router RouterKind `yaml:"router"`
}

// Limits of one engine, named as vLLM names them.
type Limits struct {
	// MaxNumSeqs is the most requests in a batch. Default: 256.
	MaxNumSeqs int `yaml:"max_num_seqs"`
	// MaxNumBatchedTokens is the most tokens of one step. Default: 8192.
	MaxNumBatchedTokens int `yaml:"max_num_batched_tokens"`
	// MaxModelLen is the most tokens of one request. Default: 32768.
	MaxModelLen int `yaml:"max_model_len"`
	// KVCacheTokens is how many tokens the KV cache holds. Default: 400000.
	KVCacheTokens int `yaml:"kv_cache_tokens"`
}

// Latency is the model of one engine step; see the package documentation.
type Latency struct {
	// Base is the time of a step with an empty batch. Default: 8ms.
	Base time.Duration `yaml:"itl_base"`
	// PerRunning is added for each request in the batch. Default: 120us.
	PerRunning time.Duration `yaml:"itl_per_running"`
	// PerPrefillToken is added for each prompt token prefilled. Default: 40us.
	PerPrefillToken time.Duration `yaml:"itl_per_prefill_token"`
	// Curvature is by how much a full batch costs more than PerRunning says:
	// 0.3 makes its share 30 % larger. Default: 0.
	Curvature float64 `yaml:"curvature"`
	// PodNoise is the standard deviation of a replica's permanent offset, on
	// the log scale. Default: 0.
	PodNoise float64 `yaml:"pod_noise"`
	// DriftNoise is the standard deviation of a replica's slow drift, on the
	// log scale: first-order autoregressive, coefficient 0.8 a minute.
	// Default: 0.
	DriftNoise float64 `yaml:"ar_noise"`
	// Jitter is the coefficient of variation of the noise of single steps, and
	// Distribution its shape. Default: 0.1, lognormal.
	Jitter       *float64 `yaml:"jitter"`
	Distribution Shape    `yaml:"distribution"`
}

// Tokens is a distribution of token counts, cut off at Max.
type Tokens struct {
	// Mean number of tokens. Default: 512 for prompts, 128 for output.
	Mean float64 `yaml:"mean"`
	// CV is the coefficient of variation. Default: 0.6.
	CV *float64 `yaml:"cv"`
	// Max is the most tokens; for output it is also the max_tokens that
	// requests ask for. Default: ten times the mean.
	Max int `yaml:"max"`
	// Distribution is the shape. Default: lognormal.
	Distribution Shape `yaml:"distribution"`
}

// ArrivalProcess names how arrivals are made.
type ArrivalProcess string

// The arrival processes.
const (
	Poisson     ArrivalProcess = "poisson"
	GammaSpaced ArrivalProcess = "gamma"
	Trace       ArrivalProcess = "trace"
)

// Arrivals of requests at a fleet.
type Arrivals struct {
	// Process that makes them. Default: poisson.
	Process ArrivalProcess `yaml:"process"`
	// Rate of poisson and gamma, requests a second over the whole fleet.
	Rate float64 `yaml:"rate"`
	// Burstiness is the shape of gamma-spaced arrivals: 1 is Poisson, below 1
	// comes in bursts, above 1 is more regular. Default: 1.
	Burstiness float64 `yaml:"burstiness"`
	// Requests is how many there are in all; then the fleet is idle. Default: no
	// end, or the trace's.
	Requests int `yaml:"requests"`
	// File of a trace, plain or .gz, from the scenario's own folder.
	File string `yaml:"file"`
	// Format of the trace: azure, mooncake or servegen.
	Format TraceFormat `yaml:"format"`
	// Speed plays a trace faster (above 1) or slower. Default: 1.
	Speed float64 `yaml:"speed"`
}

// Load reads a scenario file; paths in it count from its folder.
func Load(path string) (Scenario, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Scenario{}, fmt.Errorf("read scenario: %w", err)
	}
	s, err := Parse(text)
	if err != nil {
		return Scenario{}, fmt.Errorf("scenario %s: %w", path, err)
	}
	for i := range s.Fleets {
		if file := &s.Fleets[i].Arrivals.File; *file != "" && !filepath.IsAbs(*file) {
			*file = filepath.Join(filepath.Dir(path), *file)
		}
	}
	return s, nil
}

// Parse reads a scenario from YAML, fills in defaults and validates it. A key
// that does not exist is an error.
func Parse(text []byte) (Scenario, error) {
	s, err := decode(text)
	if err != nil {
		return Scenario{}, err
	}
	s.setDefaults()
	return s, s.validate()
}

// setDefaults fills in what was left out.
func (s *Scenario) setDefaults() {
	for i := range s.Fleets {
		s.Fleets[i].setDefaults()
	}
	for i := range s.Faults {
		s.Faults[i].setDefaults(s.Fleets)
	}
}

func (f *Fleet) setDefaults() {
	f.Name = cmp.Or(f.Name, f.ModelName)
	f.Version = cmp.Or(f.Version, Current)
	f.Replicas = cmp.Or(f.Replicas, 1)
	f.Router = cmp.Or(f.Router, RoundRobin)
	f.Limits.MaxNumSeqs = cmp.Or(f.Limits.MaxNumSeqs, 256)
	f.Limits.MaxNumBatchedTokens = cmp.Or(f.Limits.MaxNumBatchedTokens, 8192)
	f.Limits.MaxModelLen = cmp.Or(f.Limits.MaxModelLen, 32768)
	f.Limits.KVCacheTokens = cmp.Or(f.Limits.KVCacheTokens, 400_000)
	f.Latency.Base = cmp.Or(f.Latency.Base, 8*time.Millisecond)
	f.Latency.PerRunning = cmp.Or(f.Latency.PerRunning, 120*time.Microsecond)
	f.Latency.PerPrefillToken = cmp.Or(f.Latency.PerPrefillToken, 40*time.Microsecond)
	f.Latency.Distribution = cmp.Or(f.Latency.Distribution, ShapeLognormal)
	f.Latency.Jitter = cmp.Or(f.Latency.Jitter, new(0.1))
	f.Prompt.setDefaults(512)
	f.Output.setDefaults(128)
	f.Tenants.setDefaults(f.Prompt.Mean)
	f.Arrivals.Process = cmp.Or(f.Arrivals.Process, Poisson)
	f.Arrivals.Burstiness = cmp.Or(f.Arrivals.Burstiness, 1)
	f.Arrivals.Speed = cmp.Or(f.Arrivals.Speed, 1)
}

// versionOf returns how a replica spells its page.
func (f *Fleet) versionOf(replica int) Version {
	return cmp.Or(repeated(f.Versions, replica), f.Version)
}

// nodeOf returns the node that a replica runs on; empty if that is not told.
func (f *Fleet) nodeOf(replica int) string { return repeated(f.Nodes, replica) }

// repeated is number i of a list that repeats from the start; empty if the list
// is.
func repeated[T ~string](list []T, i int) T {
	if len(list) == 0 {
		return ""
	}
	return list[i%len(list)]
}

func (t *Tokens) setDefaults(mean float64) {
	t.Mean = cmp.Or(t.Mean, mean)
	t.CV = cmp.Or(t.CV, new(0.6))
	t.Max = cmp.Or(t.Max, int(10*t.Mean))
	t.Distribution = cmp.Or(t.Distribution, ShapeLognormal)
}
