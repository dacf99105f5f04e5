// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/judge/coldstart"
	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// second is a point in time.
func second(s float64) window.Instant { return beginning.Add(time.Duration(s * float64(time.Second))) }

func trueStage(stage, pod string, start, end float64) fleetsim.TrueStage {
	return fleetsim.TrueStage{Stage: stage, Pod: pod, Start: second(start), End: second(end), Told: true, AsTold: second(end).Sub(second(start))}
}

// group is a replica of two pods: schedule 10 s, pulls of 60 s and of 240 s, start
// 5 s, weights 300 s, warm-up 15 s, 570 s in all.
func group() *fleetsim.ColdStart {
	return &fleetsim.ColdStart{
		ID: "a", Pods: []string{"a", "b"}, Began: second(0), Ready: second(570), ReadyTold: true,
		Stages: []fleetsim.TrueStage{
			trueStage("scheduling", "a", 0, 10), trueStage("scheduling", "b", 0, 10),
			trueStage("image.pull", "a", 10, 70), trueStage("image.pull", "b", 10, 250),
			trueStage("container.create", "b", 250, 255),
			trueStage("weights.load", "a", 255, 555), trueStage("warmup", "a", 555, 570),
		},
	}
}

func TestCriticalTimesAddUpToTheStart(t *testing.T) {
	times := criticalTimes(group(), truly)
	seconds := map[string]float64{}
	for stage, took := range times {
		seconds[stage] = took.Seconds()
	}
	assert.Equal(t, map[string]float64{"scheduling": 10, "image.pull": 240, "container.create": 5, "weights.load": 300, "warmup": 15}, seconds)
	assert.Equal(t, "weights.load", longest(times))
}

func TestWhatWasNotToldIsUnattributedOrAPartOfWhatWas(t *testing.T) {
	truth := group()
	truth.Stages[5].Told = false
	times := criticalTimes(truth, asKnown)
	assert.Equal(t, 300*time.Second, times[unattributed])
	assert.NotContains(t, times, "weights.load")

	truth.Stages[5].Stage, truth.Stages[5].Of = "model.download", "weights.load"
	assert.Equal(t, 300*time.Second, criticalTimes(truth, asKnown)["weights.load"])
	assert.Equal(t, 300*time.Second, criticalTimes(truth, truly)["model.download"])
}

// reported is a report that says the truth of the group.
func reported() *coldstart.Report {
	stages := map[string]coldstart.Stage{}
	for _, s := range coldstart.Stages() {
		stages[s.String()] = s
	}
	truth := group()
	r := &coldstart.Report{ID: "a", Total: truth.Ready.Sub(truth.Began), Dominant: coldstart.WeightsLoad}
	r.Spans = append(r.Spans, coldstart.Span{Stage: coldstart.Whole, Parent: -1, Start: truth.Began, End: truth.Ready})
	for _, s := range truth.Stages {
		span := coldstart.Span{Stage: stages[s.Stage], Pod: s.Pod, Start: s.Start, End: s.End, Critical: s.End.Sub(s.Start)}
		if s.Pod == "b" && s.Stage == "scheduling" || s.Pod == "a" && s.Stage == "image.pull" {
			span.Critical = 0
		}
		r.Spans = append(r.Spans, span)
	}
	return r
}

func TestReportsAreCheckedAgainstThemselves(t *testing.T) {
	for name, c := range map[string]struct {
		edit     func(*coldstart.Report)
		negative int
		sum      time.Duration
	}{
		"the truth":            {func(*coldstart.Report) {}, 0, 0},
		"ends before it began": {func(r *coldstart.Report) { r.Spans[2].End = r.Spans[2].Start - 1 }, 1, 0},
		"out of its parent":    {func(r *coldstart.Report) { r.Spans[7].End = r.Spans[7].End.Add(time.Nanosecond) }, 1, 0},
		"before its parent":    {func(r *coldstart.Report) { r.Spans[1].Start-- }, 1, 0},
		"parent after child":   {func(r *coldstart.Report) { r.Spans[1].Parent = 2 }, 1, 0},
		"critical beyond":      {func(r *coldstart.Report) { r.Spans[1].Critical += time.Second }, 1, time.Second},
		"negative critical":    {func(r *coldstart.Report) { r.Spans[2].Critical = -time.Second }, 1, time.Second},
		"another total":        {func(r *coldstart.Report) { r.Total -= 2 * time.Millisecond }, 1, 2 * time.Millisecond},
		"too little":           {func(r *coldstart.Report) { r.Spans[1].Critical = 0 }, 0, 10 * time.Second},
	} {
		r, o := reported(), newStartOutcome()
		c.edit(r)
		o.checkSpans(r)
		assert.Equal(t, c.negative, o.negative, name)
		assert.Equal(t, c.sum, o.sum, name)
		assert.Equal(t, 8, o.spans, name)
	}
}

func TestStagesAreComparedWithTheTruth(t *testing.T) {
	for name, c := range map[string]struct {
		edit  func(*coldstart.Report, *fleetsim.ColdStart)
		right int
	}{
		"the truth":           {func(*coldstart.Report, *fleetsim.ColdStart) {}, 7},
		"off by a second":     {func(r *coldstart.Report, _ *fleetsim.ColdStart) { r.Spans[7].Start -= window.Instant(time.Second) }, 7},
		"off by more":         {func(r *coldstart.Report, _ *fleetsim.ColdStart) { r.Spans[7].Start -= window.Instant(time.Second) + 1 }, 6},
		"of another pod":      {func(r *coldstart.Report, _ *fleetsim.ColdStart) { r.Spans[3].Pod = "b" }, 5},
		"not there":           {func(r *coldstart.Report, _ *fleetsim.ColdStart) { r.Spans = r.Spans[:7] }, 6},
		"of another attempt":  {func(r *coldstart.Report, _ *fleetsim.ColdStart) { r.Spans[7].Attempt = 1 }, 6},
		"without pod":         {func(r *coldstart.Report, _ *fleetsim.ColdStart) { r.Spans[7].Pod = "" }, 7},
		"in two pieces":       {func(_ *coldstart.Report, s *fleetsim.ColdStart) { split(s, 0) }, 7},
		"longer than is true": {func(_ *coldstart.Report, s *fleetsim.ColdStart) { s.Stages[4].End += window.Instant(3 * time.Second) }, 6},
	} {
		r, truth, o := reported(), group(), newStartOutcome()
		c.edit(r, truth)
		o.checkStages(r, truth)
		assert.Equal(t, c.right, o.right, name)
		assert.Equal(t, 7, o.stages, name)
		assert.Equal(t, 7-c.right, o.off["warmup"]+o.off["image.pull"]+o.off["container.create"], name)
	}
	r, truth, o := reported(), group(), newStartOutcome()
	split(truth, 0)
	truth.Stages[0].Told = false
	o.checkStages(r, truth)
	assert.Equal(t, 6, o.stages, "of a stage in two pieces all boundaries have to be told")
}

// split cuts a stage in two.
func split(truth *fleetsim.ColdStart, i int) {
	second := truth.Stages[i]
	second.Start += window.Instant(4 * time.Second)
	second.AsTold -= 4 * time.Second
	truth.Stages[i].End, truth.Stages[i].AsTold = second.Start, 4*time.Second
	truth.Stages = append(truth.Stages, second)
}

func TestTheDominantStageIsTheOneWaitedForMost(t *testing.T) {
	gap := coldstart.Span{Stage: coldstart.Unattributed, Missing: []lifecycle.Name{lifecycle.WeightsFinished}}
	for name, c := range map[string]struct {
		says  coldstart.Stage
		told  bool
		gap   *coldstart.Span
		right int
	}{
		"the right one":               {coldstart.WeightsLoad, true, nil, 1},
		"the right one, guessed":      {coldstart.WeightsLoad, false, nil, 1},
		"another":                     {coldstart.ImagePull, true, nil, 0},
		"another that was told":       {coldstart.ImagePull, false, &gap, 0},
		"unattributed, with a reason": {coldstart.Unattributed, false, &gap, 1},
		"unattributed, without one":   {coldstart.Unattributed, false, nil, 0},
		"unattributed, but told":      {coldstart.Unattributed, true, &gap, 0},
	} {
		r, truth, o := reported(), group(), newStartOutcome()
		r.Dominant, truth.Stages[5].Told = c.says, c.told
		if c.gap != nil {
			r.Spans = append(r.Spans, *c.gap)
		}
		o.checkDominant(r, truth)
		assert.Equal(t, c.right, o.dominant, name)
		assert.Equal(t, 1, o.ready, name)
		assert.Equal(t, []float64{0}, o.totals, name)
	}
}

// TestWithoutRepairColdStartsFail: what is told as it is has stages that end before
// they begin, and so has the control of the card.
func TestWithoutRepairColdStartsFail(t *testing.T) {
	o, err := playColdStarts("tuning", 500, tuningSeed)
	require.NoError(t, err)
	assert.Equal(t, 0, o.negative)
	assert.Zero(t, o.sum)
	assert.Zero(t, o.leaked)
	assert.Positive(t, o.negativeAsTold)
	assert.Greater(t, o.right, o.rightAsTold)
	assert.Less(t, o.stretched, o.stages/10)
	assert.Equal(t, 1.0, o.controls().Value)

	o.negativeAsTold, o.stretched, o.guessed = 0, o.stages, o.ready
	line := o.controls()
	assert.Zero(t, line.Value)
	assert.Equal(t, "not a longer truth, no stage named, spans as told", line.Note)
}

func TestWorldsOfColdStartsAddUp(t *testing.T) {
	a, err := playColdStarts("a", 50, tuningSeed)
	require.NoError(t, err)
	b, err := playColdStarts("b", 50, tuningSeed)
	require.NoError(t, err)
	all := newStartOutcome()
	all.add(a)
	all.add(b)
	assert.Equal(t, a.starts+b.starts, all.starts)
	assert.Equal(t, a.right+b.right, all.right)
	assert.Equal(t, max(a.sum, b.sum), all.sum)
	assert.Len(t, all.totals, a.ready+b.ready)
	for stage, n := range all.off {
		assert.Equal(t, a.off[stage]+b.off[stage], n)
	}
}

func TestColdStartsArePlayedOnlyIfAsked(t *testing.T) {
	card, err := ColdStarts(Options{Seed: tuningSeed, Only: regexp.MustCompile("^canary")})
	require.NoError(t, err)
	assert.Empty(t, card.Lines)
}
