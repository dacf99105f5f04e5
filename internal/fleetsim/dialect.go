// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"slices"
	"strings"
)

// Version names a way in which an engine spells its page. What the page says is
// the same whatever the version: the numbers of a signal are equal, seed by
// seed, in all of them.
type Version string

// The versions. Every engine has a Current one.
const (
	Current Version = "current"
	// VLLMv06 is vLLM 0.6 with its V0 engine, VLLMv09 is 0.9.2, which has old
	// and new names at once, and VLLMv011 is 0.11.
	VLLMv06  Version = "v0.6"
	VLLMv09  Version = "v0.9.2"
	VLLMv011 Version = "v0.11"
	// VLLMRay is the current vLLM under Ray Serve: one agent shows all replicas
	// of a node.
	VLLMRay Version = "ray"
	// VLLMRust is the current vLLM behind its frontend in Rust.
	VLLMRust Version = "rust"
	// TensorRTLLMDynamo is the current TensorRT-LLM as a worker of NVIDIA Dynamo.
	TensorRTLLMDynamo Version = "dynamo"
)

// dialect is how one version of an engine writes its page.
type dialect struct {
	version  Version
	families []family
	// labels gives the label sets that families name.
	labels map[string]func(*engine) []string
	// path of the page on the engine's HTTP server, and of its iteration
	// statistics in JSON if it has them.
	path, statsPath string
	// created tells whether counters and histograms have a _created twin, which
	// the Python client writes unless several processes share the page.
	created bool
	// countLast tells whether _sum comes before the buckets and _count after,
	// as on pages that several processes share.
	countLast bool
	// hideEmpty tells whether a family without series is left out whole.
	hideEmpty bool
	// unnamed tells whether the page keeps the model's name to itself.
	unnamed bool
	// shared tells whether one page shows all replicas of a node.
	shared bool
	// openMetrics tells whether the page is in the OpenMetrics format: a counter
	// is declared without _total, and the page has an end.
	openMetrics bool
}

// dialects has the versions of each engine, the default first.
var dialects = map[EngineKind][]*dialect{
	VLLM:        vllmDialects(),
	SGLang:      {&sglangDialect},
	TensorRTLLM: trtllmDialects(),
}

// dialectOf returns nil for an engine or version that does not exist.
func dialectOf(engine EngineKind, version Version) *dialect {
	versions := dialects[engine]
	i := slices.IndexFunc(versions, func(d *dialect) bool { return d.version == version })
	if i < 0 {
		return nil
	}
	return versions[i]
}

func versionsOf(engine EngineKind) []Version {
	var versions []Version
	for _, d := range dialects[engine] {
		versions = append(versions, d.version)
	}
	return versions
}

// find returns the family that a # TYPE line names, or nil.
func (d *dialect) find(name string) *family {
	i := slices.IndexFunc(d.families, func(f family) bool { return d.declared(&f) == name })
	if i < 0 {
		return nil
	}
	return &d.families[i]
}

// example is a histogram of the page, for who asks what it holds.
func (d *dialect) example() string {
	i := slices.IndexFunc(d.families, func(f family) bool { return strings.HasSuffix(f.name, "time_to_first_token_seconds") })
	return d.families[i].name
}

// declared is the name in a family's HELP and TYPE lines.
func (d *dialect) declared(f *family) string {
	if f.kind == counterKind && d.openMetrics {
		return strings.TrimSuffix(f.name, "_total")
	}
	return f.exposedName()
}

func (d *dialect) contentType() string {
	if d.openMetrics {
		return "application/openmetrics-text; version=1.0.0; charset=utf-8"
	}
	return "text/plain; version=0.0.4; charset=utf-8"
}

// end is what the page ends with.
func (d *dialect) end() string {
	if d.openMetrics {
		return "# EOF\n"
	}
	return ""
}

// appendNumber writes v as the engine's client does. Only the frontend in Rust,
// which speaks OpenMetrics, writes whole numbers without a point.
func (d *dialect) appendNumber(dst []byte, v float64, whole bool) []byte {
	if !d.openMetrics {
		return appendNumber(dst, v)
	}
	return appendRust(dst, v, whole)
}
