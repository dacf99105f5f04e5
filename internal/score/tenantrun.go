// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"fmt"
	"math"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/judge/share"
)

// storyOutcome is what became of one run of a story.
type storyOutcome struct {
	// culprit sent the burst; largest made the fleet slower than any other did in
	// it.
	culprit, largest int
	// named is, by rule, who was named in most panes of the burst, or nobody.
	named [tenantRuleCount]int
	// bystanders are those beside the culprit that we flagged in the burst.
	bystanders map[int]bool
	// delay is the pane of the burst in which we flagged the culprit, from 1, and
	// clear the one after it in which no longer; +Inf if there was none. onset is
	// by how many panes the beginning that we tell is late.
	delay, clear, onset float64
	// said is by which share of the usual the culprit makes the fleet slower, as
	// we said in the panes in which we flagged it, and excess what is true.
	said, excess float64
	// quiet and story are, by rule, who was accused in the quiet hour, and in the
	// hour of a story without a burst.
	quiet, story [tenantRuleCount][]accusation
}

// accusation is that a tenant was accused from a pane on, when it made the fleet
// slower by a share of its latency: the mean of the panes that it takes to accuse.
type accusation struct {
	tenant, pane int
	excess       float64
}

// untrueBelow is the share below which it is not true that a tenant makes the
// fleet slower: half of what our judgement asks for, as where it clears.
const untrueBelow = 0.05

// storyWatch compares what rules say with the truth, pane by pane.
type storyWatch struct {
	storyOutcome

	run     *storyRun
	drawing *fleetsim.TenantDrawing
	on      [tenantRuleCount][]bool // by rank
	votes   [tenantRuleCount][]int  // panes of the burst in which each was named
	late    [accusePanes][]float64  // seconds that each tenant made in the newest panes
	made    []float64               // the same in the burst
	usual   float64                 // mean inter-token latency of late
	flagged int                     // panes of the burst in which the culprit was
}

// verdict is what a rule says after a pane.
type verdict struct {
	named   int    // rank
	accused []bool // by rank
}

// play plays a run through our judgement and the peers.
func (r *storyRun) play(seed uint64) (*storyOutcome, error) {
	drawing, err := fleetsim.DrawTenants(r.plan, seed)
	if err != nil {
		return nil, err
	}
	tenants := len(r.plan.Tenants)
	teller := newTeller(r.story, drawing, tenants)
	judge := share.NewJudge(share.DefaultOptions(pane))
	var peers [tenantRuleCount]*correlations
	w := newStoryWatch(r, drawing)
	for rule := range tenantRuleCount {
		peers[rule] = newCorrelations(rule, tenants+1)
	}
	said := verdict{accused: make([]bool, tenants)}
	for t := range r.panes() {
		told := teller.next()
		report := judge.Judge(told)
		if err := said.take(report, teller); err != nil {
			return nil, fmt.Errorf("pane %d: %w", t, err)
		}
		w.learn(t, told)
		w.hear(t, report, teller)
		w.note(t, judgement, &said)
		for rule := shareCorrelation; rule < tenantRuleCount; rule++ {
			peers[rule].judge(told, teller, &said)
			w.note(t, rule, &said)
		}
	}
	w.conclude()
	return &w.storyOutcome, nil
}

// take reads our report: of those that are flagged, the one with the largest
// excess is named.
func (v *verdict) take(report *share.Report, teller *teller) error {
	clear(v.accused)
	v.named = nobody
	most := math.Inf(-1)
	for place := range report.Tenants {
		of := &report.Tenants[place]
		for _, f := range []share.Figure{of.Excess, of.Score, of.UsualShare, report.ITL, report.UsualITL, report.Slope} {
			if f.Withheld == share.Given && (math.IsNaN(f.Value) || math.IsInf(f.Value, 0)) {
				return fmt.Errorf("a figure of %s is %v", of.Name, f.Value)
			}
		}
		rank := teller.rank(place)
		if rank == nobody || !of.Noisy {
			continue
		}
		v.accused[rank] = true
		if of.Excess.Withheld == share.Given && of.Excess.Value > most {
			most, v.named = of.Excess.Value, rank
		}
	}
	return nil
}

func newStoryWatch(r *storyRun, drawing *fleetsim.TenantDrawing) *storyWatch {
	tenants := len(r.plan.Tenants)
	w := &storyWatch{run: r, drawing: drawing, made: make([]float64, tenants)}
	w.culprit, w.bystanders = r.burst.Tenant, map[int]bool{}
	w.delay, w.clear = math.Inf(1), math.Inf(1)
	for i := range w.late {
		w.late[i] = make([]float64, tenants)
	}
	for rule := range tenantRuleCount {
		w.on[rule], w.votes[rule] = make([]bool, tenants), make([]int, tenants)
	}
	return w
}

// inBurst tells whether a pane is one of the burst.
func (w *storyWatch) inBurst(t int) bool { return w.run.burst.From <= t && t < w.run.burst.To }

// learn takes in what is true of a pane.
func (w *storyWatch) learn(t int, told *share.Pane) {
	const usualPanes = 30
	if from := w.run.burst.From; from-usualPanes <= t && t < from {
		w.usual += told.ITLSum / told.ITLCount / usualPanes
	}
	late := w.late[t%accusePanes]
	for rank := range late {
		late[rank] = w.drawing.Contribution(rank)
		if w.inBurst(t) {
			w.made[rank] += late[rank]
		}
	}
}

// hear takes in what we say of the culprit.
func (w *storyWatch) hear(t int, report *share.Report, teller *teller) {
	for place := range report.Tenants {
		if teller.rank(place) != w.culprit {
			continue
		}
		of := &report.Tenants[place]
		switch {
		case w.inBurst(t) && of.Noisy:
			if w.flagged == 0 {
				w.delay = float64(t - w.run.burst.From + 1)
				w.onset = float64(of.Since.Sub(paneStart(w.run.burst.From))) / float64(pane)
			}
			w.flagged++
			w.said += of.Excess.Value
			w.excess += w.late[t%accusePanes][w.culprit] / w.usual
		case t >= w.run.burst.To && !of.Noisy:
			w.clear = min(w.clear, float64(t-w.run.burst.To+1))
		}
	}
}

// note takes in what a rule says.
func (w *storyWatch) note(t int, rule tenantRule, said *verdict) {
	for rank, now := range said.accused {
		if now && !w.on[rule][rank] {
			w.accuse(t, rule, rank)
		}
		w.on[rule][rank] = now
		if rule == judgement && now && rank != w.culprit && w.inBurst(t) {
			w.bystanders[rank] = true
		}
	}
	if w.inBurst(t) && said.named != nobody {
		w.votes[rule][said.named]++
	}
}

// accuse takes in that a rule accuses a tenant from a pane on.
func (w *storyWatch) accuse(t int, rule tenantRule, rank int) {
	sum, count := w.drawing.ITL()
	a := accusation{tenant: rank, pane: t}
	for _, late := range w.late {
		a.excess += late[rank] / accusePanes / (sum / count)
	}
	switch {
	case tenantQuiet <= t && t < w.run.from:
		w.quiet[rule] = append(w.quiet[rule], a)
	case w.run.from <= t && t < min(w.run.from+hourPanes, w.run.burst.From):
		w.story[rule] = append(w.story[rule], a)
	}
}

// conclude says what the panes come to.
func (w *storyWatch) conclude() {
	w.largest = most(w.made)
	for rule := range tenantRuleCount {
		w.named[rule] = most(w.votes[rule])
		if w.votes[rule][w.named[rule]] == 0 {
			w.named[rule] = nobody
		}
	}
	w.said /= float64(w.flagged)
	w.excess /= float64(w.flagged)
}

// most is the place of the largest value, the first of equals.
func most[T int | float64](values []T) (place int) {
	for i, v := range values {
		if v > values[place] {
			place = i
		}
	}
	return place
}
