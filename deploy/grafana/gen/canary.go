// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

var canary = dashboard{
	file:  "canary.json",
	uid:   "llmfleet-canary",
	title: "llmfleet / Canary",
	help:  "A new version against the old one while both serve. Without a rollout there is nothing to show, and that is no fault.",
	page:  "docs/canary.md",
	from:  "now-3h",
	variables: []variable{
		{label: "cluster", title: "Cluster", of: "llmfleet_canary_verdict"},
		{label: "namespace", title: "Namespace", of: "llmfleet_canary_verdict"},
		{label: "model_name", title: "Model", of: "llmfleet_canary_verdict"},
		{label: "canary", title: "Canary", of: "llmfleet_canary_verdict"},
	},
	rows: []row{
		{5, []panel{
			{
				kind: stat, title: "Verdict", unit: count, width: 7, named: true, empty: "no rollout",
				bands: []band{{0, good}, {1, doubt}, {2, bad}},
				help:  "Fail: roll back, then look why. Pass: go on. Inconclusive: wait, or read beside it what is missing.",
				page:  "docs/canary.md#at-night",
				queries: []query{{legend: "{{model_name}} {{canary}}: {{verdict}}", expr: `
  2 * (llmfleet_canary_verdict{..., measure="overall", verdict="fail"} == 1)
or
  (llmfleet_canary_verdict{..., measure="overall", verdict="inconclusive"} == 1)
or
  0 * (llmfleet_canary_verdict{..., measure="overall", verdict="pass"} == 1)`}},
			},
			{
				kind: stat, title: "What is missing", unit: count, width: 6, named: true, empty: "nothing, or no rollout",
				help:    "Why there is no verdict; and few_replicas, with which any verdict may be that of one bad pod.",
				page:    "docs/canary.md#why-it-is-inconclusive",
				queries: []query{{expr: `llmfleet_canary_reason{..., measure="overall"} == 1`, legend: "{{model_name}} {{canary}}: {{reason}}"}},
			},
			{
				kind: stat, title: "The measure that decides", unit: count, width: 5, named: true, empty: "none yet",
				help:    "The one that failed, or that is furthest from a pass. Begin with it.",
				page:    "docs/canary.md#at-night",
				queries: []query{{expr: `llmfleet_canary_driver{...} == 1`, legend: "{{model_name}} {{canary}}: {{measure}}"}},
			},
			{
				kind: stat, title: "Its replicas", unit: count, width: 3, bands: goodFrom(1, 3), empty: "no rollout",
				help:    "Of the canary that has fewest. Below three, a bad pod cannot be told from a bad version: add one, on another node.",
				queries: []query{{expr: `min(llmfleet_canary_replicas{..., arm="canary"})`}},
			},
			{
				kind: stat, title: "Compared for", unit: seconds, width: 3, empty: "no rollout",
				help:    "Of the canary that is compared for longest. If evidence has not moved for an hour, it lies between the tolerances: decide yourself.",
				page:    "docs/canary.md#how-long-it-takes",
				queries: []query{{expr: `max(llmfleet_canary_duration_seconds{...})`}},
			},
		}},
		{9, []panel{byMeasure}},
		{8, []panel{
			{
				kind: graph, title: "Evidence of a fail", unit: count, width: 12, bands: badFrom(1), empty: "no rollout",
				help:    "At 1 the measure fails. You may look as often as you like: that makes no false alarm.",
				page:    "docs/canary.md#how-it-works",
				queries: []query{{expr: `max by (model_name, canary, measure) (llmfleet_canary_evidence{..., verdict="fail"})`, legend: "{{model_name}} {{canary}} {{measure}}"}},
			},
			{
				kind: graph, title: "Evidence of a pass", unit: count, width: 12, bands: []band{{0, doubt}, {1, good}}, empty: "no rollout",
				help:    "At 1 the measure passes; the canary does once all watched ones have. The lowest line is what it waits for.",
				page:    "docs/canary.md#how-it-works",
				queries: []query{{expr: `max by (model_name, canary, measure) (llmfleet_canary_evidence{..., verdict="pass"})`, legend: "{{model_name}} {{canary}} {{measure}}"}},
			},
		}},
		{8, []panel{
			{
				kind: graph, title: "The deciding measure against the baseline", unit: share, width: 12, empty: "none decides yet",
				help: "100 % is as it was. The bounds hold at all times at once with 95 % confidence, as far as buckets tell.",
				page: "docs/canary.md#what-it-does-not-do",
				queries: []query{
					{expr: `llmfleet_canary_ratio{...} and ignoring (statistic) llmfleet_canary_driver{...} == 1`, legend: "{{canary}} {{measure}} {{statistic}}"},
					{expr: `llmfleet_canary_low_ratio{...} and ignoring (statistic) llmfleet_canary_driver{...} == 1`, legend: "{{canary}} {{measure}} {{statistic}}, at least"},
					{expr: `llmfleet_canary_high_ratio{...} and ignoring (statistic) llmfleet_canary_driver{...} == 1`, legend: "{{canary}} {{measure}} {{statistic}}, at most"},
				},
			},
			{
				kind: graph, title: "Latencies, p95", unit: seconds, width: 12, empty: "no rollout",
				help: "Of the canary and of its baseline, over the whole comparison.",
				queries: []query{
					{expr: `llmfleet_canary_latency_value_seconds{..., statistic="p95"}`, legend: "{{canary}} {{measure}}"},
					{expr: `llmfleet_canary_latency_baseline_value_seconds{..., statistic="p95"}`, legend: "{{baseline}} {{measure}}, baseline"},
				},
			},
		}},
		{8, []panel{
			{
				kind: graph, title: "Failed requests and cache hits", unit: share, width: 8, empty: "no rollout, or not told",
				help: "Share of requests that failed, and of prompt tokens found in the prefix cache. A canary with a colder cache is slow at first and no worse for it.",
				queries: []query{
					{expr: `llmfleet_canary_share_value_ratio{..., statistic="ratio"}`, legend: "{{canary}} {{measure}}"},
					{expr: `llmfleet_canary_share_baseline_value_ratio{..., statistic="ratio"}`, legend: "{{baseline}} {{measure}}, baseline"},
				},
			},
			{
				kind: graph, title: "Output tokens a second and replica", unit: count, width: 8, empty: "no rollout, or not told",
				help: "If the canary makes fewer, and as many requests run on it, it is slower; if fewer run on it, the router sends it less.",
				queries: []query{
					{expr: `llmfleet_canary_rate_value_per_second{...}`, legend: "{{canary}}"},
					{expr: `llmfleet_canary_rate_baseline_value_per_second{...}`, legend: "{{baseline}}, baseline"},
				},
			},
			{
				kind: graph, title: "Requests that run, by replica", unit: count, width: 8, empty: "fleet_outlier does not run",
				help:    "Mean of each version. A router that sends the canary more makes it slower: that is no fault of the version.",
				queries: []query{{expr: `avg by (model_name, model_revision, engine_version, config_hash) (llmfleet_replica_requests{cluster=~"$cluster", namespace=~"$namespace", model_name=~"$model_name", state="running"})`, legend: "{{model_name}} {{model_revision}} {{engine_version}} {{config_hash}}"}},
			},
		}},
	},
}

var byMeasure = panel{
	kind: table, title: "Every measure", width: 24, empty: "no rollout", sortBy: "Fail", toModel: true,
	help:   "How much speaks for a fail and for a pass (1 gives the verdict), on how many observations, and by how much the canary differs: 100 % is as it was.",
	page:   "docs/canary.md#at-night",
	labels: []label{byModel, {"canary", "Canary"}, {"baseline", "Baseline"}, {"measure", "Measure"}},
	queries: []query{
		{column: column{title: "Fail", unit: count, bands: badFrom(1)}, expr: `max by (model_name, canary, baseline, measure) (llmfleet_canary_evidence{..., verdict="fail"})`},
		{column: column{title: "Pass", unit: count, bands: []band{{0, neutral}, {1, good}}}, expr: `max by (model_name, canary, baseline, measure) (llmfleet_canary_evidence{..., verdict="pass"})`},
		{column: column{title: "Observed", unit: count}, expr: `max by (model_name, canary, baseline, measure) (llmfleet_canary_observations{..., arm="canary"})`},
		{column: column{title: "Observed, baseline", unit: count}, expr: `max by (model_name, canary, baseline, measure) (llmfleet_canary_observations{..., arm="baseline"})`},
		{column: column{title: "p95 against baseline", unit: share}, expr: `max by (model_name, canary, baseline, measure) (llmfleet_canary_ratio{..., statistic="p95"})`},
		{column: column{title: "Mean or share against baseline", unit: share}, expr: `max by (model_name, canary, baseline, measure) (llmfleet_canary_ratio{..., statistic=~"mean|ratio"})`},
	},
}
