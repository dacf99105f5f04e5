// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/llmfleet/llmfleet/internal/judge/canary"
)

// canaryRule is a way to judge a canary.
type canaryRule int

// The peers are Kayenta's judge of time to first token alone, in two of the points
// that a minute is made into.
const (
	canaryDelta     canaryRule = iota // ours
	kayentaMean                       // sum over count
	kayentaP95                        // by histogram_quantile
	canaryRuleCount                   // how many there are; not a rule
)

var canaryRuleNames = [canaryRuleCount]string{"llmfleet", "mann_whitney_mean", "mann_whitney_p95"}

// mannWhitneyFrom is how many points, one a minute, Kayenta's judge waits for.
const mannWhitneyFrom = 10

// canaryOutcome is what became of one rollout. Times are in minutes of
// comparison, and +Inf if it did not come to that.
type canaryOutcome struct {
	// failed is when each rule failed the canary, and driver the measure that we
	// failed it for.
	failed [canaryRuleCount]float64
	driver string
	// passed is when it passed, mixed when prompts were found to differ.
	passed, mixed float64
	// measures is when single measures were failed, by their names.
	measures map[string]float64
	// relapse is after how many minutes of its relapse it was failed.
	relapse float64
	// compared is for how long both arms were.
	compared float64
}

func newCanaryOutcome() *canaryOutcome {
	never := math.Inf(1)
	o := &canaryOutcome{passed: never, mixed: never, relapse: never, measures: map[string]float64{}}
	for r := range o.failed {
		o.failed[r] = never
	}
	return o
}

// failedMeasure is when a measure was failed.
func (o *canaryOutcome) failedMeasure(name string) float64 {
	if at, ok := o.measures[name]; ok {
		return at
	}
	return math.Inf(1)
}

// play plays run number n, with a look after every pane.
func (p *canaryPlan) play(n int, seed uint64) (*canaryOutcome, error) {
	o, w, judge := newCanaryOutcome(), startRollout(p, n, seed), canary.NewJudge(canary.DefaultOptions(pane))
	var peers [canaryRuleCount]mannWhitney
	for !w.over() {
		frame := w.next()
		judge.Begin(frame.End)
		report, ok := judge.Judge(frame, nil)
		if !ok {
			return nil, errors.New("there is no room for the only fleet")
		}
		if report == nil || report.Since == 0 {
			continue
		}
		if err := checkFigures(report); err != nil {
			return nil, err
		}
		minutes := frame.End.Sub(report.Since).Minutes()
		if w.relapsing() {
			if report.Verdict == canary.Fail {
				o.relapse = minutes - o.compared
				break
			}
			continue
		}
		o.compared = minutes
		o.hear(report)
		for r := kayentaMean; r < canaryRuleCount; r++ {
			if !math.IsInf(o.failed[r], 1) {
				continue
			}
			peers[r].add(w.point(r, w.pods[:p.pods]), w.point(r, w.pods[p.pods:]))
			if minutes >= mannWhitneyFrom && peers[r].high() {
				o.failed[r] = minutes
			}
		}
		if o.decided(p) {
			break
		}
	}
	return o, nil
}

// decided tells whether more panes would say nothing new.
func (o *canaryOutcome) decided(p *canaryPlan) bool {
	if p.toEnd {
		return o.compared >= float64(p.minutes) && o.failed[canaryDelta] <= o.compared
	}
	return slices.Max(o.failed[:]) <= o.compared
}

// hear takes in what we say of a pane.
func (o *canaryOutcome) hear(report *canary.Report) {
	first := func(at *float64) { *at = min(*at, o.compared) }
	switch report.Verdict {
	case canary.Fail:
		if math.IsInf(o.failed[canaryDelta], 1) && report.Driver >= 0 {
			o.driver = report.Measures[report.Driver].Name
		}
		first(&o.failed[canaryDelta])
	case canary.Pass:
		first(&o.passed)
	}
	if report.Reasons.Has(canary.TrafficMix) {
		first(&o.mixed)
	}
	for i := range report.Measures {
		m := &report.Measures[i]
		if _, known := o.measures[m.Name]; m.Verdict == canary.Fail && !known {
			o.measures[m.Name] = o.compared
		}
	}
}

// checkFigures refuses a report with a figure that is no number: a judge that
// cannot count fails nobody.
func checkFigures(report *canary.Report) error {
	for i := range report.Measures {
		m := &report.Measures[i]
		values := append(m.Evidence[:0:0], m.Evidence[:]...)
		for _, s := range m.Statistics {
			for _, f := range []canary.Figure{s.Values[canary.Canary], s.Values[canary.Baseline], s.Delta, s.Ratio, s.Low, s.High} {
				values = append(values, f.Value)
			}
		}
		for _, v := range values {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("a figure of %s is %v", m.Name, v)
			}
		}
	}
	return nil
}

// point is what a peer makes of the times to first token of some pods in the
// newest pane.
func (w *canaryWorld) point(r canaryRule, pods []drawnPod) float64 {
	bounds := drawnTTFT.layout.Bounds()
	cumulative, sum := make([]float64, len(bounds)+1), 0.0
	for i := range pods {
		below := 0.0
		for b, n := range pods[i].tells.ttft.Counts {
			below += float64(n)
			cumulative[b] += below
		}
		sum += pods[i].tells.ttft.Sum
	}
	if r == kayentaMean {
		return sum / cumulative[len(bounds)]
	}
	return quantile(bounds, cumulative)
}

// playAll plays so many runs of a plan, as many at a time as there are
// processors.
func (p *canaryPlan) playAll(runs int, seed uint64) ([]*canaryOutcome, error) {
	var (
		players  sync.WaitGroup
		places   = make(chan struct{}, runtime.GOMAXPROCS(0))
		outcomes = make([]*canaryOutcome, runs)
		mistakes = make([]error, runs)
	)
	for n := range outcomes {
		places <- struct{}{}
		players.Go(func() {
			outcomes[n], mistakes[n] = p.play(n, seed)
			<-places
		})
	}
	players.Wait()
	if err := errors.Join(mistakes...); err != nil {
		return nil, fmt.Errorf("rollout %s: %w", p.name, err)
	}
	return outcomes, nil
}
