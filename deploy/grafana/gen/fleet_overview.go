// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

// fleetVariables select fleets.
var fleetVariables = []variable{
	{label: "cluster", title: "Cluster", of: "llmfleet_fleet_replicas"},
	{label: "namespace", title: "Namespace", of: "llmfleet_fleet_replicas"},
	{label: "model_name", title: "Model", of: "llmfleet_fleet_replicas"},
	{label: "role", title: "Role", of: "llmfleet_fleet_replicas"},
	{label: "engine_name", title: "Engine", of: "llmfleet_fleet_replicas"},
}

var fleetOverview = dashboard{
	file:      "fleet-overview.json",
	uid:       "llmfleet-overview",
	title:     "llmfleet / Fleets",
	help:      "All fleets at a glance. Read the first row: where all is green, nothing that llmfleet watches is wrong. Then take the model that stands out.",
	page:      "docs/operations.md#what-to-look-at-first",
	from:      "now-3h",
	variables: fleetVariables,
	rows: []row{
		{4, isAnythingWrong},
		{9, []panel{everyFleet}},
		{9, []panel{flagged, evidence}},
		{8, []panel{
			fleetLatency("ttft", "Time to first token, p95", "If all fleets rise, look at what is sent: tenants, and the gateway. If one does, at its queue. No replica is an outlier where all are slow."),
			fleetLatency("itl", "Inter-token latency, p95", "Rises with the batch and with prompts that are computed between tokens. If the tenants dashboard names nobody, it is the load: scale."),
		}},
		{8, []panel{
			{
				kind: graph, title: "Requests that wait", unit: count, width: 12, empty: "no engine tells of its queue", toModel: true,
				help:    "Sum over the fleet of each replica's mean over llmfleet's window. If it stays above zero, the fleet is too small, or one replica holds it up: see the model's dashboard.",
				queries: []query{{expr: fleets + `(llmfleet_fleet_requests{..., state="waiting"})`, legend: ofFleet}},
			},
			{
				kind: graph, title: "KV cache in use", unit: share, width: 12, empty: "no engine tells of its cache", toModel: true,
				help:    "Mean over replicas. Close to 100 % requests are pushed back to the queue and computed twice: add replicas, or allow fewer requests in a batch.",
				queries: []query{{expr: fleets + `(llmfleet_fleet_kv_usage_ratio{...})`, legend: ofFleet}},
			},
		}},
	},
}

var isAnythingWrong = []panel{
	{
		kind: stat, title: "Outliers", unit: count, width: 3, bands: badFrom(1), empty: "nothing watched",
		help:    "Replicas that are slower than their fleet, or fail more, on evidence that was collected until it was enough. The table below says which and why.",
		page:    "docs/outliers.md#the-causes",
		queries: []query{{expr: `sum(llmfleet_fleet_outliers{...})`}},
	},
	{
		kind: stat, title: "Stuck", unit: count, width: 3, bands: badFrom(1), empty: "not told",
		help:    "Replicas that have work and make no token, or answer without a metric of the engine. Take them out of the router, keep a dump, restart.",
		page:    "docs/outliers.md#stuck",
		queries: []query{{expr: `sum(llmfleet_replica_stuck{...})`}},
	},
	{
		kind: stat, title: "Noisy tenants", unit: count, width: 3, bands: badFrom(1), empty: "not told",
		help:    "Tenants whose surplus makes everyone's tokens slow. Not told where tenant_share does not run, or cannot say: the tenants dashboard has the reasons.",
		page:    "docs/tenants.md#when-it-fires",
		queries: []query{{expr: `sum(llmfleet_tenant_noisy{model_name=~"$model_name"})`}},
	},
	{
		kind: stat, title: "Failing canaries", unit: count, width: 3, bands: badFrom(1), empty: "no rollout",
		help:    "New versions that are worse than the old one. Roll back, then look why on the canary dashboard.",
		page:    "docs/canary.md#at-night",
		queries: []query{{expr: `sum(llmfleet_canary_verdict{cluster=~"$cluster", namespace=~"$namespace", model_name=~"$model_name", measure="overall", verdict="fail"})`}},
	},
	{
		kind: stat, title: "Least coverage", unit: share, width: 4, bands: goodFrom(0.5, 0.9), empty: "nothing watched",
		help:    "Judged replicas over expected ones, of the fleet where it is least. After a start it is low for one window. If it stays low, replicas are not scraped, or a fleet is split over two collectors.",
		page:    "docs/operations.md#what-to-look-at-first",
		queries: []query{{expr: `min(llmfleet_fleet_coverage_ratio{...})`}},
	},
	{
		kind: stat, title: "Longest wait for a GPU", unit: seconds, width: 4, bands: doubtFrom(60, 300), empty: "not told",
		help:    "Of the pod that asks for GPUs and has waited longest for a node. The capacity dashboard says what it waits for.",
		queries: []query{{expr: `max(llmfleet_gpu_pending_age_seconds{cluster=~"$cluster"}) or 0 * count(llmfleet_gpu_installed{cluster=~"$cluster"})`}},
	},
	{
		kind: stat, title: "Evaluations a minute", unit: count, width: 4, bands: goodFrom(0.1, 0.5), empty: "not scraped",
		help:    "How often llmfleet judges, of the collector that does it least; 2 by default. At 0 all that is shown here is old. Not scraped: let Prometheus read port 8888 of llmfleet too.",
		page:    "docs/operations.md#what-to-look-at-first",
		queries: []query{{expr: `60 * min(rate(otelcol_processor_fleet_outlier_evaluation_duration_count[$__rate_interval]))`}},
	},
}

var everyFleet = panel{
	kind: table, title: "Fleets", width: 24, empty: "no fleet is watched", sortBy: "Waiting", toModel: true,
	help: "One row for each fleet, which is what may be compared: one model, role, engine and GPU. Take a model to see its replicas.",
	labels: []label{
		byCluster, byNamespace, byModel, {"role", "Role"}, {"engine_name", "Engine"}, byGPU,
	},
	queries: []query{
		{column: column{title: "Judged", unit: count}, expr: fleets + `(llmfleet_fleet_replicas{..., state="judged"})`},
		{column: column{title: "Coverage", unit: share, bands: goodFrom(0.5, 0.9)}, expr: fleets + `(llmfleet_fleet_coverage_ratio{...})`},
		{column: column{title: "Outliers", unit: count, bands: badFrom(1)}, expr: fleets + `(llmfleet_fleet_outliers{...})`},
		{column: column{title: "Waiting", unit: count}, expr: fleets + `(llmfleet_fleet_requests{..., state="waiting"})`},
		{column: column{title: "Running", unit: count}, expr: fleets + `(llmfleet_fleet_requests{..., state="running"})`},
		{column: column{title: "KV cache", unit: share}, expr: fleets + `(llmfleet_fleet_kv_usage_ratio{...})`},
		{column: column{title: "TTFT p95", unit: seconds}, expr: fleets + `(llmfleet_fleet_latency_seconds{..., signal="ttft", quantile="0.95"})`},
		{column: column{title: "ITL p95", unit: seconds}, expr: fleets + `(llmfleet_fleet_latency_seconds{..., signal="itl", quantile="0.95"})`},
	},
}

// flagged is a table of the replicas with which something is wrong.
var flagged = panel{
	kind: table, title: "Replicas with a fault", width: 12, empty: "none is flagged", sortBy: "Evidence", toModel: true,
	help: "Begin with the cause: it says where to look first. A stuck replica has no cause and no latency to compare.",
	page: "docs/outliers.md#the-causes",
	labels: []label{
		byNamespace, byModel, byReplica, {"cause", "Cause"},
	},
	queries: []query{
		{expr: `max by (namespace, model_name, replica, cause) (llmfleet_replica_outlier_cause{...} == 1)`},
		{
			column: column{title: "Evidence", unit: count, bands: badFrom(1)},
			expr:   `max by (namespace, model_name, replica) (llmfleet_replica_outlier_evidence{...} and llmfleet_replica_outlier{...} == 1)`,
		},
		{
			column: column{title: "p95 against peers", unit: share},
			expr: `max by (namespace, model_name, replica) (
  llmfleet_replica_latency_ratio{..., quantile="0.95"} and ignoring (signal, quantile) llmfleet_replica_outlier{...} == 1
)`,
		},
		{
			column: column{title: "Stuck", unit: count, bands: badFrom(1)},
			expr:   `max by (namespace, model_name, replica) (llmfleet_replica_stuck{...} == 1)`,
		},
	},
}

var evidence = panel{
	kind: graph, title: "Evidence against the most suspicious replicas", unit: count, width: 12, bands: badFrom(1), empty: "nothing watched", toModel: true,
	help:    "How much of what a flag takes has been collected: 1 flags. It rises before the flag does. What stays below 1 is no reason to act.",
	page:    "docs/outliers.md#the-promise",
	queries: []query{{expr: most(10, `llmfleet_replica_outlier_evidence{...}`), legend: ofReplica}},
}

func fleetLatency(signal, title, help string) panel {
	return panel{
		kind: graph, title: title, unit: seconds, width: 12, empty: "no engine tells of it", help: help, toModel: true,
		page:    "docs/operations.md#what-to-look-at-first",
		queries: []query{{expr: fleets + `(llmfleet_fleet_latency_seconds{..., signal="` + signal + `", quantile="0.95"})`, legend: ofFleet}},
	}
}
