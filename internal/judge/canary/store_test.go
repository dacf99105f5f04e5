// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/sealed"
	"github.com/llmfleet/llmfleet/internal/window"
)

// storedOptions watch all that is told.
func storedOptions() Options {
	o := DefaultOptions(testPane)
	o.Watch = Names()
	o.Quality = []Measure{QualityMeasure("grade", 0, Lower)}
	return o
}

// everything makes all replicas tell all measures. What one tells depends on its
// name and the pane alone.
func (s *stage) everything() *fleet.Frame {
	for i := range s.frame.Members {
		m := &s.frame.Members[i]
		h := fnv.New64()
		h.Write([]byte(m.Identity.Replica))
		random := rand.New(rand.NewPCG(h.Sum64(), uint64(s.panes)))
		s.answer(random, m, served{requests: 20, slower: 1, errors: uint64(random.IntN(2))})
		s.tell(m, fleet.ITL, itlBounds, lognormals(random, 100, 0.02, 0.3)...)
		s.tell(m, fleet.PromptLength, lengthBounds, lognormals(random, 20, 300, 0.5)...)
		s.tell(m, fleet.OutputLength, lengthBounds, lognormals(random, 20, 100, 0.5)...)
		s.count(m, fleet.PrefixQueries, 1000)
		s.count(m, fleet.PrefixHits, 400+uint64(random.IntN(200)))
		s.count(m, fleet.GenerationTokens, 1000+uint64(random.IntN(500)))
		if stops := uint64(random.IntN(20)); stops > 5 {
			m.Reasons = []fleet.ReasonCount{{Reason: "length", Count: 20 - stops}, {Reason: "stop", Count: stops}}
		} else {
			m.Reasons = []fleet.ReasonCount{{Reason: "abort", Count: 20 - stops}, {Reason: "stop", Count: stops}}
		}
	}
	f := s.grades()
	revision := []string{"stable", "next", "stable"}[s.panes%3] // held back now and then
	s.grade(f, ofRevision(revision), gradeBounds, lognormals(seeded(uint64(s.panes)), 9, 0.5, 0.2)...)
	return f
}

// said is a report as bytes.
func said(t *testing.T, r *Report) string {
	t.Helper()
	b, err := json.Marshal(r)
	require.NoError(t, err)
	return string(b)
}

// Whenever it is stopped and goes on with what was saved, it says the same as one
// that never stopped.
func TestGoingOnIsAsNeverStopped(t *testing.T) {
	const panes = 24
	stories := map[string]func(s *stage){
		"a canary": func(*stage) {},
		"one that comes, and is promoted": func(s *stage) {
			switch s.panes {
			case 0:
				s.gone("next")
			case 5:
				s.enter("next", 1)
			case 15:
				s.enter("next", 4)
			}
		},
		"one that goes and comes": func(s *stage) {
			switch s.panes {
			case 8:
				s.gone("next")
			case 12:
				s.enter("next", 2)
			}
		},
		"a label comes late": func(s *stage) {
			for i := range s.frame.Members {
				if m := &s.frame.Members[i]; s.panes == 10 {
					m.Identity = &fleet.Identity{Replica: m.Identity.Replica, Keys: m.Identity.Keys, Variant: slices.Concat(m.Identity.Variant, []fleet.Label{label("config_hash", "x")})}
				}
			}
		},
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			run := func(stops func(pane int) bool) (all []string) {
				s := newStage(storedOptions(), 4, 2)
				for pane := range panes {
					story(s)
					all = append(all, said(t, s.end(s.everything())))
					if stops(pane) {
						saved := s.judge.Save()
						s.judge = NewJudge(storedOptions())
						require.NoError(t, s.judge.Load(saved, s.frame.End.Add(time.Second)))
					}
				}
				return all
			}
			never := run(func(int) bool { return false })
			assert.Equal(t, never, run(func(int) bool { return true }))
			assert.Equal(t, never, run(func(pane int) bool { return pane%7 == 3 }))
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	s := newStage(storedOptions(), 4, 2)
	for range 5 {
		s.end(s.everything())
	}
	saved, now := s.judge.Save(), s.frame.End
	foreign := func(change func(o *Options)) *Judge {
		o := storedOptions()
		change(&o)
		return NewJudge(o)
	}
	for name, c := range map[string]struct {
		judge *Judge
		data  []byte
		want  error
	}{
		"another tolerance":      {foreign(func(o *Options) { o.Tolerance = 1.2 }), saved, ErrForeign},
		"another pass tolerance": {foreign(func(o *Options) { o.PassTolerance = 1.3 }), saved, ErrForeign},
		"another pane":           {foreign(func(o *Options) { o.Pane = 2 * testPane }), saved, ErrForeign},
		"other measures":         {foreign(func(o *Options) { o.Quality = nil }), saved, ErrForeign},
		"another direction":      {foreign(func(o *Options) { o.Quality[0].Worse = Higher }), saved, ErrForeign},
		"nothing":                {NewJudge(storedOptions()), nil, sealed.ErrDamaged},
		"cut off":                {NewJudge(storedOptions()), saved[:len(saved)-1], sealed.ErrDamaged},
		"cut short":              {NewJudge(storedOptions()), saved[:3], sealed.ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, c.judge.Load(c.data, now), c.want)
			assert.Zero(t, c.judge.Fleets())
		})
	}
	for at := range saved {
		damaged := slices.Clone(saved)
		damaged[at] ^= 0x10
		require.Error(t, s.judge.Load(damaged, now))
		if at > 500 {
			break
		}
	}
	assert.Equal(t, 1, s.judge.Fleets())
}

// Evidence of ten minutes ago is gone on with, older is not.
func TestLoadForgetsWhatIsOld(t *testing.T) {
	s := newStage(storedOptions(), 4, 2)
	for range 5 {
		s.end(s.everything())
	}
	for later, fleets := range map[time.Duration]int{10 * time.Minute: 1, 10*time.Minute + 1: 0} {
		j := NewJudge(storedOptions())
		require.NoError(t, j.Load(s.judge.Save(), s.frame.End.Add(later)))
		assert.Equal(t, fleets, j.Fleets(), "%s", later)
	}
}

// A verdict outlives a restart.
func TestAVerdictIsSaved(t *testing.T) {
	s, random := newStage(DefaultOptions(testPane), 6, 3), seeded(30)
	require.Equal(t, Fail, s.play(20, func() { s.answerAll(random, well, served{requests: 60, slower: 3}) }).Verdict)
	saved := s.judge.Save()
	s.judge = NewJudge(DefaultOptions(testPane))
	require.NoError(t, s.judge.Load(saved, s.frame.End))
	r := s.play(1, func() { s.answerAll(random, well, well) })
	assert.Equal(t, Fail, r.Verdict)
	assert.Contains(t, []string{"ttft", "e2e"}, r.Measures[r.Driver].Name)
	assert.False(t, s.judge.Turned())
}

// In which order replicas are told, and who was told of before, changes no byte.
func TestOrderDoesNotMatter(t *testing.T) {
	for _, baseline := range []int{3, 6} {
		run := func(shuffle *rand.Rand) (all []string) {
			s := newStage(storedOptions(), baseline, 2)
			for range 20 {
				shuffle.Shuffle(len(s.frame.Members), func(i, j int) {
					s.frame.Members[i], s.frame.Members[j] = s.frame.Members[j], s.frame.Members[i]
				})
				all = append(all, said(t, s.end(s.everything())))
			}
			return all
		}
		assert.Equal(t, run(seeded(1)), run(seeded(2)))
	}
}

// Fleets do not know of each other.
func TestFleetsAreJudgedByThemselves(t *testing.T) {
	run := func(order ...int) (all [2][]string) {
		j := NewJudge(storedOptions())
		stages := [2]*stage{newStage(storedOptions(), 4, 2), newStage(storedOptions(), 5, 1)}
		stages[1].frame.Fleet = &fleet.Fleet{Keys: []fleet.Label{label("model_name", "other")}}
		for pane := range 10 {
			end := window.Instant(pane+1) * window.Instant(testPane)
			j.Begin(end)
			for _, i := range order {
				s := stages[i]
				s.frame.End = end
				grades := s.everything()
				r, ok := j.Judge(&s.frame, []*fleet.Frame{grades})
				require.True(t, ok)
				all[i] = append(all[i], said(t, r))
				s.panes++
			}
		}
		return all
	}
	assert.Equal(t, run(0, 1), run(1, 0))
	assert.Equal(t, run(0)[0], run(0, 1)[0])
}
