// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package emit

import "github.com/llmfleet/llmfleet/internal/fleet"

// Names of the metrics of canary_delta.
const (
	CanaryVerdict      = "llmfleet.canary.verdict"
	CanaryReason       = "llmfleet.canary.reason"
	CanaryDriver       = "llmfleet.canary.driver"
	CanaryEvidence     = "llmfleet.canary.evidence"
	CanaryObservations = "llmfleet.canary.observations"
	CanaryRatio        = "llmfleet.canary.ratio"
	CanaryLowRatio     = "llmfleet.canary.low_ratio"
	CanaryHighRatio    = "llmfleet.canary.high_ratio"
	CanaryReplicas     = "llmfleet.canary.replicas"
	CanaryAge          = "llmfleet.canary.age"
	CanaryDuration     = "llmfleet.canary.duration"
)

// CanaryFamily is the measures of a canary whose values have one unit, and the
// names of the metrics of those values.
type CanaryFamily struct {
	Value, BaselineValue, Delta string
	// Boundary is that of the bucket bound at which the arms differ most; empty
	// where measures have no buckets.
	Boundary string
	unit     string
	of       string // in descriptions
}

// Families of a canary's measures.
var (
	CanaryLatency = CanaryFamily{
		"llmfleet.canary.latency_value", "llmfleet.canary.latency_baseline_value", "llmfleet.canary.latency_delta",
		"llmfleet.canary.latency_boundary", "s", "a latency: ttft, itl, tpot, e2e or queue_time",
	}
	CanaryShare = CanaryFamily{
		"llmfleet.canary.share_value_ratio", "llmfleet.canary.share_baseline_value_ratio", "llmfleet.canary.share_delta_ratio",
		"", "1", "a share: of requests that failed (errors), of those that ended for a reason (finish_reasons), or of prompt tokens found in the prefix cache (prefix_hits)",
	}
	CanaryLength = CanaryFamily{
		"llmfleet.canary.length_value", "llmfleet.canary.length_baseline_value", "llmfleet.canary.length_delta",
		"llmfleet.canary.length_boundary", "{token}", "prompt_length or output_length",
	}
	CanaryRate = CanaryFamily{
		"llmfleet.canary.rate_value", "llmfleet.canary.rate_baseline_value", "llmfleet.canary.rate_delta",
		"", "{token}/s", "the output tokens a second of one replica (generation_tokens)",
	}
	CanaryQuality = CanaryFamily{
		"llmfleet.canary.quality_value", "llmfleet.canary.quality_baseline_value", "llmfleet.canary.quality_delta",
		"llmfleet.canary.quality_boundary", "{score}", "a measure that the configuration names under quality",
	}
)

var (
	byMeasure          = []string{AttributeMeasure}
	byMeasureStatistic = []string{AttributeMeasure, AttributeStatistic}
	byMeasureVerdict   = []string{AttributeMeasure, AttributeVerdict}
	byArm              = []string{AttributeArm}
)

var canaryMetrics = func() []Metric {
	all := []Metric{
		{
			CanaryVerdict, fleet.Gauge, "{flag}", "Is 1 for the verdict on the canary, pass, fail or inconclusive, and 0 for the others: in each measure, and overall.",
			Canary, byMeasureVerdict, true, canaryDelta, Beta,
		},
		{
			CanaryReason, fleet.Gauge, "{flag}", "Is 1 for each reason why the verdict is inconclusive, overall or in a measure, and for few_replicas, which qualifies any.",
			Canary,
			[]string{AttributeMeasure, AttributeReason},
			true, canaryDelta, Beta,
		},
		{
			CanaryDriver, fleet.Gauge, "{flag}", "Is 1 for the measure that drives the overall verdict: the one that failed, or the one that is furthest from a pass.",
			Canary, byMeasure, true, canaryDelta, Beta,
		},
		{
			CanaryEvidence, fleet.Gauge, "{score}", "Evidence for a verdict, fail or pass: log of the e-value over the log of its threshold; 0 is none, 1 and more gives the verdict.",
			Canary, byMeasureVerdict, true, canaryDelta, Beta,
		},
		{
			CanaryObservations, fleet.Gauge, "{observation}", "Observations that were compared, of the canary or of its baseline (arm).",
			Canary,
			[]string{AttributeMeasure, AttributeArm},
			true, canaryDelta, Alpha,
		},
		{
			CanaryRatio, fleet.Gauge, "1", "The canary's value over the baseline's.",
			Canary, byMeasureStatistic, true, canaryDelta, Beta,
		},
		{
			CanaryLowRatio, fleet.Gauge, "1", "Lower bound of ratio, valid at all times at once with 95 % confidence.",
			Canary, byMeasureStatistic, true, canaryDelta, Beta,
		},
		{
			CanaryHighRatio, fleet.Gauge, "1", "Upper bound of ratio, valid at all times at once with 95 % confidence.",
			Canary, byMeasureStatistic, true, canaryDelta, Beta,
		},
		{
			CanaryReplicas, fleet.Gauge, "{replica}", "Replicas of the canary or of its baseline (arm) that are reached; and those of neither (other), of a further version or without labels that tell which.",
			Canary, byArm, true, canaryDelta, Beta,
		},
		{
			CanaryAge, fleet.Gauge, "s", "How long ago the process of the replica in the middle of an arm began; where that is not told, how long ago it was first seen.",
			Canary, byArm, true, canaryDelta, Alpha,
		},
		{
			CanaryDuration, fleet.Gauge, "s", "How long the arms have been compared, burn-in left out.",
			Canary, nil, true, canaryDelta, Alpha,
		},
	}
	for _, f := range []CanaryFamily{CanaryLatency, CanaryShare, CanaryLength, CanaryRate, CanaryQuality} {
		all = append(
			all,
			Metric{f.Value, fleet.Gauge, f.unit, "The canary's value, over the whole comparison, of " + f.of + ".", Canary, byMeasureStatistic, true, canaryDelta, Alpha},
			Metric{f.BaselineValue, fleet.Gauge, f.unit, "The baseline's value, over the whole comparison, of " + f.of + ".", Canary, byMeasureStatistic, true, canaryDelta, Alpha},
			Metric{f.Delta, fleet.Gauge, f.unit, "The canary's value less the baseline's, of " + f.of + ".", Canary, byMeasureStatistic, true, canaryDelta, Alpha},
		)
		if f.Boundary != "" {
			all = append(all, Metric{f.Boundary, fleet.Gauge, f.unit, "The bucket bound at which canary and baseline differ most, of " + f.of + ".", Canary, byMeasure, true, canaryDelta, Alpha})
		}
	}
	return all
}()
