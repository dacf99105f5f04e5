// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

var capacity = dashboard{
	file:  "capacity.json",
	uid:   "llmfleet-capacity",
	title: "llmfleet / Capacity and DRA",
	help:  "Which GPUs are used for what, what waits for one and why; and the same of devices that are asked for by claims (DRA).",
	page:  "receiver/k8sfleetreceiver/README.md",
	from:  "now-6h",
	variables: []variable{
		{label: "cluster", title: "Cluster", of: "llmfleet_gpu_installed"},
		{label: "node_pool", title: "Node pool", of: "llmfleet_gpu_installed"},
		{label: "gpu_model", title: "GPU", of: "llmfleet_gpu_installed"},
		{label: "namespace", title: "Namespace", of: "llmfleet_workload_ready", apart: true},
	},
	rows: []row{
		{4, []panel{
			{
				kind: stat, title: "Pods that wait for a GPU", unit: count, width: 5, bands: doubtFrom(1, 5), empty: "not told",
				help:    "Pods that ask for GPUs and have no node. The table below says whose they are and what they wait for.",
				queries: []query{{expr: `sum(llmfleet_gpu_pending_pods{cluster=~"$cluster"}) or 0 * count(llmfleet_gpu_installed{cluster=~"$cluster"})`}},
			},
			{
				kind: stat, title: "Longest wait", unit: seconds, width: 5, bands: doubtFrom(60, 300), empty: "not told",
				help:    "Of the pod that has waited longest. Beyond what a new node takes, look at its reason below.",
				queries: []query{{expr: `max(llmfleet_gpu_pending_age_seconds{cluster=~"$cluster"}) or 0 * count(llmfleet_gpu_installed{cluster=~"$cluster"})`}},
			},
			{
				kind: stat, title: "Free", unit: count, width: 5, empty: "not told",
				help:    "GPUs that could take a replica now. With pods that wait and GPUs that are free, it is a matter of rules: quota, taints, affinity.",
				queries: []query{{expr: `sum(llmfleet_gpu_state{..., state="free"})`}},
			},
			{
				kind: stat, title: "Fragmented", unit: count, width: 5, bands: doubtFrom(1, 8), empty: "not told",
				help:    "GPUs that nobody uses, on nodes with too few of them for what waits. Pack replicas, or move small ones.",
				queries: []query{{expr: `sum(llmfleet_gpu_state{..., state="fragmented"})`}},
			},
			{
				kind: stat, title: "Out of service", unit: count, width: 4, bands: doubtFrom(1, 8), empty: "not told",
				help:    "GPUs on nodes that are drained or tainted, or that have a taint themselves. If nobody is at work on them, look for what set the taint.",
				queries: []query{{expr: `sum(llmfleet_gpu_state{..., state=~"tainted|draining"})`}},
			},
		}},
		{9, []panel{
			{
				kind: graph, title: "What GPUs do", unit: count, width: 12, stacked: true, empty: "not told",
				help:    "The states add up to all installed GPUs. A lasting band of allocated_not_ready is paid and serves nobody: see the cold starts.",
				queries: []query{{expr: `sum by (state) (llmfleet_gpu_state{...})`, legend: "{{state}}"}},
			},
			{
				kind: table, title: "Node pools", width: 12, empty: "not told", sortBy: "Asked for",
				help:   "Allocated: what pods asked for over what may be given away. A pool at 100 % with pods that wait has to grow.",
				labels: []label{byCluster, {"node_pool", "Pool"}, byGPU},
				queries: []query{
					{column: column{title: "Installed", unit: count}, expr: `max by (cluster, node_pool, gpu_model) (llmfleet_gpu_installed{...})`},
					{column: column{title: "Allocatable", unit: count}, expr: `max by (cluster, node_pool, gpu_model) (llmfleet_gpu_allocatable{...})`},
					{column: column{title: "Asked for", unit: count}, expr: `max by (cluster, node_pool, gpu_model) (llmfleet_gpu_requested{...})`},
					{column: column{title: "Allocated", unit: share}, expr: `max by (cluster, node_pool, gpu_model) (llmfleet_gpu_allocation_ratio{...})`},
				},
			},
		}},
		{9, []panel{
			{
				kind: table, title: "What waits, and for what", width: 12, empty: "nothing waits, or not told", sortBy: "Longest",
				help:   "Insufficient: add nodes. Fragmented: make room on one. Taint, quota, claim, volume: somebody has to allow it. Gated: a scheduling gate is on purpose, as of a queue.",
				labels: []label{byNamespace, byWorkload, {"reason", "Reason"}},
				queries: []query{
					{column: column{title: "Pods", unit: count}, expr: `sum by (namespace, workload, reason) (llmfleet_gpu_pending_pods{cluster=~"$cluster"} > 0)`},
					{column: column{title: "GPUs", unit: count}, expr: `sum by (namespace, workload, reason) (llmfleet_gpu_pending_gpus{cluster=~"$cluster"} > 0)`},
					{column: column{title: "Longest", unit: seconds, bands: doubtFrom(60, 300)}, expr: `max by (namespace, workload, reason) (llmfleet_gpu_pending_age_seconds{cluster=~"$cluster"} > 0)`},
				},
			},
			{
				kind: table, title: "Asked for, and delivered", width: 12, empty: "no workload is told", sortBy: "Missing for", toModel: true,
				help:   "Replicas. Asked for and not created: the controller, or a quota. Created and not bound: see the table beside. Bound and not ready: see the cold starts.",
				labels: []label{byNamespace, byWorkload, byModel},
				queries: []query{
					{column: column{title: "Desired", unit: count}, expr: workloads + `(llmfleet_workload_desired{cluster=~"$cluster", namespace=~"$namespace"})`},
					{column: column{title: "Created", unit: count}, expr: workloads + `(llmfleet_workload_created{cluster=~"$cluster", namespace=~"$namespace"})`},
					{column: column{title: "Bound", unit: count}, expr: workloads + `(llmfleet_workload_bound{cluster=~"$cluster", namespace=~"$namespace"})`},
					{column: column{title: "Ready", unit: count}, expr: workloads + `(llmfleet_workload_ready{cluster=~"$cluster", namespace=~"$namespace"})`},
					{column: column{title: "Missing for", unit: seconds, bands: doubtFrom(60, 600)}, expr: workloads + `(llmfleet_workload_gap_age_seconds{cluster=~"$cluster", namespace=~"$namespace"})`},
				},
			},
		}},
		{8, []panel{
			{
				kind: graph, title: "DRA: claims", unit: count, width: 8, stacked: true, empty: "no claims, or not told",
				help:    "Pending claims have no device yet, allocated ones have one and no pod that uses it, reserved ones are in use. A band of allocated claims that lasts is waste.",
				queries: []query{{expr: `sum by (class, state) (llmfleet_dra_claim_count{cluster=~"$cluster"})`, legend: "{{class}} {{state}}"}},
			},
			{
				kind: graph, title: "DRA: oldest claim that waits", unit: seconds, width: 8, bands: badFrom(300), empty: "none waits, or not told",
				help:    "Of each class. After minutes: no device fits its selector, or none is free; describe the claim to see its selectors.",
				queries: []query{{expr: `max by (class) (llmfleet_dra_claim_age_seconds{cluster=~"$cluster", state="pending"})`, legend: "{{class}}"}},
			},
			{
				kind: table, title: "DRA: devices", width: 8, empty: "no devices, or not told", sortBy: "Allocated",
				help:   "A device and its partitions are one. Tainted devices take nothing new: the driver, or a DeviceTaintRule, says why.",
				labels: []label{{"driver", "Driver"}, {"pool", "Pool"}},
				queries: []query{
					{column: column{title: "Installed", unit: count}, expr: `max by (driver, pool) (llmfleet_dra_device_installed{cluster=~"$cluster"})`},
					{column: column{title: "Allocatable", unit: count}, expr: `max by (driver, pool) (llmfleet_dra_device_allocatable{cluster=~"$cluster"})`},
					{column: column{title: "Allocated", unit: count}, expr: `sum by (driver, pool) (llmfleet_dra_device_allocated{cluster=~"$cluster"})`},
					{column: column{title: "Tainted", unit: count, bands: doubtFrom(1, 8)}, expr: `max by (driver, pool) (llmfleet_dra_device_tainted{cluster=~"$cluster"})`},
				},
			},
		}},
		{8, []panel{
			{
				kind: graph, title: "DRA: what shared devices have given away", unit: share, width: 12, empty: "no shared devices, or not told",
				help:    "Of each capacity, such as memory, that several claims may take from one device. Close to 100 % the next claim waits.",
				queries: []query{{expr: `max by (driver, pool, capacity) (llmfleet_dra_device_shared_ratio{cluster=~"$cluster"})`, legend: "{{driver}} {{pool}} {{capacity}}"}},
			},
			{
				kind: graph, title: "InferencePools: members, and those that are ready", unit: count, width: 12, empty: "no InferencePool is told",
				help: "The gap is what the endpoint picker cannot send to.",
				queries: []query{
					{expr: `max by (namespace, inference_pool) (llmfleet_inference_pool_members{cluster=~"$cluster", namespace=~"$namespace"})`, legend: "{{namespace}} {{inference_pool}}"},
					{expr: `max by (namespace, inference_pool) (llmfleet_inference_pool_ready{cluster=~"$cluster", namespace=~"$namespace"})`, legend: "{{namespace}} {{inference_pool}}, ready"},
				},
			},
		}},
	},
}

// workloads, put before a selector, leaves one series of each workload.
const workloads = "max by (namespace, workload, model_name) "
