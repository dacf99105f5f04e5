// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// validate reports every mistake in a scenario that has its defaults, each with
// the key it is at and what to write instead.
func (s *Scenario) validate() error {
	var errs mistakes
	if len(s.Fleets) == 0 {
		errs.add("fleets", "is empty: name at least one fleet with engine, model_name and arrivals")
	}
	names := map[string]bool{}
	for i := range s.Fleets {
		f := &s.Fleets[i]
		key := fmt.Sprintf("fleets[%d]", i)
		if names[f.Name] {
			errs.add(key+".name", "%q is taken by another fleet: give each a name of its own", f.Name)
		}
		names[f.Name] = true
		f.validate(key, &errs)
	}
	for i := range s.Faults {
		s.Faults[i].validate(fmt.Sprintf("faults[%d]", i), s.Fleets, &errs)
	}
	return errors.Join(errs...)
}

func (f *Fleet) validate(key string, errs *mistakes) {
	f.validateEngine(key, errs)
	oneOf(errs, key+".router", f.Router, RoundRobin, RandomChoice, LeastLoaded)
	if f.ModelName == "" {
		errs.add(key+".model_name", "is missing: write the name that the engines serve")
	}
	if f.Replicas < 1 {
		errs.add(key+".replicas", "is %d: write 1 or more", f.Replicas)
	}
	if f.PrefixHitRatio < 0 || f.PrefixHitRatio >= 1 {
		errs.add(key+".prefix_hit_ratio", "is %v: write 0 or more and less than 1", f.PrefixHitRatio)
	}
	f.validatePlaces(key, errs)
	f.Limits.validate(key+".limits", errs)
	f.Latency.validate(key+".latency", errs)
	f.Prompt.validate(key+".prompt_tokens", errs)
	f.Output.validate(key+".output_tokens", errs)
	f.Arrivals.validate(key+".arrivals", errs)
	f.Tenants.validate(key+".tenants", &f.Arrivals, errs)
}

func (f *Fleet) validateEngine(key string, errs *mistakes) {
	oneOf(errs, key+".engine", f.Engine, VLLM, SGLang, TensorRTLLM)
	if versions := versionsOf(f.Engine); len(versions) > 0 {
		oneOf(errs, key+".version", f.Version, versions...)
		for i, v := range f.Versions {
			oneOf(errs, fmt.Sprintf("%s.versions[%d]", key, i), v, versions...)
		}
	}
	if f.ReplicasPerNode < 0 {
		errs.add(key+".replicas_per_node", "is %d: write 1 or more, or leave it out for all on one node", f.ReplicasPerNode)
	}
	if ray := f.Version == VLLMRay || slices.Contains(f.Versions, VLLMRay); f.ReplicasPerNode > 0 && !ray {
		errs.add(key+".replicas_per_node", "is only read with version: ray")
	}
	if f.HostHitShare < 0 || f.HostHitShare >= 1 {
		errs.add(key+".host_hit_share", "is %v: write 0 or more and less than 1", f.HostHitShare)
	}
	if f.HostHitShare > 0 && f.Engine == VLLM {
		errs.add(key+".host_hit_share", "is only read with engine: sglang or tensorrt_llm, whose pages tell such hits apart")
	}
}

func (l *Limits) validate(key string, errs *mistakes) {
	if l.MaxNumSeqs < 1 {
		errs.add(key+".max_num_seqs", "is %d: write 1 or more", l.MaxNumSeqs)
	}
	if l.MaxNumBatchedTokens <= l.MaxNumSeqs {
		errs.add(key+".max_num_batched_tokens", "is %d: write more than max_num_seqs (%d), or a full batch leaves no room for prefill", l.MaxNumBatchedTokens, l.MaxNumSeqs)
	}
	if l.MaxModelLen < 2 {
		errs.add(key+".max_model_len", "is %d: write 2 or more", l.MaxModelLen)
	}
	if l.KVCacheTokens < l.MaxModelLen {
		errs.add(key+".kv_cache_tokens", "is %d: write at least max_model_len (%d), or a long request never fits", l.KVCacheTokens, l.MaxModelLen)
	}
}

func (l *Latency) validate(key string, errs *mistakes) {
	if l.Base < 0 || l.PerRunning < 0 || l.PerPrefillToken < 0 {
		errs.add(key, "itl_base, itl_per_running and itl_per_prefill_token must not be negative: write for example 8ms, 120us, 40us")
	}
	errs.notNegative(key+".curvature", l.Curvature)
	errs.notNegative(key+".pod_noise", l.PodNoise)
	errs.notNegative(key+".ar_noise", l.DriftNoise)
	errs.notNegative(key+".jitter", *l.Jitter)
	oneOf(errs, key+".distribution", l.Distribution, ShapeLognormal, ShapeGamma, ShapeWeibull)
}

func (t *Tokens) validate(key string, errs *mistakes) {
	if t.Mean < 1 {
		errs.add(key+".mean", "is %v: write 1 or more", t.Mean)
	}
	if t.Max < 1 {
		errs.add(key+".max", "is %d: write 1 or more", t.Max)
	}
	errs.notNegative(key+".cv", *t.CV)
	oneOf(errs, key+".distribution", t.Distribution, ShapeLognormal, ShapeGamma, ShapeWeibull)
}

func (a *Arrivals) validate(key string, errs *mistakes) {
	oneOf(errs, key+".process", a.Process, Poisson, GammaSpaced, Trace)
	if a.Speed <= 0 {
		errs.add(key+".speed", "is %v: write more than 0, 1 for the trace's own pace", a.Speed)
	}
	if a.Burstiness <= 0 {
		errs.add(key+".burstiness", "is %v: write more than 0, 1 for Poisson arrivals", a.Burstiness)
	}
	if a.Requests < 0 {
		errs.add(key+".requests", "is %d: write how many there are, or leave it out for no end", a.Requests)
	}
	if a.Process == Trace {
		oneOf(errs, key+".format", a.Format, Azure, Mooncake, ServeGen)
		if a.File == "" {
			errs.add(key+".file", "is missing: name the trace file")
		}
		return
	}
	if a.File != "" {
		errs.add(key+".file", "is only read with process: trace")
	}
	if !(a.Rate > 0) || math.IsInf(a.Rate, 1) { // NaN is not above 0
		errs.add(key+".rate", "is %v: write the requests a second over the whole fleet, more than 0", a.Rate)
	}
}

// mistakes collects what is wrong with a scenario.
type mistakes []error

func (m *mistakes) add(key, format string, args ...any) {
	*m = append(*m, fmt.Errorf(key+": "+format, args...))
}

func (m *mistakes) notNegative(key string, v float64) {
	if !(v >= 0) {
		m.add(key, "is %v: write 0 or more", v)
	}
}

// oneOf checks that a word is one of those allowed.
func oneOf[T ~string](m *mistakes, key string, word T, allowed ...T) {
	if slices.Contains(allowed, word) {
		return
	}
	words := make([]string, len(allowed))
	for i, a := range allowed {
		words[i] = string(a)
	}
	m.add(key, "is %q: write one of %s", word, strings.Join(words, ", "))
}
