// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package emit

import "github.com/llmfleet/llmfleet/internal/fleet"

var alarmMetrics = []Metric{
	{
		ReplicaOutlier, fleet.Gauge, "{flag}", "Is 1 while the replica is flagged as an outlier of its fleet: slower than tolerated, or failing more of its requests, at the false-alarm rate that alarm sets.",
		Replica, nil, true, fleetOutlier, Beta,
	},
	{
		ReplicaOutlierEvidence, fleet.Gauge, "{score}", "Evidence that the replica is an outlier: log of the strongest detector over the log of its threshold; 0 is none, 1 and more flags it.",
		Replica, nil, true, fleetOutlier, Beta,
	},
	{
		ReplicaOutlierCause, fleet.Gauge, "{flag}", "Is 1 for the likely cause while the replica is flagged: routing, load, hardware, placement, cold_cache, errors, variant or unknown. Told of replicas that were flagged before.",
		Replica,
		[]string{AttributeCause},
		true, fleetOutlier, Beta,
	},
	{
		ReplicaOutlierSignal, fleet.Gauge, "{flag}", "Is 1 for each signal that flagged the replica. Told of replicas that were flagged before.",
		Replica, bySignal, true, fleetOutlier, Alpha,
	},
	{
		ReplicaStuck, fleet.Gauge, "{flag}", "Is 1 while the replica has work and makes no token in two intervals, or answers without any engine metric.",
		Replica, nil, true, fleetOutlier, Beta,
	},
	{
		FleetOutliers, fleet.Gauge, "{replica}", "Replicas that are flagged as outliers.",
		Fleet, nil, true, fleetOutlier, Beta,
	},
	{
		NodeOutlier, fleet.Gauge, "{flag}", "Is 1 while replicas of two models and more on the node are flagged: it is the node that is slow. Told of nodes on which a replica was flagged before.",
		Node, nil, true, fleetOutlier, Beta,
	},
}

// workMetrics are the spread of what replicas do, beside their latency.
var workMetrics = []Metric{
	{
		ReplicaErrorRatio, fleet.Gauge, "1", "Requests of the replica that ended in an error, over all that ended in the window.",
		Replica, nil, false, fleetOutlier, Alpha,
	},
	{
		ReplicaGenerationTokens, fleet.Gauge, "{token}/s", "Output tokens that the replica made, a second of the window.",
		Replica, nil, false, fleetOutlier, Alpha,
	},
	{
		ReplicaPreemptions, fleet.Gauge, "{preemption}/s", "Requests that the replica pushed back to its queue, a second of the window.",
		Replica, nil, false, fleetOutlier, Alpha,
	},
	{
		ReplicaPromptLength, fleet.Gauge, "{token}", "Mean prompt length of the replica's requests in the window.",
		Replica, nil, false, fleetOutlier, Alpha,
	},
	{
		ReplicaOutputLength, fleet.Gauge, "{token}", "Mean output length of the replica's requests that ended in the window.",
		Replica, nil, false, fleetOutlier, Alpha,
	},
	{
		ReplicaWorkRatio, fleet.Gauge, "1", "The replica's errors, prefix_hits, generation_tokens, preemptions, prompt_length or output_length over those of its peers, of the whole fleet or of the median replica, as compare_to says.",
		Replica, bySignal, false, fleetOutlier, Alpha,
	},
	{
		FleetErrorRatio, fleet.Gauge, "1", "Requests of the fleet that ended in an error, over all that ended in the window.",
		Fleet, nil, false, fleetOutlier, Alpha,
	},
	{
		FleetGenerationTokens, fleet.Gauge, "{token}/s", "Output tokens that the fleet made, a second of the window.",
		Fleet, nil, false, fleetOutlier, Alpha,
	},
	{
		FleetPreemptions, fleet.Gauge, "{preemption}/s", "Requests that the fleet's replicas pushed back to their queues, a second of the window.",
		Fleet, nil, false, fleetOutlier, Alpha,
	},
	{
		FleetPromptLength, fleet.Gauge, "{token}", "Mean prompt length of the fleet's requests in the window.",
		Fleet, nil, false, fleetOutlier, Alpha,
	},
	{
		FleetOutputLength, fleet.Gauge, "{token}", "Mean output length of the fleet's requests that ended in the window.",
		Fleet, nil, false, fleetOutlier, Alpha,
	},
}
