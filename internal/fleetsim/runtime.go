// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

// Bucket bounds of the HTTP server's histograms, in seconds.
var (
	httpBounds     = []float64{.1, .5, 1}
	httpFineBounds = []float64{.01, .025, .05, .075, .1, .25, .5, .75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60}
)

// pythonFamilies are those that the Python client adds by itself.
func pythonFamilies() []family {
	generations := func(young, middle, old measure) []series {
		return []series{by(young, "generation", "0"), by(middle, "generation", "1"), by(old, "generation", "2")}
	}
	process := func(name, help string, k kind, m measure) family {
		return family{name: name, help: help, kind: k, labels: processLabels, series: []series{at(m)}}
	}
	return []family{
		{name: "python_gc_objects_collected", help: "Objects that garbage collection freed", kind: counterKind, labels: processLabels, series: generations(gcYoungObjects, gcMiddleObjects, gcOldObjects)},
		{name: "python_gc_objects_uncollectable", help: "Objects that garbage collection could not free", kind: counterKind, labels: processLabels, series: generations(zero, zero, zero)},
		{name: "python_gc_collections", help: "Garbage collections", kind: counterKind, labels: processLabels, series: generations(gcYoung, gcMiddle, gcOld)},
		{name: "python_info", help: "Version of the interpreter", kind: gaugeKind, labels: processLabels, series: []series{
			{value: one, labels: []string{"implementation", "CPython", "major", "3", "minor", "12", "patchlevel", "11", "version", "3.12.11"}},
		}},
		process("process_virtual_memory_bytes", "Virtual memory", gaugeKind, virtualMemory),
		process("process_resident_memory_bytes", "Resident memory", gaugeKind, processMemory),
		process("process_start_time_seconds", "Start of the process, seconds since the Unix epoch", gaugeKind, processStart),
		process("process_cpu_seconds", "Processor time, user and system", counterKind, processCPU),
		process("process_open_fds", "Open file descriptors", gaugeKind, openFiles),
		process("process_max_fds", "Most file descriptors", gaugeKind, maxFiles),
	}
}

// httpFamilies are those of the HTTP server in front of vLLM's engine.
func httpFamilies() []family {
	const route = "/v1/chat/completions"
	handler := []string{"handler", route}
	call := []string{"handler", route, "method", "POST"}
	http := func(name, help string, k kind, s ...series) family {
		return family{name: "http_" + name, help: help, kind: k, labels: httpLabels, series: s, lazy: true}
	}
	ended := func(m measure, status string) series {
		return series{value: m, labels: []string{"handler", route, "method", "POST", "status", status}}
	}
	families := []family{
		http("requests", "Requests by method, status and handler", counterKind, ended(finished, "2xx"), ended(failed, "5xx")),
		http("request_size_bytes", "Content length of requests", summaryKind, series{sample: requestSize, labels: handler}),
		http("response_size_bytes", "Content length of responses", summaryKind, series{sample: responseSize, labels: handler}),
		http("request_duration_highr_seconds", "Duration of requests, in many buckets", histogramKind, series{sample: httpDurationFine}),
		http("request_duration_seconds", "Duration of requests by handler, in few buckets", histogramKind, series{sample: httpDuration, labels: call}),
	}
	fine, coarse := &families[3], &families[4]
	fine.bounds, fine.lazy = httpFineBounds, false
	coarse.bounds = httpBounds
	return families
}
