// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"fmt"
	"strings"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/judge/outlier"
)

// causeWorlds are the scenarios in which one thing is wrong for one reason, and
// what that is to be found as. Each is played with several seeds, which also
// choose whom it strikes.
var causeWorlds = []struct {
	scenario string
	fault    fleetsim.FaultKind
	cause    outlier.Cause
}{
	{"routing", fleetsim.LongPrompts, outlier.Routing},
	{"load", fleetsim.Overload, outlier.Load},
	{"hardware", fleetsim.Throttle, outlier.Hardware},
	{"placement", fleetsim.Slow, outlier.Placement},
	{"cold_cache", fleetsim.ColdCache, outlier.ColdCache},
	{"variant", fleetsim.NewRevision, outlier.Variant},
}

// causePanes is how long such a scenario is played: its fault comes after 65.
const causePanes = 65 + 30

// causes are the worlds that tell how often the cause is the right one. All of
// them together are one figure.
func causes(seeds int, seed uint64) (scored, error) {
	all := scored{figures: []figure{
		{name: "outlier_cause_accuracy", target: atLeast(0.9), take: causeAccuracy, oursOnly: true},
		{name: "outlier_cause_found", take: foundShare},
		{name: "outlier_cause_healthy_flagged", take: falseCount},
	}}
	for _, c := range causeWorlds {
		scenario, err := fleetsim.Builtin(c.scenario)
		if err != nil {
			return scored{}, err
		}
		for i := range seeds {
			scenario.Seed = seed + uint64(i)
			name := fmt.Sprintf("cause_%s-%d", c.scenario, i)
			all.worlds = append(all.worlds, playedWorld(name, scenario, causePanes, causeOf(c.fault, c.cause)))
		}
	}
	return all, nil
}

// causeOf says what faults are to be found as, in a scenario with one kind.
func causeOf(fault fleetsim.FaultKind, cause outlier.Cause) map[fleetsim.FaultKind]outlier.Cause {
	return map[fleetsim.FaultKind]outlier.Cause{fault: cause}
}

// causeAccuracy is the share of the replicas that were found whose cause was the
// right one: the mean over causes, which strike different numbers of them.
func causeAccuracy(o *outcome, _ rule) (value float64, unit, note string) {
	var confusion [outlier.CauseCount][outlier.CauseCount]float64
	for i, s := range o.spells {
		if o.causes[i] != outlier.NoCause {
			confusion[s.cause][o.causes[i]]++
		}
	}
	var shares []float64
	for is := range confusion {
		said := &confusion[is]
		if n := sum(said[:]); n > 0 {
			shares = append(shares, said[is]/n)
		}
	}
	return sum(shares) / float64(len(shares)), "1", confusionNote(&confusion)
}

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

// confusionNote writes, for each cause that was injected, what it was found as.
func confusionNote(confusion *[outlier.CauseCount][outlier.CauseCount]float64) string {
	var rows []string
	for is := range outlier.CauseCount {
		var cells []string
		for said := range outlier.CauseCount {
			if n := confusion[is][said]; n > 0 {
				cells = append(cells, fmt.Sprintf("%s %v", said, n))
			}
		}
		if len(cells) > 0 {
			rows = append(rows, fmt.Sprintf("%s: %s", is, strings.Join(cells, ", ")))
		}
	}
	return strings.Join(rows, "; ")
}
