// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

var model = dashboard{
	file:  "model.json",
	uid:   "llmfleet-model",
	title: "llmfleet / One model",
	help:  "The replicas of one model against each other. Where it is served by several engines, roles or kinds of GPUs, choose one: latencies are only compared within.",
	page:  "docs/outliers.md",
	from:  "now-1h",
	variables: []variable{
		{label: "cluster", title: "Cluster", of: "llmfleet_fleet_replicas"},
		{label: "namespace", title: "Namespace", of: "llmfleet_fleet_replicas"},
		{label: "model_name", title: "Model", of: "llmfleet_fleet_replicas", one: true},
		{label: "role", title: "Role", of: "llmfleet_fleet_replicas"},
		{label: "engine_name", title: "Engine", of: "llmfleet_fleet_replicas"},
		{label: "signal", title: "Latency", of: "llmfleet_replica_latency_seconds", one: true, initial: "ttft", apart: true},
		{label: "quantile", title: "Quantile", of: "llmfleet_replica_latency_seconds", one: true, initial: "0.95", apart: true},
	},
	rows: []row{
		{4, []panel{
			{
				kind: stat, title: "Outliers", unit: count, width: 5, bands: badFrom(1), empty: "nothing watched",
				help:    "Replicas that are flagged. The table below says which and why.",
				page:    "docs/outliers.md#the-causes",
				queries: []query{{expr: `sum(llmfleet_fleet_outliers{...})`}},
			},
			{
				kind: stat, title: "Stuck", unit: count, width: 5, bands: badFrom(1), empty: "not told",
				help:    "Replicas that have work and make no token, or show no metric of the engine. Take them out of the router, keep a dump, restart.",
				page:    "docs/outliers.md#stuck",
				queries: []query{{expr: `sum(llmfleet_replica_stuck{...})`}},
			},
			{
				kind: stat, title: "Least coverage", unit: share, width: 5, bands: goodFrom(0.5, 0.9), empty: "nothing watched",
				help:    "Judged replicas over expected ones. Who is not judged is below, by state: warming needs time, unreachable a look at the scrape, withheld traffic.",
				page:    "docs/operations.md#what-to-look-at-first",
				queries: []query{{expr: `min(llmfleet_fleet_coverage_ratio{...})`}},
			},
			{
				kind: stat, title: "Latency of the slowest fleet", unit: seconds, width: 5, empty: "no engine tells of it",
				help:    "The quantile of all requests of the fleet over llmfleet's window. If it is high and no replica stands out, all are slow: look at the load and the tenants.",
				queries: []query{{expr: `max(llmfleet_fleet_latency_seconds{..., signal="$signal", quantile="$quantile"})`}},
			},
			{
				kind: stat, title: "Longest queue over the mean", unit: count, width: 4, bands: doubtFrom(2, 4), empty: "no queue is told",
				help:    "At 1 all queues are equal. If it stays high, the router sends one replica more than the others, or that one is slow: see whether it also waits with few requests running.",
				queries: []query{{expr: `max(llmfleet_fleet_waiting_imbalance_ratio{...})`}},
			},
		}},
		{9, []panel{flagged, evidence}},
		{9, []panel{
			{
				kind: graph, title: "Latency of the slowest replicas, and of the fleet", unit: seconds, width: 12, empty: "too few requests, or not told",
				help: "The 20 that were slowest in this range. One line above the others is a replica with a fault; all lines together are load.",
				queries: []query{
					{expr: most(20, `llmfleet_replica_latency_seconds{..., signal="$signal", quantile="$quantile"}`), legend: ofReplica},
					{expr: fleets + `(llmfleet_fleet_latency_seconds{..., signal="$signal", quantile="$quantile"})`, legend: "fleet: " + ofFleet},
				},
			},
			{
				kind: graph, title: "Latency against its peers", unit: share, width: 12, empty: "fewer than two replicas can be compared",
				help:    "100 % is as slow as the others. A ratio strays with few requests, so that it is for looking: the verdict stands on the evidence.",
				page:    "docs/outliers.md#the-promise",
				queries: []query{{expr: most(20, `llmfleet_replica_latency_ratio{..., signal="$signal", quantile="$quantile"}`), legend: ofReplica}},
			},
		}},
		{8, []panel{
			{
				kind: graph, title: "Requests that wait", unit: count, width: 8, empty: "no queue is told",
				help:    "By replica, the 20 longest queues. One long queue beside short ones is a matter of routing, or of a slow replica; long queues everywhere one of size.",
				queries: []query{{expr: most(20, `llmfleet_replica_requests{..., state="waiting"}`), legend: ofReplica}},
			},
			{
				kind: graph, title: "Requests that run", unit: count, width: 8, empty: "no batch is told",
				help:    "By replica, the 20 largest batches. A replica that is slow with an equal batch is slow itself: look at its GPU.",
				queries: []query{{expr: most(20, `llmfleet_replica_requests{..., state="running"}`), legend: ofReplica}},
			},
			{
				kind: graph, title: "KV cache in use", unit: share, width: 8, empty: "no cache is told",
				help:    "By replica, the 20 fullest. Close to 100 % requests are pushed back to the queue and computed twice.",
				queries: []query{{expr: most(20, `llmfleet_replica_kv_usage_ratio{...}`), legend: ofReplica}},
			},
		}},
		{8, []panel{
			{
				kind: graph, title: "Replicas by how far their judgement came", unit: count, width: 12, stacked: true, empty: "nothing watched",
				help:    "Judged, warming (seen for less than a window), unreachable (the scrape fails) or withheld (too little to say). Unreachable ones need a look.",
				page:    "docs/operations.md#what-to-look-at-first",
				queries: []query{{expr: `sum by (state) (llmfleet_fleet_replicas{...})`, legend: "{{state}}"}},
			},
			{
				kind: graph, title: "Replicas by version", unit: count, width: 12, stacked: true, empty: "nothing watched",
				help:    "By model revision, engine version and configuration, as far as they are known. Two at once are a rollout: see the canary dashboard.",
				queries: []query{{expr: `count by (model_revision, engine_version, config_hash) (llmfleet_replica_outlier_evidence{...})`, legend: "{{model_revision}} {{engine_version}} {{config_hash}}"}},
			},
		}},
	},
}
