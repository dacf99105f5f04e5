// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

var tenants = dashboard{
	file:  "tenants.json",
	uid:   "llmfleet-tenants",
	title: "llmfleet / Tenants",
	help:  "Who sends what, and who makes everyone's tokens slow. The largest tenants of a model are told by name, all others together as __other__.",
	page:  "docs/tenants.md",
	from:  "now-3h",
	variables: []variable{
		{label: "cluster", title: "Cluster", of: "llmfleet_tenant_tokens_total"},
		{label: "model_name", title: "Model", of: "llmfleet_tenant_tokens_total"},
		{label: "tenant", title: "Tenant", of: "llmfleet_tenant_tokens_total", apart: true},
	},
	rows: []row{
		{4, []panel{
			{
				kind: stat, title: "Noisy tenants", unit: count, width: 5, bands: badFrom(1), empty: "nobody can be named",
				help:    "Tenants whose surplus over their usual share raises the latency of all. Limit their tokens, not their requests. If nobody can be named, the last graph says why.",
				page:    "docs/tenants.md#when-it-fires",
				queries: []query{{expr: `sum(llmfleet_tenant_noisy{...})`}},
			},
			{
				kind: stat, title: "ITL above the usual", unit: share, width: 5, bands: doubtFrom(0.1, 0.25), empty: "no usual is known yet",
				help:    "Of the model that is furthest above it. If it is high and nobody is noisy, it is the load of all: scale, or look for an outlier.",
				page:    "docs/tenants.md#the-noisy-neighbour",
				queries: []query{{expr: `max(llmfleet_fleet_itl_seconds{...} / llmfleet_fleet_usual_itl_seconds{...} - 1)`}},
			},
			{
				kind: stat, title: "Usage known", unit: share, width: 5, bands: goodFrom(0.8, 0.99), empty: "no requests are counted",
				help:    "Share of requests that said how many tokens they took, of the tenant where it is least. Below 100 %, tokens are counted too low: have the gateway ask for usage in streams.",
				page:    "docs/operations.md#when-something-is-wrong-with-tenants",
				queries: []query{{expr: `min(llmfleet_tenant_usage_known_ratio{...})`}},
			},
			{
				kind: stat, title: "Tenants", unit: count, width: 5, empty: "no requests are counted",
				help:    "That sent requests of late, of the model that has most. Many more than last week may be names that clients invent: let an authenticating gateway set them.",
				page:    "docs/tenants.md#bounds",
				queries: []query{{expr: `max(llmfleet_tenants{...})`}},
			},
			{
				kind: stat, title: "Fairness", unit: share, width: 4, empty: "not told",
				help:    "Jain's index of tokens, of the model where it is least: 100 % where all take as much, 1/n where one of n takes all. It says nothing of who needs what.",
				queries: []query{{expr: `min(llmfleet_fleet_fairness_ratio{...})`}},
			},
		}},
		{9, []panel{
			{
				kind: table, title: "Who raises the latency of all", width: 12, empty: "nobody can be named", sortBy: "Excess", toModel: true,
				help:   "Excess: how much longer than usual tokens take for what this tenant sends beyond its usual share. Score: how well the two move together, 5 is needed. It is an attribution, no proof.",
				page:   "docs/tenants.md#what-may-mislead-it",
				labels: []label{byModel, {"tenant", "Tenant"}},
				queries: []query{
					{column: column{title: "Noisy", unit: count, bands: badFrom(1)}, expr: `max by (model_name, tenant) (llmfleet_tenant_noisy{..., tenant=~"$tenant"})`},
					{column: column{title: "Excess", unit: share, bands: doubtFrom(0.05, 0.1)}, expr: `max by (model_name, tenant) (llmfleet_tenant_itl_excess_ratio{..., tenant=~"$tenant"})`},
					{column: column{title: "Score", unit: count}, expr: `max by (model_name, tenant) (llmfleet_tenant_noisy_score{..., tenant=~"$tenant"})`},
					{column: column{title: "For", unit: seconds}, expr: `max by (model_name, tenant) (llmfleet_tenant_noisy_duration_seconds{..., tenant=~"$tenant"})`},
					{column: column{title: "Share", unit: share}, expr: `max by (model_name, tenant) (llmfleet_tenant_token_share_ratio{..., tenant=~"$tenant", direction="input_uncached"})`},
					{column: column{title: "Usual share", unit: share}, expr: `max by (model_name, tenant) (llmfleet_tenant_usual_share_ratio{..., tenant=~"$tenant"})`},
				},
			},
			{
				kind: graph, title: "Inter-token latency, and its usual", unit: seconds, width: 12, empty: "no engine tells of it",
				help: "Mean over the fleet. The usual stands still while somebody is noisy, so that the gap is what the others suffer.",
				page: "docs/tenants.md#the-noisy-neighbour",
				queries: []query{
					{expr: `max by (model_name) (llmfleet_fleet_itl_seconds{...})`, legend: "{{model_name}}"},
					{expr: `max by (model_name) (llmfleet_fleet_usual_itl_seconds{...})`, legend: "{{model_name}}, usual"},
				},
			},
		}},
		{8, []panel{
			{
				kind: graph, title: "Share of the input that has to be computed", unit: share, width: 12, stacked: true, empty: "shares are not known",
				help:    "Of a model they add up to 100 %. A share that grows while latency does is worth a question; what comes from the cache is left out, as it costs little.",
				queries: []query{{expr: `max by (model_name, tenant) (llmfleet_tenant_token_share_ratio{..., tenant=~"$tenant", direction="input_uncached"})`, legend: "{{model_name}} {{tenant}}"}},
			},
			{
				kind: graph, title: "Latency of all for the surplus of one", unit: share, width: 12, bands: badFrom(0.1), empty: "nobody can be named",
				help:    "Three minutes above 10 %, with a score above 5, make a tenant noisy. Below zero: it sends less than usual, and everyone is faster for it.",
				page:    "docs/tenants.md#the-noisy-neighbour",
				queries: []query{{expr: `max by (model_name, tenant) (llmfleet_tenant_itl_excess_ratio{..., tenant=~"$tenant"})`, legend: "{{model_name}} {{tenant}}"}},
			},
		}},
		{8, []panel{
			{
				kind: graph, title: "Tokens a second", unit: count, width: 12, stacked: true, empty: "no requests are counted",
				help:    "Input, cached or not, and output. For a bill take the records: a tenant has series only while it is among the largest.",
				page:    "docs/tenants.md#what-is-counted",
				queries: []query{{expr: `sum by (model_name, tenant) (rate(llmfleet_tenant_tokens_total{..., tenant=~"$tenant"}[$__rate_interval]))`, legend: "{{model_name}} {{tenant}}"}},
			},
			{
				kind: graph, title: "Requests that failed or were turned away", unit: rate, width: 12, empty: "no requests are counted",
				help:    "Throttled: the gateway's limits did it; see whether they are meant. Error: look at the gateway's spans of this tenant.",
				queries: []query{{expr: `sum by (model_name, tenant, outcome) (rate(llmfleet_tenant_requests_total{..., tenant=~"$tenant", outcome!="ok"}[$__rate_interval]))`, legend: "{{model_name}} {{tenant}} {{outcome}}"}},
			},
		}},
		{8, []panel{
			{
				kind: graph, title: "Time to first token, p95", unit: seconds, width: 12, empty: "no stream is counted",
				help:    "As the gateway sees it. One tenant above the others has longer prompts, or fewer that are in the cache; if all rise, the queue does.",
				queries: []query{{expr: `histogram_quantile(0.95, sum by (model_name, tenant, le) (rate(llmfleet_tenant_ttft_seconds_bucket{..., tenant=~"$tenant"}[$__rate_interval])))`, legend: "{{model_name}} {{tenant}}"}},
			},
			{
				kind: graph, title: "Why nobody is named", unit: count, width: 12, empty: "nothing is withheld, or port 8888 is not scraped",
				help:    "Verdicts a second that tenant_share does not give because they would not be true, of all models. Unidentifiable is no fault; unaccounted, no_engines and no_tokens are.",
				page:    "docs/tenants.md#what-it-withholds",
				queries: []query{{expr: `sum by (reason) (rate(otelcol_processor_tenant_share_withheld[$__rate_interval]))`, legend: "{{reason}}"}},
			},
		}},
	},
}
