// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// ttftBounds are vLLM's.
var ttftBounds = []float64{
	0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
	1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
}

// village is a fleet whose replicas answer requests, a pane a minute, under an
// alarm of its own.
type village struct {
	t        *testing.T
	alarm    *Alarm
	random   *rand.Rand
	fleet    *fleet.Fleet
	replicas []villager
	history  [][]fleet.Distribution // by replica: its latest panes
	pane     int
	shy      bool // engines count failures only after the first
	verdicts *Verdicts
}

// villager is how one replica answers.
type villager struct {
	name     string
	slower   float64 // times
	requests int     // a pane
	failing  float64 // share of requests
	started  float64
	away     bool
	node     string
	engine   string
}

const minute = window.Instant(time.Minute)

func newVillage(t *testing.T, o AlarmOptions, replicas int) *village {
	t.Helper()
	v := &village{t: t, alarm: NewAlarm(o), random: rand.New(rand.NewPCG(7, 8)), fleet: &fleet.Fleet{Keys: []fleet.Label{{Name: "model_name", Value: "m"}}}}
	for i := range replicas {
		v.replicas = append(v.replicas, villager{name: fmt.Sprint(i), slower: 1, requests: 60})
	}
	v.history = make([][]fleet.Distribution, replicas)
	return v
}

// careful is the alarm as it is by default.
func careful() AlarmOptions {
	return AlarmOptions{
		FalseAlarmsPerWeek: 1, Tolerance: 1.25, Signals: []fleet.Signal{fleet.TTFT},
		ClearAfter: 10 * time.Minute, Warmup: time.Hour,
	}
}

var villageSignals = []fleet.Signal{fleet.TTFT, fleet.Errors, fleet.Finished}

// observe draws one pane of a replica.
func (v *village) observe(r *villager) []fleet.Distribution {
	ttft := make([]uint64, len(ttftBounds)+1)
	var failed uint64
	for range r.requests {
		if v.random.Float64() < r.failing {
			failed++
			continue
		}
		latency := 0.3 * r.slower * math.Exp(0.6*v.random.NormFloat64())
		i, _ := slices.BinarySearch(ttftBounds, latency)
		ttft[i]++
	}
	told := []fleet.Distribution{
		distribution(ttftBounds, ttft...),
		distribution(nil, failed),
		distribution(nil, uint64(r.requests)),
	}
	if v.shy && failed == 0 { // there is no counter before the first
		told[1] = fleet.Distribution{}
	}
	return told
}

// windowPanes is how many panes are a window.
const windowPanes = 5

// frame is the next pane.
func (v *village) frame() *fleet.Frame {
	v.pane++
	f := &fleet.Frame{End: window.Instant(v.pane) * minute, Fleet: v.fleet, Signals: villageSignals, Pane: time.Minute}
	for i := range v.replicas {
		r := &v.replicas[i]
		recent := v.observe(r)
		v.history[i] = append(v.history[i], recent...)
		if extra := len(v.history[i]) - windowPanes*len(villageSignals); extra > 0 {
			v.history[i] = v.history[i][extra:]
		}
		if r.away {
			continue
		}
		f.Members = append(f.Members, fleet.MemberFrame{
			Identity: &fleet.Identity{Replica: r.name, Engine: cmp.Or(r.engine, "vllm"), Node: r.node},
			Recent:   recent, Told: sumOf(v.history[i]), Started: r.started,
		})
	}
	return f
}

// live lets one pane pass, and returns who is flagged.
func (v *village) live() (flagged []string) {
	v.t.Helper()
	f := v.frame()
	v.alarm.Begin()
	v.verdicts = v.alarm.Judge(f)
	for i := range v.verdicts.Replicas {
		verdict := &v.verdicts.Replicas[i]
		assert.False(v.t, math.IsNaN(verdict.Evidence.Value) || math.IsInf(verdict.Evidence.Value, 0))
		if verdict.Outlier.Withheld == Given && verdict.Outlier.Value == 1 {
			flagged = append(flagged, f.Members[i].Identity.Replica)
			assert.GreaterOrEqual(v.t, verdict.Evidence.Value, 1.0)
		}
	}
	return flagged
}

// sumOf adds panes up, signal by signal.
func sumOf(panes []fleet.Distribution) []fleet.Distribution {
	sum := make([]fleet.Distribution, len(villageSignals))
	for i, d := range panes {
		s := &sum[i%len(villageSignals)]
		if d.Layout == nil {
			continue
		}
		if s.Layout == nil {
			*s = fleet.Distribution{Layout: d.Layout, Counts: make([]uint64, len(d.Counts))}
		}
		for b, c := range d.Counts {
			s.Counts[b] += c
		}
	}
	return sum
}

// until lets panes pass until someone is flagged, at most so many.
func (v *village) until(most int) (flagged []string, panes int) {
	v.t.Helper()
	for panes = 1; panes <= most; panes++ {
		if flagged = v.live(); len(flagged) > 0 {
			return flagged, panes
		}
	}
	return nil, most
}

func (v *village) quiet(panes int) {
	v.t.Helper()
	flagged, after := v.until(panes)
	assert.Empty(v.t, flagged, "after %d panes", after)
}

func TestAlarmFindsWhoBecameSlow(t *testing.T) {
	v := newVillage(t, careful(), 20)
	v.quiet(8 * 60)
	v.replicas[3].slower = 1.5
	flagged, panes := v.until(30)
	assert.Equal(t, []string{"3"}, flagged)
	assert.Less(t, panes, 12)
	assert.Equal(t, Figure{Value: 1}, v.verdicts.Outliers)
}

func TestAlarmFindsWhoWasAlwaysSlow(t *testing.T) {
	v := newVillage(t, careful(), 20)
	v.replicas[7].slower = 1.8
	v.quiet(60) // while it is watched, nothing is said
	for _, verdict := range v.verdicts.Replicas {
		assert.Equal(t, Warming, verdict.Outlier.Withheld)
		assert.Equal(t, Given, verdict.Evidence.Withheld)
	}
	flagged, panes := v.until(2)
	assert.Equal(t, []string{"7"}, flagged, "after %d panes", panes)
}

func TestAlarmForgivesWhatIsTolerated(t *testing.T) {
	v := newVillage(t, careful(), 20)
	v.replicas[7].slower = 1.15 // always was
	v.quiet(8 * 60)
}

func TestWhatIsTolerableIsNotFoundAgainAndAgain(t *testing.T) {
	v := newVillage(t, careful(), 20)
	v.quiet(120)
	v.replicas[7].slower = 1.18 // is worth an alarm, and tolerated
	onsets, was := 0, 0
	for range 12 * 60 {
		now := len(v.live())
		onsets += max(0, now-was)
		was = now
	}
	assert.LessOrEqual(t, onsets, 1)
	assert.Zero(t, was)
	v.replicas[7].slower = 2.4
	flagged, panes := v.until(10)
	assert.Equal(t, []string{"7"}, flagged, "after %d panes", panes)
}

func TestAlarmForgivesWhatIsAllAlike(t *testing.T) {
	v := newVillage(t, careful(), 20)
	v.quiet(120)
	for i := range v.replicas {
		v.replicas[i].slower = 2
	}
	v.quiet(60)
}

func TestAlarmClears(t *testing.T) {
	v := newVillage(t, careful(), 20)
	v.quiet(120)
	v.replicas[0].slower = 2
	flagged, _ := v.until(20)
	assert.Equal(t, []string{"0"}, flagged)
	for range 60 { // as long as it is slow
		assert.Equal(t, []string{"0"}, v.live())
	}
	v.replicas[0].slower = 1
	panes := 0
	for len(v.live()) > 0 {
		panes++
	}
	// Its last alarm was at most some panes before, and ten minutes it is held; the
	// window of five minutes has long left the slow ones behind.
	assert.GreaterOrEqual(t, panes, 5)
	assert.LessOrEqual(t, panes, 16)
	assert.True(t, v.verdicts.Replicas[0].Known, "its causes are told on")
	assert.Equal(t, NoCause, v.verdicts.Replicas[0].Cause)
	v.quiet(120)
}

func TestConstantFaultIsOneFlag(t *testing.T) {
	turns := func(fault func(*villager), requests int) (count int) {
		v := newVillage(t, careful(), 8)
		for i := range v.replicas {
			v.replicas[i].requests = requests
		}
		v.quiet(120)
		fault(&v.replicas[2])
		was := 0
		for range 12 * 60 {
			now := len(v.live())
			count += max(now-was, was-now)
			was = now
		}
		return count
	}
	assert.LessOrEqual(t, turns(func(r *villager) { r.failing = 0.03 }, 60), 3, "fails 3 %")
	assert.LessOrEqual(t, turns(func(r *villager) { r.slower = 1.6 }, 12), 3, "slow, of few requests")
	assert.Equal(t, 1, turns(func(r *villager) { r.slower = 2 }, 60), "twice as slow")
}

func TestAlarmNeedsThree(t *testing.T) {
	v := newVillage(t, careful(), 2)
	v.replicas[0].slower = 5
	v.quiet(120)
	assert.Equal(t, withheld(FewReplicas), v.verdicts.Outliers)
	assert.Equal(t, withheld(FewReplicas), v.verdicts.Replicas[0].Outlier)
	assert.Equal(t, withheld(FewReplicas), v.verdicts.Replicas[0].Evidence)
}

func TestWhoFailsFastIsTheOutlier(t *testing.T) {
	v := newVillage(t, careful(), 4)
	v.quiet(120)
	d := &v.replicas[3]
	d.failing, d.requests = 1, 600 // and has no first token any more
	flagged, panes := v.until(3)
	assert.Equal(t, []string{"3"}, flagged, "after %d panes", panes)
	assert.Equal(t, Errors, v.verdicts.Replicas[3].Cause)
	assert.Equal(t, uint8(0b10), v.verdicts.Replicas[3].Raised)
}

func TestLatenciesOfSeveralEnginesAreNotCompared(t *testing.T) {
	v := newVillage(t, careful(), 20)
	v.replicas[3].engine, v.replicas[3].slower = "sglang", 3
	v.quiet(120)
	v.replicas[3].failing = 0.5
	flagged, _ := v.until(5)
	assert.Equal(t, []string{"3"}, flagged, "errors are errors")
}

func TestErrorsThatNobodyElseCountsAreErrors(t *testing.T) {
	v := newVillage(t, careful(), 4)
	v.shy = true
	v.quiet(120)
	v.replicas[3].failing = 0.5
	flagged, panes := v.until(6)
	assert.Equal(t, []string{"3"}, flagged, "after %d panes", panes)
	assert.Equal(t, Errors, v.verdicts.Replicas[3].Cause)
}

func TestSmallFleetsFindWhoWasAlwaysSlow(t *testing.T) {
	for _, replicas := range []int{3, 4, 5} {
		for _, c := range []struct {
			slower float64
			panes  int
		}{{2, 70}, {1.8, 90}} {
			v := newVillage(t, careful(), replicas)
			v.replicas[1].slower = c.slower
			flagged, panes := v.until(c.panes)
			assert.Equal(t, []string{"1"}, flagged, "%d replicas, %v times slower, after %d panes", replicas, c.slower, panes)
		}
	}
}

func TestSmallFleetsFindWhoFails(t *testing.T) {
	for _, replicas := range []int{3, 4} {
		v := newVillage(t, careful(), replicas)
		v.quiet(120)
		v.replicas[1].failing = 0.3
		flagged, panes := v.until(8)
		assert.Equal(t, []string{"1"}, flagged, "%d replicas, after %d panes", replicas, panes)
	}
}

func TestEvidenceOfAFlagIsWhatItWasRaisedOn(t *testing.T) {
	v := newVillage(t, careful(), 20)
	v.quiet(120)
	v.replicas[3].slower = 3
	_, _ = v.until(10)
	raised := v.verdicts.Replicas[3].Evidence.Value
	assert.Greater(t, raised, 1.0)
	v.replicas[3].slower = 1.3
	v.live()
	assert.InDelta(t, raised, v.verdicts.Replicas[3].Evidence.Value, 1e-6)
}

func TestFewErrorsAreNone(t *testing.T) {
	v := newVillage(t, careful(), 4)
	for i := range v.replicas {
		v.replicas[i].requests = 6000
	}
	v.replicas[3].failing = 0.005
	v.quiet(120)
}

func TestIdleAndAwayKeepTheirEvidence(t *testing.T) {
	v := newVillage(t, careful(), 20)
	v.quiet(120)
	slow := &v.replicas[5]
	slow.slower = 2
	flagged, _ := v.until(20)
	assert.Equal(t, []string{"5"}, flagged)
	slow.requests = 0
	for range 60 {
		assert.Equal(t, []string{"5"}, v.live(), "without a request nothing shows that it is well")
	}
	slow.away = true
	v.quiet(30)
	slow.away = false
	assert.Equal(t, []string{"5"}, v.live(), "back within the hour")
	slow.away = true
	v.quiet(70)
	slow.away, slow.slower, slow.requests = false, 1, 60
	v.quiet(30)
	assert.Equal(t, Warming, v.verdicts.Replicas[5].Outlier.Withheld, "back after longer it is new")
}

func TestIdleFleetIsWatched(t *testing.T) {
	v := newVillage(t, careful(), 4)
	v.quiet(120)
	for i := range v.replicas {
		v.replicas[i].requests = 0
	}
	v.quiet(30)
	for _, verdict := range v.verdicts.Replicas {
		assert.Equal(t, Given, verdict.Outlier.Withheld)
		assert.Equal(t, Given, verdict.Evidence.Withheld)
	}
}

func TestRestartIsHeld(t *testing.T) {
	v := newVillage(t, careful(), 20)
	for i := range v.replicas {
		v.replicas[i].started = 100
	}
	v.quiet(120)
	v.replicas[5].slower = 8 // and would be flagged at once
	v.replicas[5].started = 200
	v.quiet(2)
	flagged, _ := v.until(3)
	assert.Equal(t, []string{"5"}, flagged)
}

func TestThresholdFollowsWhatIsWatched(t *testing.T) {
	v := newVillage(t, careful(), 20)
	v.quiet(3)
	v.alarm.Begin()
	// Two signals of 20 replicas, two detectors each, 10080 panes a week, one alarm.
	assert.InDelta(t, 20*2*2*10080, v.alarm.threshold, 0)
	o := careful()
	o.FalseAlarmsPerWeek = 4
	v = newVillage(t, o, 20)
	v.quiet(3)
	v.alarm.Begin()
	assert.InDelta(t, 20*2*2*10080/4, v.alarm.threshold, 0)
}

func TestEvidenceSurvivesARestart(t *testing.T) {
	v := newVillage(t, careful(), 20)
	v.quiet(120)
	v.replicas[5].slower = 1.5
	v.live()
	v.live()
	v.live()
	saved := v.alarm.Save()
	former := v.verdicts.Replicas[5].Evidence
	assert.Positive(t, former.Value)

	v.alarm = NewAlarm(careful())
	now := window.Instant(v.pane) * minute
	assert.NoError(t, v.alarm.Load(saved, now))
	assert.Equal(t, saved, v.alarm.Save())
	flagged, panes := v.until(12)
	assert.Equal(t, []string{"5"}, flagged)
	assert.Less(t, panes, 10)

	other := careful()
	other.Signals = []fleet.Signal{fleet.ITL}
	assert.ErrorIs(t, NewAlarm(other).Load(saved, now), ErrForeign)
	for cut := range len(saved) {
		if cut%97 == 0 {
			assert.Error(t, NewAlarm(careful()).Load(saved[:cut], now))
		}
	}
	late := NewAlarm(careful())
	assert.NoError(t, late.Load(saved, now.Add(2*time.Hour)))
	assert.Empty(t, late.fleets)
}

func TestNamesThatComeAndGoAreForgotten(t *testing.T) {
	v := newVillage(t, careful(), 10)
	for pane := range 50 {
		for i := range v.replicas {
			v.replicas[i].name = fmt.Sprint(pane, "-", i)
		}
		v.live()
		of := v.alarm.fleets[v.fleet.Key()]
		assert.LessOrEqual(t, len(of.members), 2*10+spare)
	}
	for i := range 100 {
		v.fleet = &fleet.Fleet{Keys: []fleet.Label{{Name: "model_name", Value: fmt.Sprint(i)}}}
		v.live()
		assert.LessOrEqual(t, len(v.alarm.fleets), 2+spare+1)
	}
}

func TestManyFleetsSurviveARestart(t *testing.T) {
	alarm := NewAlarm(careful())
	judge := func(a *Alarm, pane, fleets int) {
		a.Begin()
		for i := range fleets {
			f := &fleet.Frame{End: window.Instant(pane) * minute, Fleet: &fleet.Fleet{Keys: []fleet.Label{{Name: "model_name", Value: fmt.Sprint(i)}}}}
			f.Members = []fleet.MemberFrame{{Identity: &fleet.Identity{Replica: "a"}}}
			a.Judge(f)
		}
	}
	judge(alarm, 1, 200)
	restarted := NewAlarm(careful())
	assert.NoError(t, restarted.Load(alarm.Save(), window.Instant(3)*minute))
	judge(restarted, 4, 10) // the others are scraped a little later
	judge(restarted, 5, 200)
	assert.Len(t, restarted.fleets, 200)
	for _, of := range restarted.fleets {
		assert.Equal(t, minute, of.members["a"].Born)
	}
}

func TestWhoLiesAboveAllBoundsStaysFlagged(t *testing.T) {
	v := newVillage(t, careful(), 8)
	for i := range v.replicas {
		v.replicas[i].slower = 6000 // half an hour, of 43 minutes at most
	}
	v.quiet(120)
	v.replicas[2].slower = 60_000
	flagged, _ := v.until(10)
	assert.Equal(t, []string{"2"}, flagged)
	for range 60 {
		assert.Equal(t, []string{"2"}, v.live())
	}
}
