// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"time"

	"github.com/llmfleet/llmfleet/internal/window"
)

// Verdict is what is said of a canary, overall or in one measure.
type Verdict uint8

// The verdicts. One that is given stands until the comparison ends; only a pass
// may yet become a fail.
const (
	Inconclusive Verdict = iota
	Pass
	Fail
	VerdictCount // how many verdicts there are; not a verdict
)

var verdictNames = [VerdictCount]string{"inconclusive", "pass", "fail"}

// String is the verdict's name in the attribute `verdict`.
func (v Verdict) String() string { return verdictNames[v] }

// Arm is one side of the comparison.
type Arm uint8

// The arms.
const (
	Canary Arm = iota
	Baseline
	ArmCount // how many arms there are; not an arm
)

var armNames = [ArmCount]string{"canary", "baseline"}

// String is the arm's name in the attribute `arm`.
func (a Arm) String() string { return armNames[a] }

// Reason is why a verdict is inconclusive, or what else is to be known of it.
type Reason uint8

// The reasons.
const (
	Undecided        Reason = iota // both arms are observed, and the evidence goes neither way yet
	InsufficientData               // too few observations of the canary or of its baseline
	NoTraffic                      // the canary has finished no request for ten minutes, or has no replica that is reached
	NoBaseline                     // no replica that the canary may be compared with
	BurnIn                         // the first requests of new replicas: short ones finish first
	ColdCache                      // the canary's prefix cache holds far less than its baseline's yet
	TrafficMix                     // prompts differ between the arms
	NotComparable                  // told by one arm only, or with no bucket bound in common
	Promoted                       // the canary has become the majority: the comparison has ended
	FewReplicas                    // of fewer than three replicas, a slow version and a slow replica look alike; a caveat
	ReasonCount                    // how many reasons there are; not a reason
)

var reasonNames = [ReasonCount]string{
	"undecided", "insufficient_data", "no_traffic", "no_baseline", "burn_in", "cold_cache", "traffic_mix", "not_comparable", "promoted", "few_replicas",
}

// String is the reason's name in the attribute `reason`.
func (r Reason) String() string { return reasonNames[r] }

// Reasons is a set of them.
type Reasons uint16

// Has tells whether the reason is among them.
func (rs Reasons) Has(r Reason) bool { return rs&(1<<r) != 0 }

func (rs *Reasons) add(r Reason) { *rs |= 1 << r }

// Withheld is why a figure is not given.
type Withheld uint8

// The reasons.
const (
	Given         Withheld = iota // it is
	Unobserved                    // an arm has no observations
	Saturated                     // the quantile lies above the top bucket bound
	LowestBucket                  // the quantile lies in a lowest bucket that has no lower bound
	ZeroBaseline                  // there is nothing to divide by
	Unbounded                     // observations are too few, or buckets too wide, to bound it
	SumUnknown                    // the engine tells no sums
	WithheldCount                 // how many reasons there are; not a reason
)

var withheldNames = [WithheldCount]string{
	"given", "unobserved", "saturated", "lowest_bucket", "zero_baseline", "unbounded", "sum_unknown",
}

// String is the reason's name in self-telemetry.
func (w Withheld) String() string { return withheldNames[w] }

// Figure is one number of a report, or why there is none.
type Figure struct {
	Value    float64
	Withheld Withheld
}

// Report is what a closed pane says of one fleet's canary.
type Report struct {
	// Of are the variants that are compared, as the canary and baseline labels
	// name them.
	Of [ArmCount]string
	// Replicas of each arm that are reached, and the age of the one in the middle
	// in seconds.
	Replicas [ArmCount]int
	// Others are replicas of neither arm: of a further variant, or it is not known of
	// which.
	Others int
	Age    [ArmCount]Figure
	// Verdict over all watched measures, and the measure that drives it: that with
	// the most evidence of a fail, or with the least of what the others have passed.
	// Driver is -1 if no measure can.
	Verdict Verdict
	Reasons Reasons
	Driver  int
	// Since is the end of the pane before the first that counts; zero before. For
	// is how long the arms have been compared.
	Since window.Instant
	For   time.Duration
	// Measures are those that either arm has told, in the order of the options.
	Measures []MeasureReport
}

// MeasureReport is one measure.
type MeasureReport struct {
	*Measure
	Watched bool
	Verdict Verdict
	Reasons Reasons
	// Evidence by verdict, Fail and Pass: log of the e-value over the log of its
	// threshold; 0 and less is none, 1 and more gives the verdict.
	Evidence [VerdictCount]float64
	// Observations are those that the figures stand on: those compared.
	Observations [ArmCount]uint64
	// Boundary is the bucket bound at which the canary differs most; withheld of
	// measures without buckets.
	Boundary   Figure
	Statistics []Statistic
}

// Statistic is one number of both arms, over the whole comparison.
type Statistic struct {
	// Name in the attribute `statistic`: p50, p95 and mean of distributions and
	// levels, ratio of fractions, and the reason of a share of finish reasons.
	Name   string
	Values [ArmCount]Figure
	// Delta is the canary's less the baseline's, Ratio over it. Low and High bound
	// the ratio at all times at once with 95 % confidence (Howard and Ramdas,
	// Bernoulli 28, 2022; of means, Waudby-Smith et al., 2103.06476).
	Delta, Ratio, Low, High Figure
}
