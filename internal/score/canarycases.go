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

// minuteOf is one minute of a pod whose requests are all alike.
type minuteOf struct {
	requests, failed uint64
	ttft             float64 // s
}

// canaryCase is one canary among pods that always do the same. Judges that compare
// a point a minute, whatever stands behind it, miss it.
type canaryCase struct {
	name     string
	baseline minuteOf
	minutes  []minuteOf // of the canary
	// point is what a minute is to such a judge.
	point func(minuteOf) float64
	// right tells whether the last report, after minutes that brought the verdicts,
	// says what is true.
	right func(last *canary.Report, said [canary.VerdictCount]bool) bool
}

// canaryCaseList are the cases.
func canaryCaseList() []canaryCase {
	slow := minuteOf{requests: 10, ttft: 100}
	fine := minuteOf{requests: 10, ttft: 1}
	all := canaryCase{
		name: "canary_case_7_of_10_points_100x", baseline: fine, point: func(m minuteOf) float64 { return m.ttft },
		right: func(last *canary.Report, _ [canary.VerdictCount]bool) bool {
			return failsFor(last, fleet.TTFT.String())
		},
	}
	all.minutes = append(repeat(slow, 7), repeat(fine, 3)...)

	rare := canaryCase{
		name: "canary_case_rare_errors", baseline: minuteOf{requests: 100, ttft: 1},
		point: func(m minuteOf) float64 { return float64(m.failed) },
		right: rareErrorsFound,
	}
	for _, failed := range []uint64{0, 1, 2, 1, 0, 0} {
		rare.minutes = append(rare.minutes, minuteOf{requests: 100, failed: failed, ttft: 1})
	}
	none := canaryCase{
		name: "canary_case_no_finished_request", baseline: minuteOf{requests: 100, ttft: 1}, minutes: repeat(minuteOf{}, 60),
		right: func(last *canary.Report, said [canary.VerdictCount]bool) bool {
			return last.Reasons.Has(canary.InsufficientData) && !said[canary.Pass] && !said[canary.Fail]
		},
	}
	return []canaryCase{all, rare, none}
}

func repeat(m minuteOf, n int) (all []minuteOf) {
	for range n {
		all = append(all, m)
	}
	return all
}

// failsFor tells whether the canary is failed for that measure.
func failsFor(r *canary.Report, measure string) bool {
	return r.Verdict == canary.Fail && r.Driver >= 0 && r.Measures[r.Driver].Name == measure
}

// rareErrorsFound: 4 of 600 requests failed, and none of 11,400.
func rareErrorsFound(last *canary.Report, _ [canary.VerdictCount]bool) bool {
	if !failsFor(last, fleet.Errors.String()) {
		return false
	}
	m := &last.Measures[last.Driver]
	s := &m.Statistics[0]
	return m.Observations == [canary.ArmCount]uint64{600, 11400} && math.Abs(s.Delta.Value-4.0/600) < 1e-9 &&
		s.Delta.Withheld == canary.Given && s.Ratio.Withheld == canary.ZeroBaseline
}

// judge plays the case through ours and Kayenta's judge.
func (c *canaryCase) judge() (right, high bool, note string) {
	w := startRollout(&canaryPlan{name: c.name, pods: 1}, 0, 0)
	judge := canary.NewJudge(canary.DefaultOptions(pane))
	var (
		last  *canary.Report
		said  [canary.VerdictCount]bool
		peer  mannWhitney
		panes = rolloutAfter + burnInPanes + len(c.minutes)
	)
	for t := range panes {
		now := c.baseline
		if minute := t - rolloutAfter - burnInPanes; minute >= 0 {
			now = c.minutes[minute]
			if c.point != nil {
				peer.add(c.point(now), c.point(c.baseline))
			}
		} else if c.minutes[0].requests == 0 && t >= rolloutAfter {
			now = minuteOf{}
		}
		frame := w.next()
		for i := range w.pods {
			w.pods[i].tell(&frame.Members[i], c.baseline)
		}
		w.pods[0].tell(&frame.Members[0], now)
		judge.Begin(frame.End)
		if last, _ = judge.Judge(frame, nil); last != nil {
			said[last.Verdict] = true
		}
	}
	if last == nil {
		return false, false, "there is no canary"
	}
	return c.right(last, said), c.point != nil && peer.high(), fmt.Sprintf("%s%s", last.Verdict, reasonsNote(last.Reasons))
}

// reasonsNote lists reasons.
func reasonsNote(rs canary.Reasons) (text string) {
	for r := range canary.ReasonCount {
		if rs.Has(r) {
			text += " " + r.String()
		}
	}
	return text
}

// tell says what one minute was, in place of what was drawn.
func (p *drawnPod) tell(m *fleet.MemberFrame, of minuteOf) {
	p.reset(m)
	if of.requests == 0 {
		return
	}
	t := &p.tells
	for d, value := range map[*fleet.Distribution]float64{t.ttft: of.ttft, t.e2e: 4, t.queue: 0.2, t.itl: 0.03, t.tpot: 0.03, t.prompt: 500, t.output: 150} {
		bucket, _ := slices.BinarySearch(d.Layout.Bounds(), value)
		d.Counts[bucket] = of.requests
		d.Sum = value * float64(of.requests)
	}
	t.tokens.Counts[0] = 150 * of.requests
	m.Reasons[endsStopped].Count, m.Reasons[endsFailed].Count = of.requests-of.failed, of.failed
	t.finished.Counts[0], t.failed.Counts[0] = of.requests, of.failed
}

// canaryCases are the lines of the cases: 1 if what is said is right.
func canaryCases(o Options) (lines []Line) {
	for _, c := range canaryCaseList() {
		if !o.Only.MatchString(c.name) {
			continue
		}
		right, high, note := c.judge()
		lines = append(lines, Line{Name: c.name, Value: oneIf(right), Unit: "1", Target: atLeast(1), Note: note})
		if c.point != nil {
			lines = append(lines, Line{Name: c.name + "/" + "mann_whitney", Value: oneIf(high), Unit: "1", Peer: true})
		}
	}
	return lines
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
