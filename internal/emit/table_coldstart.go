// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package emit

import "github.com/llmfleet/llmfleet/internal/fleet"

// Names of the metrics of cold_start.
const (
	ColdStartDuration      = "llmfleet.coldstart.duration"
	ColdStartStageDuration = "llmfleet.coldstart.stage.duration"
	ColdStartCritical      = "llmfleet.coldstart.critical_ratio"
	ColdStartUnattributed  = "llmfleet.coldstart.unattributed_ratio"
	ColdStartInProgress    = "llmfleet.coldstart.in_progress"
	ColdStartFailed        = "llmfleet.coldstart.failed"
)

// Attributes of the metrics of cold_start.
const (
	AttributeNamespace   = "namespace"
	AttributeGPUModel    = "gpu_model"
	AttributeNodeWarm    = "node_warm"
	AttributeImageCached = "image_cached"
	AttributeStartClass  = "start_class"
)

const coldStart = "cold_start"

var byStage = []string{AttributeStage}

var coldStartMetrics = []Metric{
	{
		ColdStartDuration, fleet.Histogram, "s", "Time from when a replica was asked for, or its pod was created, until it was ready.",
		Fleet,
		[]string{AttributeNodeWarm, AttributeImageCached, AttributeStartClass},
		true, coldStart, Beta,
	},
	{
		ColdStartStageDuration, fleet.Histogram, "s", "Time in which a start was at a stage, counted once however many containers and pods were at it: one observation for each start that had the stage.",
		Fleet,
		[]string{AttributeStage, AttributeNodeWarm, AttributeImageCached, AttributeStartClass},
		true, coldStart, Beta,
	},
	{
		ColdStartCritical, fleet.Gauge, "1", "Share of the time of the starts in the window that the stage was what the replica waited for; over all stages it adds up to 1.",
		Fleet, byStage, true, coldStart, Alpha,
	},
	{
		ColdStartUnattributed, fleet.Gauge, "1", "Share of the time of the starts in the window that nothing known explains.",
		Fleet, nil, true, coldStart, Alpha,
	},
	{
		ColdStartInProgress, fleet.Gauge, "{replica}", "Replicas that start now, by the stage that they are at.",
		Fleet, byStage, true, coldStart, Beta,
	},
	{
		ColdStartFailed, fleet.Counter, "{start}", "Starts that ended before the replica was ready, by the stage at which it stopped and how: gone (deleted or ended) or expired (not ready within ttl).",
		Fleet,
		[]string{AttributeStage, AttributeOutcome},
		true, coldStart, Beta,
	},
}
