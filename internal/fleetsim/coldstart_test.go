// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// delivered is a fact and when it was delivered.
type delivered struct {
	at   window.Instant
	fact *lifecycle.Fact
}

// playStarts plays a world to its end.
func playStarts(t *testing.T, world ColdStarts) (starts []*ColdStart, told []delivered) {
	t.Helper()
	require.NoError(t, world.Play(3,
		func(s *ColdStart) { starts = append(starts, s) },
		func(at window.Instant, f *lifecycle.Fact) { told = append(told, delivered{at, f}) }))
	return starts, told
}

// plainStarts is a world in which everything is told, once, in order and by clocks
// that agree.
func plainStarts(pods int) ColdStarts {
	world := HardColdStarts("test", pods)
	world.Skew, world.Missing, world.Repeated, world.Shuffle = 0, 0, 0, 0
	return world
}

func TestColdStartsHappenAsOftenAsPlanned(t *testing.T) {
	starts, _ := playStarts(t, HardColdStarts("test", 10_000))
	pods, groups, single, restarted, beside := 0, 0, 0, 0, 0
	for _, s := range starts {
		pods += len(s.Pods)
		if len(s.Pods) > 1 {
			groups++
			assert.LessOrEqual(t, len(s.Pods), 4)
			continue
		}
		single++
		again, other := false, false
		for _, stage := range s.Stages {
			again = again || stage.Stage == "engine.boot" && stage.Attempt > 0
			other = other || stage.Container == sidecarContainer || stage.Container == besideContainer
		}
		if again {
			restarted++
		}
		if other {
			beside++
		}
	}
	assert.InDelta(t, 10_000, pods, 3)
	share := func(n, of int) float64 { return float64(n) / float64(of) }
	assert.InDelta(t, 0.05, share(groups, len(starts)), 0.008)
	assert.InDelta(t, 0.1, share(restarted, single), 0.012)
	assert.InDelta(t, 0.3, share(beside, single), 0.018)
}

// TestWhatIsToldChangesNothingOfWhatHappens: a fifth of the facts is missing, and a
// tenth of the others told twice.
func TestWhatIsToldChangesNothingOfWhatHappens(t *testing.T) {
	plain, all := playStarts(t, plainStarts(2000))
	hard, some := playStarts(t, HardColdStarts("test", 2000))
	require.Len(t, hard, len(plain))
	for i := range plain {
		assert.Equal(t, plain[i].ID, hard[i].ID)
		require.Len(t, hard[i].Stages, len(plain[i].Stages))
		for k, stage := range hard[i].Stages {
			assert.Equal(t, plain[i].Stages[k].Start, stage.Start)
			assert.Equal(t, plain[i].Stages[k].End, stage.End)
		}
	}
	assert.InDelta(t, 0.8*1.1, float64(len(some))/float64(len(all)), 0.01)
}

func TestStagesLieWithinTheirStart(t *testing.T) {
	starts, _ := playStarts(t, plainStarts(2000))
	for _, s := range starts {
		assert.True(t, s.ReadyTold)
		for _, stage := range s.Stages {
			assert.LessOrEqual(t, s.Began, stage.Start, stage.Stage)
			assert.LessOrEqual(t, stage.Start, stage.End, stage.Stage)
			assert.LessOrEqual(t, stage.End, s.Ready, stage.Stage)
			assert.Contains(t, s.Pods, stage.Pod)
		}
		assert.Less(t, s.Ready.Sub(s.Began), 2*time.Hour)
	}
}

// TestAPlainWorldTellsTheTruth: but for whole seconds, and for what a failed engine
// was at when it said nothing.
func TestAPlainWorldTellsTheTruth(t *testing.T) {
	starts, told := playStarts(t, plainStarts(2000))
	silent := 0
	for _, s := range starts {
		for _, stage := range s.Stages {
			if !stage.Told {
				assert.Contains(t, []string{"engine.boot", "compile"}, stage.Stage)
				silent++
				continue
			}
			assert.Less(t, (stage.AsTold - stage.End.Sub(stage.Start)).Abs(), 1600*time.Millisecond, stage.Stage)
		}
	}
	assert.Positive(t, silent)
	for _, d := range told {
		if d.fact.Learned == 0 {
			continue
		}
		known := max(d.fact.At, d.fact.Until)
		late := d.fact.Learned.Sub(known)
		assert.GreaterOrEqual(t, late, 50*time.Millisecond)
		assert.LessOrEqual(t, late, 3*time.Second, "two of delay, and one that whole seconds hide")
		assert.Equal(t, d.fact.Learned, d.at)
		if d.fact.Grain == time.Second {
			assert.Zero(t, d.fact.At%window.Instant(time.Second))
		}
	}
}

// TestClocksDifferByNode: what a node tells is off by as much every time, what the
// control plane tells is not.
func TestClocksDifferByNode(t *testing.T) {
	world := HardColdStarts("test", 5000)
	_, told := playStarts(t, world)
	assert.True(t, slices.IsSortedFunc(told, func(x, y delivered) int { return int(x.at - y.at) }))
	least := map[lifecycle.Clock]time.Duration{}
	for _, d := range told {
		f := d.fact
		if f.Learned == 0 || f.Clock.Kind == lifecycle.Engine || f.Until != 0 {
			continue
		}
		require.LessOrEqual(t, d.at.Sub(f.Learned), time.Minute)
		late := f.Learned.Sub(f.At)
		if l, ok := least[f.Clock]; !ok || late < l {
			least[f.Clock] = late
		}
	}
	require.Len(t, least, 1+world.Nodes)
	assert.InDelta(t, 0.05, least[lifecycle.Clock{}].Seconds(), 0.02)
	delete(least, lifecycle.Clock{})
	low, high := math.Inf(1), math.Inf(-1)
	for _, late := range least {
		low, high = min(low, late.Seconds()), max(high, late.Seconds())
	}
	assert.InDelta(t, -5, low, 1, "the fastest of fifty clocks")
	assert.InDelta(t, 5, high, 1, "the slowest")
}

// TestLengthsAreThoseOfTheField: DLRM jobs wait 59 s at 90 % and 1650 s at 99 %,
// those that do not wait included; base models of GenTD26 load in 22.7 s and 42 s.
func TestLengthsAreThoseOfTheField(t *testing.T) {
	draw := stream(3, "test", "lengths")
	above := func(l length, share float64, bounds ...float64) (shares []float64) {
		const n = 200_000
		shares = make([]float64, len(bounds))
		for range n {
			took := l(draw)
			for i, b := range bounds {
				if took > b {
					shares[i] += share / n
				}
			}
		}
		return shares
	}
	assert.InDeltaSlice(t, []float64{0.1, 0.01}, above(placeWait, waits, 59, 1650), 0.001)
	assert.InDeltaSlice(t, []float64{0.5, 0.1}, above(weightsTake, 1, 22.7, 42), 0.003)
}

func TestColdStartsAreRefused(t *testing.T) {
	for name, edit := range map[string]func(*ColdStarts){
		"no pods":            func(c *ColdStarts) { c.Pods = 0 },
		"no nodes":           func(c *ColdStarts) { c.Nodes = 0 },
		"no beginning":       func(c *ColdStarts) { c.Begin = 0 },
		"all at once":        func(c *ColdStarts) { c.Every = 0 },
		"more than all":      func(c *ColdStarts) { c.Missing = 1.1 },
		"no number":          func(c *ColdStarts) { c.Groups = math.NaN() },
		"early":              func(c *ColdStarts) { c.DelayMin = -time.Second },
		"most below least":   func(c *ColdStarts) { c.DelayMax = 0 },
		"backwards shuffled": func(c *ColdStarts) { c.Shuffle = -1 },
	} {
		world := HardColdStarts("test", 1)
		edit(&world)
		assert.Error(t, world.Play(1, func(*ColdStart) {}, func(window.Instant, *lifecycle.Fact) {}), name)
	}
}
