// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/stats"
)

// beyond is one boundary in one pane: x of the canary's n observations lie beyond,
// where a share p of all would.
type beyond struct{ x, n, p float64 }

// eValue is that of
//
//	e = exp(d·x) / (1 + p·(exp(d) - 1))^n
//
// for effects that are given as odds ratios, exp(d).
func eValue(panes []beyond, effects ...float64) float64 {
	return mixture(len(panes), effects, func(effect float64, pane int) float64 {
		p := panes[pane]
		return p.x*math.Log(effect) - p.n*math.Log(1+p.p*(effect-1))
	})
}

// mixture is the mean over effects and beginnings of the products of e-values from
// a pane on; what begins after the last pane has 1. It adds up each product by
// itself, as no running sum does.
func mixture(panes int, effects []float64, logE func(effect float64, pane int) float64) float64 {
	mean := 0.0
	for _, effect := range effects {
		rest := 1.0
		for from := range panes {
			sum := 0.0
			for pane := from; pane < panes; pane++ {
				sum += logE(effect, pane)
			}
			mean += stats.StartWeight(from) * math.Exp(sum) / float64(len(effects))
			rest -= stats.StartWeight(from)
		}
		mean += rest / float64(len(effects))
	}
	return mean
}

// buckets are those of one pane: the canary's own observations, and all that they
// would be among if the baseline were so much worse.
type buckets struct{ own, pool []float64 }

// scores are the mean normal deviates of the ranks that each bucket of the pool has:
// of those between shares a and b, the density at a less that at b, over b - a.
func (p buckets) scores() (scores []float64) {
	total, below := 0.0, 0.0
	for _, n := range p.pool {
		total += n
	}
	density := func(share float64) float64 {
		if share <= 0 || share > 1-1e-12 {
			return 0
		}
		z := math.Sqrt2 * math.Erfinv(2*share-1)
		return math.Exp(-z*z/2) / math.Sqrt(2*math.Pi)
	}
	for _, n := range p.pool {
		a, b := below/total, (below+n)/total
		below += n
		if n == 0 {
			scores = append(scores, 0) // nobody's
			continue
		}
		scores = append(scores, (density(a)-density(b))/(b-a))
	}
	return scores
}

// eOfScores is the e-value of all buckets together: exp(d · sum of own scores) over
// the n-th power of the pool's mean of exp(d · score); where so many observations are
// alike, its root.
func eOfScores(panes []buckets, alike float64, effects []float64) float64 {
	return mixture(len(panes), effects, func(d float64, pane int) float64 {
		p := panes[pane]
		var n, sum, total, mean float64
		for i, score := range p.scores() {
			n, sum = n+p.own[i], sum+p.own[i]*score
			total, mean = total+p.pool[i], mean+p.pool[i]*math.Exp(d*score)
		}
		return (d*sum - n*math.Log(mean/total)) / alike
	})
}

// weighing are options of which the evidence here is worked out.
func weighing(watched ...string) Options {
	o := watching(watched...)
	o.FalseFail, o.Tolerance, o.PassTolerance = 0.05, 1.1, 1.15
	return o
}

// evidenceOf is how an e-value is reported: 1 at the threshold.
func evidenceOf(e, threshold float64) float64 { return math.Log(e) / math.Log(threshold) }

// errorPanes are the panes of canaries of 100 requests and a baseline of 200, of
// which base fail: if they were a tenth more, and as many of the canary's.
func errorPanes(canary []uint64, base float64, worse func(share float64) float64) (panes []beyond) {
	for _, x := range canary {
		panes = append(panes, beyond{float64(x), 100, (float64(x) + 200*worse(base/200)) / 300})
	}
	return panes
}

func TestEvidenceOfErrors(t *testing.T) {
	s := newStage(weighing("errors"), 2, 1)
	s.alike(100)
	s.end()
	failed := []uint64{2, 0, 7, 3, 5, 1, 6, 9, 4, 8}
	for i := range failed {
		s.alike(100)
		s.count(s.of("stable")[0], fleet.Errors, 5)
		s.count(s.of("stable")[1], fleet.Errors, 3)
		s.count(s.of("next")[0], fleet.Errors, failed[i])
		r := s.end()
		fail := eValue(errorPanes(failed[:i+1], 8, func(share float64) float64 { return share * 1.1 }), 1.3, 2, 4, 10)
		// 15 % more of 4 % is less than one point.
		pass := eValue(errorPanes(failed[:i+1], 8, func(share float64) float64 { return share + 0.01 }), 1/1.3, 1/2., 1/4.)
		evidence := measureOf(r, "errors").Evidence
		require.InDelta(t, evidenceOf(fail, 20), evidence[Fail], 1e-9)
		require.InDelta(t, evidenceOf(pass, 20), evidence[Pass], 1e-9)
	}
}

// allWays is the e-value of a distribution: two thirds are of its buckets together,
// a sixth each of single bounds and of means.
func allWays(scores, bounds, means float64) float64 { return (4*scores + bounds + means) / 6 }

// Two bounds, a tenth apart: what lies above 1.1 s of a canary that is just as much
// slower as tolerated, lies above 1 s of its baseline. Above 1 s it may be all.
func TestEvidenceOfLatency(t *testing.T) {
	bounds := []float64{1, 1.1}
	s := newStage(weighing("ttft"), 2, 1)
	s.alike(10)
	s.end()
	var at1, at11, means []beyond
	var all []buckets
	for _, slow := range []float64{4, 6, 5, 9} {
		for i := range s.frame.Members {
			m := &s.frame.Members[i]
			s.count(m, fleet.Finished, 10)
			s.tell(m, fleet.TTFT, bounds, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 1.05, 1.05, 2)
		}
		values := append(repeated(int(slow), 2), repeated(10-int(slow), 0.5)...)
		s.tell(s.of("next")[0], fleet.TTFT, bounds, values...)
		at1 = append(at1, beyond{slow, 10, (slow + 20) / 30})
		at11 = append(at11, beyond{slow, 10, (slow + 6) / 30})
		all = append(all, buckets{[]float64{10 - slow, 0, slow}, []float64{10 - slow, 14, slow + 6}})
		means = append(means, beyond{1, 1, 0.5}) // 1.1 s at least, of 0.76 s
		e := allWays(eOfScores(all, 1, shifts.fail), (eValue(at1, 1.25, 1.6, 3)+eValue(at11, 1.25, 1.6, 3))/2, eValue(means, 1.6, 3, 19))
		require.InDelta(t, evidenceOf(e, 20), measureOf(s.end(), "ttft").Evidence[Fail], 1e-9)
	}
}

// The same the other way round: grades of which the baseline's are 2 where its
// latencies are 0.5 s, and 0.5 for 2 s. Lower ones are worse, by as much evidence.
func TestEvidenceOfLowerGrades(t *testing.T) {
	o := graded(Lower)
	o.Tolerance = 1.1
	s := newStage(o, 2, 1)
	s.alike(10)
	s.end()
	var at11, at1, means []beyond
	var all []buckets
	for _, bad := range []float64{4, 6, 5, 9} {
		s.alike(10)
		f := s.grades()
		s.grade(f, ofRevision("stable"), []float64{1, 1.1}, slices.Concat(repeated(14, 2), repeated(4, 1.05), repeated(2, 0.5))...)
		s.grade(f, ofRevision("next"), []float64{1, 1.1}, append(repeated(10-int(bad), 2), repeated(int(bad), 0.5)...)...)
		at11 = append(at11, beyond{bad, 10, (bad + 20) / 30})
		at1 = append(at1, beyond{bad, 10, (bad + 6) / 30})
		all = append(all, buckets{[]float64{10 - bad, 0, bad}, []float64{10 - bad, 14, bad + 6}})
		means = append(means, beyond{1, 1, 0.5}) // 1.4 at most, of 1.66
		e := allWays(eOfScores(all, 1, shifts.fail), (eValue(at1, 1.25, 1.6, 3)+eValue(at11, 1.25, 1.6, 3))/2, eValue(means, 1.6, 3, 19))
		require.InDelta(t, evidenceOf(e, 20), measureOf(s.end(f), "grade").Evidence[Fail], 1e-9)
	}
}

// Of a level a pane is one observation: below what is tolerated, as it is in every
// second pane of a canary that is just so.
func TestEvidenceOfALevel(t *testing.T) {
	s := newStage(weighing("generation_tokens"), 2, 1)
	s.alike(10)
	s.end()
	var fail, pass []beyond
	for _, c := range []struct {
		tokens     uint64 // the baseline makes 1000 each
		fail, pass float64
	}{{500, 1, 1}, {900, 1, 0}, {1000, 0, 0}, {860, 1, 1}, {950, 0, 0}} {
		s.alike(10)
		for i := range s.frame.Members {
			s.count(&s.frame.Members[i], fleet.GenerationTokens, 1000)
		}
		s.count(s.of("next")[0], fleet.GenerationTokens, c.tokens)
		// 1/1.1 is 909, and 1/1.15 is 870.
		fail, pass = append(fail, beyond{c.fail, 1, 0.5}), append(pass, beyond{c.pass, 1, 0.5})
		evidence := measureOf(s.end(), "generation_tokens").Evidence
		require.InDelta(t, evidenceOf(eValue(fail, 1.6, 3, 19), 20), evidence[Fail], 1e-9)
		require.InDelta(t, evidenceOf(eValue(pass, 1/1.6, 1/3., 1/19.), 20), evidence[Pass], 1e-9)
	}
}

// Three reasons, each against the others: by length and aborted more is worse, by
// itself less.
func TestEvidenceOfReasons(t *testing.T) {
	s := newStage(weighing(FinishReasons), 2, 1)
	s.alike(100)
	s.end()
	var length, stop, abort []beyond
	for range 3 {
		for i := range s.frame.Members {
			m := &s.frame.Members[i]
			s.count(m, fleet.Finished, 100)
			m.Reasons = []fleet.ReasonCount{{Reason: "abort", Count: 0}, {Reason: "length", Count: 10}, {Reason: "stop", Count: 90}}
		}
		s.of("next")[0].Reasons = []fleet.ReasonCount{{Reason: "abort", Count: 2}, {Reason: "length", Count: 18}, {Reason: "stop", Count: 80}}
		length = append(length, beyond{18, 100, (18 + 200*0.11) / 300})
		abort = append(abort, beyond{2, 100, 2 / 300.})
		// Not by themselves end 20, of a tenth which might be 11 %.
		stop = append(stop, beyond{20, 100, (20 + 200*0.11) / 300})
		mean := 0.0
		for _, panes := range [][]beyond{length, stop, abort} {
			mean += eValue(panes, 1.3, 2, 4, 10) / 3
		}
		require.InDelta(t, evidenceOf(mean, 20), measureOf(s.end(), FinishReasons).Evidence[Fail], 1e-9)
	}
}

// With one watched measure a fail takes an e-value of 20, with four 80, with eleven
// 220: the verdict is given in the pane in which it is reached, at evidence 1, and
// not before.
func TestTheThresholdGrowsWithTheWatched(t *testing.T) {
	at := map[int]int{}
	for _, watched := range [][]string{{"errors"}, DefaultWatch(), Names()} {
		threshold := float64(len(watched)) / 0.05
		s := newStage(weighing(watched...), 2, 1)
		s.alike(100)
		s.end()
		var failed []uint64
		for at[len(watched)] == 0 {
			failed = append(failed, 3)
			s.alike(100)
			s.count(s.of("stable")[0], fleet.Errors, 2)
			s.count(s.of("next")[0], fleet.Errors, 3)
			r := s.end()
			e := eValue(errorPanes(failed, 2, func(share float64) float64 { return share * 1.1 }), 1.3, 2, 4, 10)
			errors := measureOf(r, "errors")
			require.InDelta(t, evidenceOf(e, threshold), errors.Evidence[Fail], 1e-9)
			require.Equal(t, e >= threshold, r.Verdict == Fail)
			require.Equal(t, e >= threshold, errors.Verdict == Fail)
			if r.Verdict == Fail {
				require.True(t, s.judge.Turned())
				at[len(watched)] = s.panes
				require.Equal(t, "errors", r.Measures[r.Driver].Name)
				require.GreaterOrEqual(t, errors.Evidence[Fail], 1.0)
			}
			require.Less(t, s.panes, 100)
		}
	}
	assert.Less(t, at[1], at[4])
	assert.Less(t, at[4], at[11])
}
