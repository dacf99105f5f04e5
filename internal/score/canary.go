// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"fmt"
	"math"
	"slices"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/judge/canary"
)

// canaryScale is in how many runs each rollout is played.
type canaryScale struct{ runs int }

var (
	someRollouts = canaryScale{runs: 200}
	manyRollouts = canaryScale{runs: 1000}
)

// rolloutSet is one plan and its runs.
type rolloutSet struct {
	canaryPlan

	outcomes []*canaryOutcome
}

// canaryFigure is what a card says of the runs of some plans.
type canaryFigure struct {
	name   string
	target Target
	of     []string // plans
	take   takeCanary
	// peers have the figure too.
	peers bool
}

// noise is between pods, and of each over time.
type noise struct {
	name       string
	pod, drift float64
}

var (
	noNoise   = noise{name: "iid"}
	someNoise = noise{name: "noise", pod: 0.03, drift: 0.05}
)

// slowdowns are the factors of time to first token that both rules are to find.
var slowdowns = []struct {
	name    string
	factor  float64
	minutes int
}{{"1p2x", 1.2, 60}, {"1p5x", 1.5, 30}}

// podsName is how a plan is called by the canary's pods.
func podsName(pods int) string {
	if pods == 1 {
		return "1pod"
	}
	return fmt.Sprintf("%dpods", pods)
}

// planOf is a rollout of a version that does the usual but for what is edited.
func planOf(name string, pods int, n noise, minutes int, edit func(*behaviour)) canaryPlan {
	p := canaryPlan{name: name, pods: pods, podNoise: n.pod, driftNoise: n.drift, canary: usual, minutes: minutes}
	edit(&p.canary)
	return p
}

// canaryPlans are all rollouts.
func canaryPlans() (plans []canaryPlan) {
	twice := usual
	twice.ttft = 2
	for _, n := range []noise{noNoise, someNoise} {
		for _, pods := range []int{1, 3} {
			same := planOf(cellName("aa", n, pods), pods, n, 120, func(*behaviour) {})
			same.toEnd, same.relapse = true, &twice
			plans = append(plans, same)
			for _, s := range slowdowns {
				plans = append(plans, planOf(cellName(s.name, n, pods), pods, n, s.minutes, func(b *behaviour) { b.ttft = s.factor }))
			}
		}
	}
	errs := func(b *behaviour) { b.failed = 0.02 }
	return append(plans,
		planOf("canary_1p3x", 3, noNoise, 120, func(b *behaviour) { b.ttft = 1.3 }),
		planOf("canary_errors", 3, someNoise, 20, errs),
		planOf("canary_errors_1pod", 1, someNoise, 20, errs),
		planOf("canary_reasons", 3, someNoise, 15, func(b *behaviour) { b.cut *= 1.5 }),
		planOf("canary_lengths", 3, someNoise, 15, func(b *behaviour) { b.output = 1.3 }),
		planOf("canary_prompts", 3, someNoise, 60, func(b *behaviour) { b.prompt, b.ttft = 1.3, promptsSlow }).allOf(),
	)
}

// promptsSlow is how many times as slow the first token is after prompts that are
// 1.3 times as long, as far as prefill is half of the time.
const promptsSlow = 1.15

// allOf plays a plan to its end.
func (p canaryPlan) allOf() canaryPlan {
	p.toEnd = true
	return p
}

// cellName is the plan of a slowdown, or of none.
func cellName(what string, n noise, pods int) string {
	return fmt.Sprintf("canary_%s_%s_%s", what, n.name, podsName(pods))
}

// canaryFigures are what the card says.
func canaryFigures() (figures []canaryFigure) {
	ttft, errs := fleet.TTFT.String(), fleet.Errors.String()
	aa := func(n noise) []string { return []string{cellName("aa", n, 1), cellName("aa", n, 3)} }
	power := func(name string, cell string, within float64) canaryFigure {
		return canaryFigure{name: name, target: atLeast(0.95), of: []string{cell}, take: failedFor(ttft, within), peers: true}
	}
	figures = []canaryFigure{
		{name: "canary_aa_false_fail_iid", target: atMost(0.05), of: aa(noNoise), take: falseFails, peers: true},
		{name: "canary_aa_false_fail_noise", target: atMost(0.05), of: aa(someNoise), take: falseFails, peers: true},
		{name: "canary_aa_measures_failed", of: slices.Concat(aa(noNoise), aa(someNoise)), take: measuresFailed},
		power("canary_power_1p2x_20min", cellName("1p2x", someNoise, 3), 20),
		power("canary_power_1p2x_1pod_30min", cellName("1p2x", noNoise, 1), 30),
		power("canary_power_1p5x_3min", cellName("1p5x", noNoise, 3), 3),
		power("canary_power_1p5x_5min", cellName("1p5x", someNoise, 3), 5),
		{name: "canary_aa_pass_30min", target: atLeast(0.9), of: aa(noNoise)[1:], take: passedWithin(30)},
		{name: "canary_1p3x_pass", target: atMost(0), of: []string{"canary_1p3x"}, take: passedWithin(math.Inf(1))},
		{name: "canary_error_0p5_to_2pct_20min", target: atLeast(0.95), of: []string{"canary_errors"}, take: failedFor(errs, 20)},
		{name: "canary_error_0p5_to_2pct_20min_1pod", of: []string{"canary_errors_1pod"}, take: failedFor(errs, 20)},
		{name: "canary_finish_reason_shift", target: atLeast(0.95), of: []string{"canary_reasons"}, take: measureFailed(canary.FinishReasons, 15)},
		{name: "canary_length_drift", target: atLeast(0.95), of: []string{"canary_lengths"}, take: measureFailed(fleet.OutputLength.String(), 15)},
		{name: "canary_prompt_shift_mix", target: atLeast(0.95), of: []string{"canary_prompts"}, take: mixedWithin(15)},
		{name: "canary_prompt_shift_fail", target: atMost(0), of: []string{"canary_prompts"}, take: falseFails},
		{name: "canary_relapse_2x", target: atLeast(0.95), of: slices.Concat(aa(noNoise), aa(someNoise)), take: relapseFound},
	}
	cells := slices.Concat(aa(noNoise), aa(someNoise))
	for _, s := range slowdowns {
		for _, n := range []noise{noNoise, someNoise} {
			for _, pods := range []int{1, 3} {
				cell := cellName(s.name, n, pods)
				cells = append(cells, cell)
				name := fmt.Sprintf("canary_minutes_%s_%s_%s", s.name, n.name, podsName(pods))
				figures = append(figures, canaryFigure{name: name, of: []string{cell}, take: minutesToFail, peers: true})
			}
		}
	}
	return append(figures,
		canaryFigure{name: "canary_vs_mannwhitney", target: atMost(0), of: cells, take: cellsBehind(kayentaP95)},
		// On means the peer is quicker, and fails one healthy canary of five where pods differ: it is shown, and no target.
		canaryFigure{name: "canary_vs_mannwhitney_mean", of: cells, take: cellsBehind(kayentaMean)},
	)
}

// Canaries makes the card of the judgement of canaries.
func Canaries(o Options) (*Card, error) {
	s := someRollouts
	if o.Full {
		s = manyRollouts
	}
	sets := map[string]*rolloutSet{}
	var deaf []string
	for _, p := range canaryPlans() {
		if !o.Only.MatchString(p.name) {
			continue
		}
		outcomes, err := p.playAll(s.runs, o.Seed)
		if err != nil {
			return nil, err
		}
		sets[p.name] = &rolloutSet{p, outcomes}
		if !slices.ContainsFunc(outcomes, (*canaryOutcome).controlled) {
			deaf = append(deaf, p.name)
		}
	}
	var card Card
	for _, f := range canaryFigures() {
		f.write(&card, sets)
	}
	if len(sets) > 0 {
		card.Lines = append(card.Lines, controlsLine("canary", len(sets), deaf))
	}
	card.Lines = append(card.Lines, canaryCases(o)...)
	if !o.Only.MatchString("canary_replay") {
		return &card, nil
	}
	line, err := canaryReplay(o.Seed)
	card.Lines = append(card.Lines, line)
	return &card, err
}

// write writes the figure, first ours and then the peers', if all of its plans
// were played.
func (f *canaryFigure) write(card *Card, played map[string]*rolloutSet) {
	var sets []*rolloutSet
	for _, name := range f.of {
		set := played[name]
		if set == nil {
			return
		}
		sets = append(sets, set)
	}
	for r := range canaryRuleCount {
		if r != canaryDelta && !f.peers {
			continue
		}
		line := Line{Name: f.name, Target: f.target}
		line.Value, line.Unit, line.Note = f.take(sets, r)
		if r != canaryDelta {
			line.Name, line.Peer = fmt.Sprintf("%s/%s", f.name, canaryRuleNames[r]), true
		}
		card.Lines = append(card.Lines, line)
	}
}
