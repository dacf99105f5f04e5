// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import "github.com/llmfleet/llmfleet/internal/fleet"

// Measure is something that the canary and its baseline are compared in.
type Measure struct {
	// Name in the attribute `measure`.
	Name string
	// Family is the measures whose values have the same unit.
	Family Family
	// Worse is on which side of its baseline a canary is worse.
	Worse Side

	kind kind
	ways []way // in which engines tell it, of which the first that an arm tells counts
}

// Family is the measures whose values have one unit.
type Family uint8

// The families, and the units of their values.
const (
	Latency     Family = iota // s
	Share                     // 1
	Length                    // {token}
	Rate                      // {token}/s
	Quality                   // {score}: whatever the user names
	FamilyCount               // how many families there are; not a family
)

// Side is on which side of its baseline something lies.
type Side uint8

// The sides.
const (
	Higher Side = iota
	Lower
	Either // a change is one for the worse, whichever way
)

// kind is how a measure is told, and so how evidence is won from it.
type kind uint8

const (
	distribution kind = iota // buckets of a histogram
	fraction                 // one count of another
	categories               // counts by reason
	level                    // a mean over replicas
)

// way is one way in which engines tell a measure. Whole is another than part
// only of a fraction.
type way struct{ part, whole fleet.Signal }

// Overall is the measure of the verdict over all that are watched.
const Overall = "overall"

// FinishReasons is the measure of why requests end.
const FinishReasons = "finish_reasons"

// measures are those that engines tell.
var measures = []Measure{
	{Name: fleet.TTFT.String(), Family: Latency, ways: []way{{part: fleet.TTFT}}},
	{Name: fleet.ITL.String(), Family: Latency, ways: []way{{part: fleet.ITL}}},
	{Name: fleet.TPOT.String(), Family: Latency, ways: []way{{part: fleet.TPOT}}},
	{Name: fleet.E2E.String(), Family: Latency, ways: []way{{part: fleet.E2E}}},
	{Name: fleet.QueueTime.String(), Family: Latency, ways: []way{{part: fleet.QueueTime}}},
	{Name: fleet.Errors.String(), Family: Share, kind: fraction, ways: []way{{fleet.Errors, fleet.Finished}}},
	{Name: FinishReasons, Family: Share, kind: categories, ways: []way{{part: fleet.Finished}}},
	{Name: fleet.PromptLength.String(), Family: Length, Worse: Either, ways: []way{{part: fleet.PromptLength}}},
	{Name: fleet.OutputLength.String(), Family: Length, Worse: Either, ways: []way{{part: fleet.OutputLength}}},
	{Name: fleet.PrefixHits.String(), Family: Share, Worse: Lower, kind: fraction, ways: []way{
		{fleet.PrefixHits, fleet.PrefixQueries},
		{fleet.PrefixBlockHits, fleet.PrefixBlockQueries},
	}},
	{Name: fleet.GenerationTokens.String(), Family: Rate, Worse: Lower, kind: level, ways: []way{{part: fleet.GenerationTokens}}},
}

// Names are the names of the measures that engines tell, in their order.
func Names() (names []string) {
	for i := range measures {
		names = append(names, measures[i].Name)
	}
	return names
}

// QualityMeasure is the measure of what the user names: told under the signal
// fleet.Quality(i), by whoever judges answers.
func QualityMeasure(name string, i int, worse Side) Measure {
	return Measure{Name: name, Family: Quality, Worse: worse, ways: []way{{part: fleet.Quality(i)}}}
}

// Signals are what has to be asked of engines.
func Signals() (all []fleet.Signal) {
	for i := range measures {
		m := &measures[i]
		for _, w := range m.ways {
			all = append(all, w.part)
			if m.kind == fraction {
				all = append(all, w.whole)
			}
		}
	}
	return distinct(all)
}

func distinct(signals []fleet.Signal) (all []fleet.Signal) {
	seen := make(map[fleet.Signal]bool)
	for _, s := range signals {
		if !seen[s] {
			seen[s], all = true, append(all, s)
		}
	}
	return all
}
