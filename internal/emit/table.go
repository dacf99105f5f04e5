// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package emit

// Metric describes one derived metric. All are gauges.
type Metric struct {
	Name        string
	Unit        string   // UCUM
	Description string   // one sentence
	Of          Scope    // whose labels its points carry
	Attributes  []string // beyond those of the scope
	Enabled     bool     // by default
	Component   string   // that emits it
	Stability   string
}

// Scope is what a point tells about.
type Scope uint8

// The scopes. Points of a fleet carry its known keys (model_name, role,
// engine_name, …); points of a replica also replica, on Kubernetes namespace
// and pod, and model_revision, engine_version and config_hash where known.
const (
	Fleet Scope = iota
	Replica
)

// String names the scope.
func (s Scope) String() string {
	if s == Replica {
		return "replica"
	}
	return "fleet"
}

// Names of the metrics of fleet_outlier.
const (
	ReplicaLatency          = "llmfleet.replica.latency"
	ReplicaLatencyRatio     = "llmfleet.replica.latency_ratio"
	ReplicaLatencyLowRatio  = "llmfleet.replica.latency_low_ratio"
	ReplicaLatencyHighRatio = "llmfleet.replica.latency_high_ratio"
	ReplicaObservations     = "llmfleet.replica.observations"
	ReplicaRequests         = "llmfleet.replica.requests"
	ReplicaKVUsage          = "llmfleet.replica.kv_usage_ratio"
	ReplicaLoadRatio        = "llmfleet.replica.load_ratio"
	FleetLatency            = "llmfleet.fleet.latency"
	FleetLatencySpread      = "llmfleet.fleet.latency_spread_ratio"
	FleetRequests           = "llmfleet.fleet.requests"
	FleetKVUsage            = "llmfleet.fleet.kv_usage_ratio"
	FleetWaitingImbalance   = "llmfleet.fleet.waiting_imbalance_ratio"
	FleetReplicas           = "llmfleet.fleet.replicas"
	FleetCoverage           = "llmfleet.fleet.coverage_ratio"
)

// Attributes that tell the series of one metric and scope apart.
const (
	AttributeReplica  = "replica"
	AttributeSignal   = "signal"
	AttributeQuantile = "quantile"
	AttributeState    = "state"
)

const (
	fleetOutlier = "fleet_outlier"
	development  = "development"
)

var (
	bySignal         = []string{AttributeSignal}
	bySignalQuantile = []string{AttributeSignal, AttributeQuantile}
	byState          = []string{AttributeState}
)

// Metrics is every metric that llmfleet derives.
var Metrics = []Metric{
	{
		ReplicaLatency, "s", "Quantile of a latency of the replica over the window.",
		Replica, bySignalQuantile, true, fleetOutlier, development,
	},
	{
		ReplicaLatencyRatio, "1", "The replica's quantile over that of its peers, or of the whole fleet, as compare_to says.",
		Replica, bySignalQuantile, true, fleetOutlier, development,
	},
	{
		ReplicaLatencyLowRatio, "1", "Lower bound of latency_ratio: the low bound of the replica's quantile over the high bound of the other, each at 95 % confidence.",
		Replica, bySignalQuantile, false, fleetOutlier, development,
	},
	{
		ReplicaLatencyHighRatio, "1", "Upper bound of latency_ratio: the high bound of the replica's quantile over the low bound of the other, each at 95 % confidence.",
		Replica, bySignalQuantile, false, fleetOutlier, development,
	},
	{
		ReplicaObservations, "{observation}", "Observations in the window that the replica's quantiles stand on.",
		Replica, bySignal, true, fleetOutlier, development,
	},
	{
		ReplicaRequests, "{request}", "Requests waiting or running on the replica, mean over the time of the window.",
		Replica, byState, true, fleetOutlier, development,
	},
	{
		ReplicaKVUsage, "1", "Share of the replica's KV cache in use, mean over the time of the window and over ranks.",
		Replica, nil, true, fleetOutlier, development,
	},
	{
		ReplicaLoadRatio, "1", "The replica's waiting or running requests, or KV cache usage, over the fleet's mean; the mean of waiting is taken as at least 1.",
		Replica, bySignal, false, fleetOutlier, development,
	},
	{
		FleetLatency, "s", "Quantile of a latency of the whole fleet over the window.",
		Fleet, bySignalQuantile, true, fleetOutlier, development,
	},
	{
		FleetLatencySpread, "1", "Quantile of the slowest judged replica over that of the whole fleet.",
		Fleet, bySignalQuantile, true, fleetOutlier, development,
	},
	{
		FleetRequests, "{request}", "Requests waiting or running in the fleet: sum of the replicas' means over the window.",
		Fleet, byState, true, fleetOutlier, development,
	},
	{
		FleetKVUsage, "1", "Share of the KV cache in use: mean over the replicas' means over the window.",
		Fleet, nil, true, fleetOutlier, development,
	},
	{
		FleetWaitingImbalance, "1", "Longest queue over the mean queue of the replicas at the end of the window; the mean is taken as at least 1.",
		Fleet, nil, true, fleetOutlier, development,
	},
	{
		FleetReplicas, "{replica}", "Replicas by how far their judgement came: judged, warming, unreachable or withheld.",
		Fleet, byState, true, fleetOutlier, development,
	},
	{
		FleetCoverage, "1", "Judged replicas over expected ones: those that were heard from, or whose scrape was tried, before they count as departed.",
		Fleet, nil, true, fleetOutlier, development,
	},
}
