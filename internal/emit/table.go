// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package emit

import (
	"slices"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// Metric describes one derived metric.
type Metric struct {
	Name        string
	Kind        fleet.Kind
	Unit        string   // UCUM
	Description string   // one sentence
	Of          Scope    // whose labels its points carry
	Attributes  []string // beyond those of the scope
	Enabled     bool     // by default
	Component   string   // that emits it
	Stability   Stability
}

// Scope is what a point tells about.
type Scope uint8

// The scopes. Points of a fleet carry its known keys (model_name, role,
// engine_name, …); points of a replica also replica, on Kubernetes namespace
// and pod, and model_revision, engine_version and config_hash where known; points
// of a node carry node, and cluster where known; points of a tenant or of a tier
// carry the fleet's keys, where it is told of one model, and tenant or tier; points
// of a canary carry the fleet's keys and canary and baseline, the variants that
// are compared.
const (
	Fleet Scope = iota
	Replica
	Node     // the node of a cluster that it tells about
	Platform // no labels but the metric's own
	Tenant   // who sends requests
	Tier     // the class of service that requests ask for
	Canary   // a canary against its baseline
)

// String names the scope.
func (s Scope) String() string {
	switch s {
	case Replica:
		return "replica"
	case Node:
		return "node"
	case Platform:
		return "platform"
	case Tenant:
		return "tenant"
	case Tier:
		return "tier"
	case Canary:
		return "canary"
	default:
		return "fleet"
	}
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
	ReplicaPrefixHitRatio   = "llmfleet.replica.prefix_hit_ratio"
	FleetLatency            = "llmfleet.fleet.latency"
	FleetLatencySpread      = "llmfleet.fleet.latency_spread_ratio"
	FleetRequests           = "llmfleet.fleet.requests"
	FleetKVUsage            = "llmfleet.fleet.kv_usage_ratio"
	FleetWaitingImbalance   = "llmfleet.fleet.waiting_imbalance_ratio"
	FleetReplicas           = "llmfleet.fleet.replicas"
	FleetCoverage           = "llmfleet.fleet.coverage_ratio"
	FleetPrefixHitRatio     = "llmfleet.fleet.prefix_hit_ratio"

	ReplicaOutlier         = "llmfleet.replica.outlier"
	ReplicaOutlierEvidence = "llmfleet.replica.outlier_evidence"
	ReplicaOutlierCause    = "llmfleet.replica.outlier_cause"
	ReplicaOutlierSignal   = "llmfleet.replica.outlier_signal"
	ReplicaStuck           = "llmfleet.replica.stuck"
	FleetOutliers          = "llmfleet.fleet.outliers"
	NodeOutlier            = "llmfleet.node.outlier"

	ReplicaErrorRatio       = "llmfleet.replica.error_ratio"
	ReplicaGenerationTokens = "llmfleet.replica.generation_tokens" //nolint:gosec // no credential
	ReplicaPreemptions      = "llmfleet.replica.preemptions"
	ReplicaPromptLength     = "llmfleet.replica.prompt_length"
	ReplicaOutputLength     = "llmfleet.replica.output_length"
	ReplicaWorkRatio        = "llmfleet.replica.work_ratio"
	FleetErrorRatio         = "llmfleet.fleet.error_ratio"
	FleetGenerationTokens   = "llmfleet.fleet.generation_tokens" //nolint:gosec // no credential
	FleetPreemptions        = "llmfleet.fleet.preemptions"
	FleetPromptLength       = "llmfleet.fleet.prompt_length"
	FleetOutputLength       = "llmfleet.fleet.output_length"
)

// Names of the metrics of fleet_identity.
const (
	ReplicaVariantChanges = "llmfleet.replica.variant_changes"
	IdentitySources       = "llmfleet.identity.sources"
	ComponentSignals      = "llmfleet.component.signals"
)

// Attributes that tell the series of one metric and scope apart.
const (
	AttributeReplica   = "replica"
	AttributeSignal    = "signal"
	AttributeQuantile  = "quantile"
	AttributeState     = "state"
	AttributeDialect   = "dialect"
	AttributeAlias     = "alias"
	AttributeComponent = "component"
	AttributeReason    = "reason"
	AttributeStage     = "stage"
	AttributeCause     = "cause"
	AttributeNode      = "node"
	AttributeCluster   = "cluster"
	AttributeModelName = "model_name"
	AttributeTenant    = "tenant"
	AttributeTier      = "tier"
	AttributeTokenType = "token_type"
	AttributeOutcome   = "outcome"
	AttributeDirection = "direction"
	AttributeMeasure   = "measure"
	AttributeStatistic = "statistic"
	AttributeVerdict   = "verdict"
	AttributeArm       = "arm"
	AttributeCanary    = "canary"
	AttributeBaseline  = "baseline"
)

const (
	fleetOutlier  = "fleet_outlier"
	fleetIdentity = "fleet_identity"
	tenantUsage   = "tenant_usage"
	tenantShare   = "tenant_share"
	canaryDelta   = "canary_delta"
)

var (
	bySignal         = []string{AttributeSignal}
	bySignalQuantile = []string{AttributeSignal, AttributeQuantile}
	byState          = []string{AttributeState}
)

// Metrics is every metric that llmfleet derives.
var Metrics = slices.Concat(
	outlierMetrics, alarmMetrics, workMetrics, identityMetrics, canonicalMetrics(), tenantMetrics, tierMetrics, shareMetrics,
	canaryMetrics, coldStartMetrics,
)

var identityMetrics = []Metric{
	{
		ReplicaVariantChanges, fleet.Counter, "{change}", "How often the replica's model revision, engine version or configuration was another than before.",
		Replica, nil, true, fleetIdentity, Alpha,
	},
	{
		IdentitySources, fleet.Gauge, "{flag}", "Is 1 for each dialect that the replica speaks, with the name of a metric where it uses another than the one that the dialect prefers; dialect none: it tells no signal.",
		Replica,
		[]string{AttributeDialect, AttributeAlias},
		true, fleetIdentity, Development,
	},
	{
		ComponentSignals, fleet.Gauge, "{signal}", "Signals of a part of the platform by whether they are told: seen, stale (told before, silent now) or missing.",
		Platform,
		[]string{AttributeComponent, AttributeState},
		true, fleetIdentity, Development,
	},
}

var outlierMetrics = []Metric{
	{
		ReplicaLatency, fleet.Gauge, "s", "Quantile of a latency of the replica over the window.",
		Replica, bySignalQuantile, true, fleetOutlier, Beta,
	},
	{
		ReplicaLatencyRatio, fleet.Gauge, "1", "The replica's quantile over that of its peers, of the whole fleet or of the median replica, as compare_to says.",
		Replica, bySignalQuantile, true, fleetOutlier, Beta,
	},
	{
		ReplicaLatencyLowRatio, fleet.Gauge, "1", "Lower bound of latency_ratio: the low bound of the replica's quantile over the high bound of the other, each at 95 % confidence.",
		Replica, bySignalQuantile, false, fleetOutlier, Alpha,
	},
	{
		ReplicaLatencyHighRatio, fleet.Gauge, "1", "Upper bound of latency_ratio: the high bound of the replica's quantile over the low bound of the other, each at 95 % confidence.",
		Replica, bySignalQuantile, false, fleetOutlier, Alpha,
	},
	{
		ReplicaObservations, fleet.Gauge, "{observation}", "Observations in the window that the replica's quantiles stand on.",
		Replica, bySignal, true, fleetOutlier, Beta,
	},
	{
		ReplicaRequests, fleet.Gauge, "{request}", "Requests waiting or running on the replica, mean over the time of the window.",
		Replica, byState, true, fleetOutlier, Beta,
	},
	{
		ReplicaKVUsage, fleet.Gauge, "1", "Share of the replica's KV cache in use, mean over the time of the window and over ranks.",
		Replica, nil, true, fleetOutlier, Beta,
	},
	{
		ReplicaLoadRatio, fleet.Gauge, "1", "The replica's waiting or running requests, or KV cache usage, over the fleet's mean; the mean of waiting is taken as at least 1.",
		Replica, bySignal, false, fleetOutlier, Alpha,
	},
	{
		ReplicaPrefixHitRatio, fleet.Gauge, "1", "Prompt tokens, or blocks, that the replica's prefix cache held, over those that were looked up in the window.",
		Replica, nil, false, fleetOutlier, Alpha,
	},
	{
		FleetLatency, fleet.Gauge, "s", "Quantile of a latency of the whole fleet over the window.",
		Fleet, bySignalQuantile, true, fleetOutlier, Beta,
	},
	{
		FleetLatencySpread, fleet.Gauge, "1", "Quantile of the slowest judged replica over that of the whole fleet.",
		Fleet, bySignalQuantile, true, fleetOutlier, Alpha,
	},
	{
		FleetRequests, fleet.Gauge, "{request}", "Requests waiting or running in the fleet: sum of the replicas' means over the window.",
		Fleet, byState, true, fleetOutlier, Beta,
	},
	{
		FleetKVUsage, fleet.Gauge, "1", "Share of the KV cache in use: mean over the replicas' means over the window.",
		Fleet, nil, true, fleetOutlier, Beta,
	},
	{
		FleetWaitingImbalance, fleet.Gauge, "1", "Longest queue over the mean queue of the replicas at the end of the window; the mean is taken as at least 1.",
		Fleet, nil, true, fleetOutlier, Alpha,
	},
	{
		FleetReplicas, fleet.Gauge, "{replica}", "Replicas by how far their judgement came: judged, warming, unreachable or withheld.",
		Fleet, byState, true, fleetOutlier, Beta,
	},
	{
		FleetPrefixHitRatio, fleet.Gauge, "1", "Prompt tokens, or blocks, that the fleet's prefix caches held, over those that were looked up in the window.",
		Fleet, nil, false, fleetOutlier, Alpha,
	},
	{
		FleetCoverage, fleet.Gauge, "1", "Judged replicas over expected ones: those that were heard from, or whose scrape was tried, before they count as departed.",
		Fleet, nil, true, fleetOutlier, Beta,
	},
}
