// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

var coldStarts = dashboard{
	file:  "cold-starts.json",
	uid:   "llmfleet-cold-starts",
	title: "llmfleet / Cold starts",
	help:  "From the wish for a replica to its being ready: how long it takes, and what it waits for. Each start is a trace, too: its id is the pod's uid without dashes.",
	page:  "docs/coldstart.md",
	from:  "now-24h",
	variables: []variable{
		{label: "cluster", title: "Cluster", of: "llmfleet_coldstart_duration_seconds_count"},
		{label: "namespace", title: "Namespace", of: "llmfleet_coldstart_duration_seconds_count"},
		{label: "model_name", title: "Model", of: "llmfleet_coldstart_duration_seconds_count"},
	},
	rows: []row{
		{4, []panel{
			{
				kind: stat, title: "Failed starts", unit: count, width: 5, bands: badFrom(1), empty: "not told",
				help:    "In the range of time on view: pods that were gone, or not ready within two hours. The graph below says at which stage they stopped.",
				page:    "docs/coldstart.md#what-a-replica-waited-for",
				queries: []query{{expr: `sum(` + grown(`llmfleet_coldstart_failed_total{...}`, "$__range") + `) or 0 * count(otelcol_connector_cold_start_evaluation_duration_count)`}},
			},
			{
				kind: stat, title: "Starting now", unit: count, width: 5, empty: "none is told",
				help:    "Replicas on their way. If they stay at one stage, that is where to look.",
				queries: []query{{expr: `sum(llmfleet_coldstart_in_progress{...})`}},
			},
			{
				kind: stat, title: "Starts", unit: count, width: 4, empty: "none is told",
				help:    "That ended with a ready replica, in the range of time on view. Many of a fleet whose size stays are restarts: look at why pods end.",
				queries: []query{{expr: `sum(` + grown(`llmfleet_coldstart_duration_seconds_count{...}`, "$__range") + `)`}},
			},
			{
				kind: stat, title: "Duration, p95", unit: seconds, width: 5, empty: "none is told",
				help:    "In the range of time on view. An autoscaler has to look ahead by this much.",
				queries: []query{{expr: `histogram_quantile(0.95, sum by (le) (` + grown(`llmfleet_coldstart_duration_seconds_bucket{...}`, "$__range") + `))`}},
			},
			{
				kind: stat, title: "Unattributed", unit: share, width: 5, bands: doubtFrom(0.1, 0.25), empty: "no start of late",
				help:    "Time of recent starts that nothing explains, of the fleet where it is most. The trace says which facts are missing: most come from the engine's log.",
				page:    "docs/coldstart.md#what-is-unattributed",
				queries: []query{{expr: `max(llmfleet_coldstart_unattributed_ratio{...})`}},
			},
		}},
		{9, []panel{
			{
				kind: graph, title: "What replicas wait for", unit: share, width: 12, stacked: true, empty: "no start of late",
				help:    "Share of the time of recent starts in which the stage was on the critical path: without it, starts would be shorter by that much at most. Begin with the widest.",
				page:    "docs/coldstart.md#what-a-replica-waited-for",
				queries: []query{{expr: `sum by (stage) (llmfleet_coldstart_critical_ratio{...}) / on () group_left () count(llmfleet_coldstart_unattributed_ratio{...})`, legend: "{{stage}}"}},
			},
			{
				kind: graph, title: "Replicas that start, by stage", unit: count, width: 12, stacked: true, empty: "none is told",
				help:    "A band that does not end is a stage where replicas hang: scheduling and node.provision lead to the capacity dashboard, image.pull to the registry, weights.load to the model's store.",
				page:    "docs/coldstart.md#stages",
				queries: []query{{expr: `sum by (stage) (llmfleet_coldstart_in_progress{...})`, legend: "{{stage}}"}},
			},
		}},
		{9, []panel{
			{
				kind: table, title: "Stages", width: 12, empty: "none is told", sortBy: "p95", toModel: true,
				help:    "In the range of time on view. Stages run beside each other, so that their durations may add up to more than the start: the graph above says what counts.",
				page:    "docs/coldstart.md#stages",
				labels:  []label{byModel, {"stage", "Stage"}},
				queries: durations("llmfleet_coldstart_stage_duration_seconds", "model_name, stage"),
			},
			{
				kind: table, title: "What caches are worth", width: 12, empty: "none is told", sortBy: "p95", toModel: true,
				help:    "Cold: a node was made or an image pulled. Warm: both were there. Hot: the compiled model was, too. The difference is what a cache, or a warm pool, saves.",
				page:    "docs/coldstart.md#what-a-replica-waited-for",
				labels:  []label{byModel, {"start_class", "Class"}, {"image_cached", "Image cached"}},
				queries: durations("llmfleet_coldstart_duration_seconds", "model_name, start_class, image_cached"),
			},
		}},
		{8, []panel{
			{
				kind: graph, title: "Duration of a day's starts, p95", unit: seconds, width: 12, empty: "none is told",
				help:    "Each point is of the day before it. A step up with a new image, model or node pool is what that costs at every start.",
				queries: []query{{expr: `histogram_quantile(0.95, sum by (model_name, start_class, le) (` + grown(`llmfleet_coldstart_duration_seconds_bucket{...}`, "1d") + `))`, legend: "{{model_name}} {{start_class}}"}},
			},
			{
				kind: graph, title: "Failed starts of an hour", unit: count, width: 12, stacked: true, empty: "none failed, or not told",
				help:    "By the stage at which they stopped, and how: gone (deleted or ended) or expired (not ready in time). Find one with the trace store: its root is in error.",
				page:    "docs/coldstart.md#find-the-trace-of-a-pod",
				queries: []query{{expr: `sum by (model_name, stage, outcome) (` + grown(`llmfleet_coldstart_failed_total{...}`, "1h") + `)`, legend: "{{model_name}} {{stage}} {{outcome}}"}},
			},
		}},
		{8, []panel{
			{
				kind: graph, title: "Facts that are told", unit: count, width: 12, stacked: true, empty: "nothing is told, or port 8888 is not scraped",
				help:    "An hour, by name. Without engine.… and weights.… the engines' logs do not arrive; without pod.… Kubernetes does not.",
				page:    "docs/coldstart.md#what-is-unattributed",
				queries: []query{{expr: `3600 * sum by (fact) (rate(otelcol_connector_cold_start_facts[$__rate_interval]))`, legend: "{{fact}}"}},
			},
			{
				kind: graph, title: "Facts that are of no use", unit: count, width: 12, stacked: true, empty: "none, or port 8888 is not scraped",
				help:    "An hour, by reason; the connector's README has what each means. Those of starts that are over need nothing.",
				page:    "connector/coldstartconnector/README.md",
				queries: []query{{expr: `3600 * sum by (reason) (rate(otelcol_connector_cold_start_ignored[$__rate_interval]))`, legend: "{{reason}}"}},
			},
		}},
	},
}

// durations are columns of a table: how many starts had it, and how long it took.
func durations(histogram, by string) []query {
	quantile := func(q string) string {
		return `histogram_quantile(` + q + `, sum by (` + by + `, le) (` + grown(histogram+`_bucket{...}`, "$__range") + `))`
	}
	return []query{
		{column: column{title: "Starts", unit: count}, expr: `sum by (` + by + `) (` + grown(histogram+`_count{...}`, "$__range") + `)`},
		{column: column{title: "Median", unit: seconds}, expr: quantile("0.5")},
		{column: column{title: "p95", unit: seconds}, expr: quantile("0.95")},
	}
}
