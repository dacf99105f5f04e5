// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleeteventsconnector

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/llmfleet/llmfleet/internal/emit"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/judge/canary"
)

// verdictSentence tells what is said of a canary now, and the numbers of the
// measure that drives it.
func verdictSentence(t turn, rd *reading) string {
	claim := canaryName(rd.labels) + claimOf(t, rd)
	if t.is == off && t.was != off {
		claim += "; its verdict had been " + t.was.String() + " for " + span(t.lasted)
	}
	return sentence(claim, comparisonNumbers(t, rd))
}

// canaryName names a canary, and where it is.
func canaryName(labels []fleet.Label) string {
	name := ofModel(named("Canary ", labelOf(labels, emit.AttributeCanary), "The canary"), labels)
	if namespace := labelOf(labels, labelNamespace); namespace != "" {
		name += " in " + namespace
	}
	return name
}

// unnamed is the name of a variant of which nothing is known that the other has.
const unnamed = "none"

// named is what a variant is called, with a title, or what else if it has no name.
func named(title, variant, otherwise string) string {
	if variant == "" || variant == unnamed {
		return otherwise
	}
	return title + variant
}

// claims are what verdicts say of a canary. It begins as inconclusive, untold.
var claims = map[state]string{pass: " passes", fail: " fails", inconclusive: " is inconclusive again"}

// claimOf is what a turn says of a canary.
func claimOf(t turn, rd *reading) string {
	baseline := named("", labelOf(rd.labels, emit.AttributeBaseline), "its baseline")
	switch {
	case t.why == silent:
		return " is not heard of any more"
	case t.why == promoted:
		return " has become the majority, and is no longer compared with " + baseline
	case t.is == off:
		return " is no longer compared with " + baseline
	}
	claim := claims[t.is]
	switch {
	case t.of != canary.Overall:
		return claim + " in " + t.of + " against " + baseline + rd.whole()
	case t.was == pass || t.was == fail:
		return claim + " against " + baseline + ", after a " + t.was.String() + " of " + span(t.lasted)
	default:
		return claim + " against " + baseline
	}
}

// whole is what is said overall, beside a measure.
func (rd *reading) whole() string {
	for _, f := range rd.figures {
		if f.metric.Name == emit.CanaryVerdict && f.own[0] == canary.Overall && f.value != 0 {
			return ", overall the verdict is " + f.own[1]
		}
	}
	return ""
}

// comparisonNumbers are the parts of the sentence that tell why.
func comparisonNumbers(t turn, rd *reading) (parts []string) {
	add := func(part string) {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if t.is == inconclusive || t.was == inconclusive && t.is == off {
		add(strings.Join(rd.reasons(t.of), ", "))
	}
	told := rd.driver(t.of)
	add(rd.difference(told))
	if evidence, ok := rd.find(emit.CanaryEvidence, told, t.is.String()); ok {
		add("evidence " + number(evidence))
	}
	add(rd.failed(told))
	if compared, ok := rd.find(emit.CanaryDuration); ok {
		add("compared for " + span(time.Duration(compared*float64(time.Second))))
	}
	add(rd.replicas())
	return parts
}

// reasons are why the verdict is inconclusive, in words. That replicas are few is
// told with them, that it was promoted by the claim.
func (rd *reading) reasons(measure string) (all []string) {
	for _, f := range rd.figures {
		if f.metric.Name != emit.CanaryReason || f.own[0] != measure || f.value == 0 {
			continue
		}
		if reason := f.own[1]; reason != canary.FewReplicas.String() && reason != canary.Promoted.String() {
			all = append(all, words(reason))
		}
	}
	return all
}

// failed tells of the other measures that fail: with the whole, or though it
// passes, since they are not watched.
func (rd *reading) failed(but string) string {
	var others []string
	for _, f := range rd.figures {
		if f.metric.Name == emit.CanaryVerdict && f.own[1] == fail.String() && f.value != 0 &&
			f.own[0] != but && f.own[0] != canary.Overall {
			others = append(others, f.own[0])
		}
	}
	switch {
	case len(others) == 0:
		return ""
	case but == "":
		return "it fails in " + strings.Join(others, ", ")
	default:
		return "besides, it fails in " + strings.Join(others, ", ")
	}
}

// replicas are those of both arms.
func (rd *reading) replicas() string {
	ours, ok := rd.find(emit.CanaryReplicas, canary.Canary.String())
	theirs, known := rd.find(emit.CanaryReplicas, canary.Baseline.String())
	if !ok || !known {
		return ""
	}
	text := fmt.Sprintf("%.0f replicas against %.0f", ours, theirs)
	if ours == 1 {
		text = fmt.Sprintf("1 replica against %.0f", theirs)
	}
	if few, ok := rd.find(emit.CanaryReason, canary.Overall, canary.FewReplicas.String()); ok && few != 0 {
		text += ", too few to tell a bad version from a bad replica"
	}
	return text
}

// family is the measures whose values have one unit.
type family struct {
	emit.CanaryFamily
	amount func(v float64) string // a value as it is spoken
}

var families = []family{
	{emit.CanaryLatency, func(v float64) string { return seconds(v, fine) }},
	{emit.CanaryShare, func(v float64) string { return trimmed(rounded(v*100, fine)) + " %" }},
	{emit.CanaryLength, func(v float64) string { return rounded(v, fine) + " tokens" }},
	{emit.CanaryRate, func(v float64) string { return rounded(v, fine) + " tokens/s" }},
	{emit.CanaryQuality, func(v float64) string { return rounded(v, fine) }},
}

// difference tells of the statistic of a measure in which the arms differ most:
// both values, and the ratio with its interval or, where that is withheld, by how
// much they differ. Where there is no such statistic, it names the measure.
func (rd *reading) difference(measure string) string {
	ours, ok := rd.find(emit.CanaryObservations, measure, canary.Canary.String())
	theirs, known := rd.find(emit.CanaryObservations, measure, canary.Baseline.String())
	counts := ""
	if ok && known {
		counts = fmt.Sprintf(", on %.0f and %.0f observations", ours, theirs)
	}
	s := rd.furthestStatistic(measure)
	if s == nil {
		return measure + counts
	}
	text := measure
	if s.name != statisticRatio {
		text += " " + s.name
	}
	if s.of.CanaryFamily == emit.CanaryShare {
		return text + " " + s.of.portion(s.canary, ours) + " against " + s.of.portion(s.baseline, theirs) + rd.times(s)
	}
	return text + " " + s.of.amount(s.canary) + " against " + s.of.amount(s.baseline) + rd.times(s) + counts
}

// statistic is one number of both arms.
type statistic struct {
	of               *family
	measure, name    string
	canary, baseline float64
}

// statisticRatio is the statistic of measures that have no other.
const statisticRatio = "ratio"

// furthestStatistic is the statistic with the greatest difference, nil if the
// measure has none of both arms. Of the reasons to finish one has grown where
// others shrank: that one is meant.
func (rd *reading) furthestStatistic(measure string) (found *statistic) {
	furthest := math.Inf(-1)
	for _, x := range rd.figures {
		i := slices.IndexFunc(families, func(f family) bool { return f.Value == x.metric.Name })
		if i < 0 || x.own[0] != measure {
			continue
		}
		baseline, ok := rd.find(families[i].BaselineValue, measure, x.own[1])
		by := x.value - baseline
		if measure != canary.FinishReasons {
			by = math.Abs(by)
		}
		if ok && by > furthest {
			furthest, found = by, &statistic{&families[i], measure, x.own[1], x.value, baseline}
		}
	}
	return found
}

// portion is a share of so many, as it is spoken.
func (f *family) portion(share, whole float64) string {
	text := f.amount(share)
	if share == 0 {
		text = "none"
	}
	if whole > 0 {
		text += fmt.Sprintf(" of %.0f", whole)
	}
	return text
}

// times is the ratio of a statistic with its interval. Where it is withheld, or
// nothing is left of the baseline's value, it is by how much the arms differ; shares
// of none say so themselves.
func (rd *reading) times(s *statistic) string {
	interval := rd.interval(s)
	if ratio, ok := rd.find(emit.CanaryRatio, s.measure, s.name); ok && ratio != 0 {
		text := ", " + rounded(ratio, fine) + " times"
		if interval != "" {
			text += " (" + interval + ")"
		}
		return text
	}
	text := ""
	switch {
	case s.of.CanaryFamily == emit.CanaryShare:
	case s.canary < s.baseline:
		text = ", " + s.of.amount(s.baseline-s.canary) + " less"
	default:
		text = ", " + s.of.amount(s.canary-s.baseline) + " more"
	}
	if interval != "" {
		text += ", " + interval + " times"
	}
	return text
}

// interval is that of a ratio, as far as it is bounded: zero is no bound.
func (rd *reading) interval(s *statistic) string {
	low, hasLow := rd.find(emit.CanaryLowRatio, s.measure, s.name)
	high, hasHigh := rd.find(emit.CanaryHighRatio, s.measure, s.name)
	hasLow = hasLow && low > 0
	switch {
	case hasLow && hasHigh:
		return rounded(low, fine) + " to " + rounded(high, fine)
	case hasLow:
		return "at least " + rounded(low, fine)
	case hasHigh:
		return "at most " + rounded(high, fine)
	default:
		return ""
	}
}

// trimmed is a number without the zeros at the end of its decimals.
func trimmed(number string) string {
	if !strings.Contains(number, ".") {
		return number
	}
	return strings.TrimSuffix(strings.TrimRight(number, "0"), ".")
}
