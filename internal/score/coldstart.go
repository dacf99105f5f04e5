// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// coldStartPods is how many pods start in one world.
const coldStartPods = 10_000

// ColdStarts makes the card of the account of cold starts. The peer is what one has
// by subtracting times as they are told.
func ColdStarts(o Options) (*Card, error) {
	const name = "coldstart"
	var card Card
	if !o.Only.MatchString(name) {
		return &card, nil
	}
	worlds := 1
	if o.Full {
		worlds = 10
	}
	all := newStartOutcome()
	for n := range worlds {
		played, err := playColdStarts(fmt.Sprintf("%s_%d", name, n), coldStartPods, o.Seed)
		if err != nil {
			return nil, err
		}
		all.add(played)
	}
	card.Lines = all.lines()
	return &card, nil
}

// lines are what the card says.
func (o *startOutcome) lines() []Line {
	const asTold = "/as_told"
	share := func(n, of int) float64 { return float64(n) / float64(of) }
	whole := fmt.Sprintf("%d starts of %d pods, %d facts", o.starts, o.pods, o.facts)
	negative := Line{Name: "coldstart_negative_spans", Value: float64(o.negative), Unit: "{span}", Target: atMost(0)}
	negative.Note = fmt.Sprintf("of %d, %s", o.spans, whole)
	negativeAsTold := Line{Name: negative.Name + asTold, Value: float64(o.negativeAsTold), Unit: "{span}", Peer: true}
	within := Line{Name: "coldstart_stage_within_1s", Value: share(o.right, o.stages), Unit: "1", Target: atLeast(0.99)}
	within.Note = fmt.Sprintf("of %d stages whose boundaries were told; off: %s", o.stages, o.worst(4))
	withinAsTold := Line{Name: within.Name + asTold, Value: share(o.rightAsTold, o.stages), Unit: "1", Peer: true}
	dominant := Line{Name: "coldstart_dominant_stage_right", Value: share(o.dominant, o.ready), Unit: "1", Target: atLeast(0.95)}
	dominant.Note = fmt.Sprintf("of %d starts that were told to be ready; unattributed would be right for %s of them", o.ready, short(share(o.guessed, o.ready)))
	return []Line{
		negative, negativeAsTold,
		{Name: "coldstart_sum_error_ms", Value: float64(o.sum) / float64(time.Millisecond), Unit: "ms", Target: atMost(1), Note: "the worst of " + whole},
		within, withinAsTold, dominant,
		{Name: "coldstart_total_error_p99", Value: percentile(o.totals, 0.99), Unit: "s", Note: "of starts that were told to be ready"},
		{
			Name: "coldstart_starts_told", Value: share(o.once-o.again, o.starts), Unit: "1", Target: atLeast(0.998),
			Note: fmt.Sprintf("%d of %d, %d more than once; of one in 3000 nobody hears of its creation nor that it was scheduled", o.once, o.starts, o.again),
		},
		{Name: "coldstart_leaked_state", Value: float64(o.leaked), Unit: "{pod}", Target: atMost(0), Note: "after twice the time to live"},
		o.controls(),
	}
}

// controls tells whether what must not pass fails in this world: negative spans
// without repair, a truth in which every stage is three seconds longer, and calling
// every start unattributed.
func (o *startOutcome) controls() Line {
	var deaf []string
	for name, fails := range map[string]bool{
		"spans as told":  o.negativeAsTold > 0 && float64(o.rightAsTold) < 0.99*float64(o.stages),
		"a longer truth": float64(o.stretched) < 0.99*float64(o.stages),
		"no stage named": float64(o.guessed) < 0.95*float64(o.ready),
	} {
		if !fails {
			deaf = append(deaf, name)
		}
	}
	slices.Sort(deaf)
	const controls = 3
	line := Line{Name: "coldstart_controls_found", Value: float64(controls-len(deaf)) / controls, Unit: "1", Target: atLeast(1)}
	line.Note = "spans as told, a longer truth, no stage named"
	if len(deaf) > 0 {
		line.Note = "not " + strings.Join(deaf, ", ")
	}
	return line
}

// worst names the stages that are off most often.
func (o *startOutcome) worst(n int) string {
	stages := slices.SortedFunc(maps.Keys(o.off), func(x, y string) int {
		return cmp.Or(cmp.Compare(o.off[y], o.off[x]), cmp.Compare(x, y))
	})
	var said []string
	for _, s := range stages[:min(n, len(stages))] {
		said = append(said, fmt.Sprintf("%s %d", s, o.off[s]))
	}
	return strings.Join(said, ", ")
}

// percentile is the value that so many are not above, NaN if there are none.
func percentile(values []float64, share float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}
