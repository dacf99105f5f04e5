// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

// Fact is something that is known of a replica, beside what it does.
type Fact uint8

// The facts. Revision, version and configuration make a variant: what a rollout
// changes.
const (
	ModelName Fact = iota
	Role
	EngineName
	GPUModel
	Node
	ModelRevision
	EngineVersion
	ConfigHash
	FactCount // how many facts there are; not a fact
)

var factNames = [FactCount]string{
	ModelName: "model_name", Role: "role", EngineName: "engine_name", GPUModel: "gpu_model", Node: "node",
	ModelRevision: "model_revision", EngineVersion: "engine_version", ConfigHash: "config_hash",
}

// String is the fact's name as an attribute.
func (f Fact) String() string {
	if f >= FactCount {
		return "unknown"
	}
	return factNames[f]
}

// ParseFact is the inverse of String.
func ParseFact(name string) (Fact, bool) {
	for f, known := range factNames {
		if known == name {
			return Fact(f), true
		}
	}
	return 0, false
}

// Facts has a value for each fact, "" where it is not known.
type Facts [FactCount]string

// Empty tells whether nothing is known.
func (f *Facts) Empty() bool { return *f == Facts{} }

// Origin is where facts come from.
type Origin uint8

// The origins.
const (
	FromAttributes Origin = iota // attributes that are there already
	FromTemplate                 // the container as the pod's template describes it
	FromKubernetes               // labels and annotations of the pod and its node
	FromImage                    // the container image's tag
	FromEngine                   // the engine's own labels and info series
	FromGPU                      // what tells of the accelerators of the pod, or its node
	OriginCount                  // how many origins there are; not an origin
)

// sources are the origins that make up each source of the configuration, the
// one that counts more first.
var sources = []struct {
	name    string
	origins []Origin
}{
	{"attributes", []Origin{FromAttributes}},
	{"kubernetes", []Origin{FromTemplate, FromKubernetes}},
	{"image", []Origin{FromImage}},
	{"engine", []Origin{FromEngine}},
	{"gpu", []Origin{FromGPU}},
}

// Sources are the names of the sources, in the usual order.
func Sources() (names []string) {
	for _, s := range sources {
		names = append(names, s.name)
	}
	return names
}

// OriginsOf are the origins that make up a source, the one that counts more
// first; nil if there is no such source.
func OriginsOf(source string) []Origin {
	for _, s := range sources {
		if s.name == source {
			return s.origins
		}
	}
	return nil
}
