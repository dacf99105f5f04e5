// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// bounds of vLLM's time to first token, in seconds.
var ttftBounds = []float64{
	0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
}

var lengthBounds = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000}

// stage is a fleet of two variants, whose panes a test writes.
type stage struct {
	judge   *Judge
	layouts window.Layouts
	frame   fleet.Frame
	panes   int
}

const testPane = time.Minute

// newStage has so many replicas of the variants stable and next.
func newStage(o Options, baseline, canary int) *stage {
	s := &stage{judge: NewJudge(o), frame: closed()}
	s.frame.Fleet = &fleet.Fleet{Keys: []fleet.Label{{Name: "model_name", Value: "m"}}}
	s.frame.Signals = Signals()
	for i := range baseline + canary {
		revision := "stable"
		if i >= baseline {
			revision = "next"
		}
		s.join(fmt.Sprintf("pod-%d", i), revision)
	}
	return s
}

// closed is a frame without members that a registry has closed: only those can tell
// which bounds two layouts share.
func closed() (frame fleet.Frame) {
	registry := fleet.NewRegistry(fleet.Options{Grids: []window.Grid{window.NewGrid(testPane, testPane, 0)}, MaxReplicas: 1})
	registry.Open(window.Instant(time.Hour))
	target, err := registry.Acquire(1, true)
	if err != nil {
		panic(err)
	}
	if _, err := target.Join(1, &fleet.Identity{Replica: "a"}, fleet.TTFT, fleet.Spelling{}); err != nil {
		panic(err)
	}
	target.Unlock()
	registry.Close(window.Instant(time.Hour), fleet.Ask{}, func(f *fleet.Frame) { frame = *f })
	frame.Members, frame.Departed = nil, nil
	return frame
}

// join adds a replica that tells nothing yet.
func (s *stage) join(name, revision string) {
	s.joinAs(name, fleet.Label{Name: "model_revision", Value: revision})
}

// joinAs adds one of a variant with these labels.
func (s *stage) joinAs(name string, variant ...fleet.Label) {
	s.frame.Members = append(s.frame.Members, fleet.MemberFrame{
		Identity: &fleet.Identity{Replica: name, Keys: s.frame.Fleet.Keys, Variant: variant},
		Told:     make([]fleet.Distribution, len(s.frame.Signals)),
	})
}

// leave removes the replicas for which gone is true.
func (s *stage) leave(gone func(m *fleet.MemberFrame) bool) {
	s.frame.Members = slices.DeleteFunc(s.frame.Members, func(m fleet.MemberFrame) bool { return gone(&m) })
}

// of are the replicas of a revision.
func (s *stage) of(revision string) (all []*fleet.MemberFrame) {
	for i := range s.frame.Members {
		if m := &s.frame.Members[i]; isOf(m, revision) {
			all = append(all, m)
		}
	}
	return all
}

func isOf(m *fleet.MemberFrame, revision string) bool {
	return valueOf(m.Identity.Variant, "model_revision") == revision
}

// tell makes a replica tell values of a histogram in the pane.
func (s *stage) tell(m *fleet.MemberFrame, signal fleet.Signal, bounds []float64, values ...float64) {
	m.Told[s.frame.Index(signal)] = s.told(bounds, values...)
}

// told is a histogram of values.
func (s *stage) told(bounds []float64, values ...float64) fleet.Distribution {
	layout := s.layouts.Intern(bounds)
	d := fleet.Distribution{Layout: layout, Counts: make([]uint64, layout.Width()), SumKnown: true}
	for _, v := range values {
		i, _ := slices.BinarySearch(bounds, v)
		d.Counts[i]++
		d.Sum += v
	}
	return d
}

// count makes a replica tell an increase of a counter.
func (s *stage) count(m *fleet.MemberFrame, signal fleet.Signal, n uint64) {
	m.Told[s.frame.Index(signal)] = fleet.Distribution{Layout: s.layouts.Intern(nil), Counts: []uint64{n}}
}

// end ends the pane and judges it. What replicas told is forgotten.
func (s *stage) end(quality ...*fleet.Frame) *Report {
	s.panes++
	s.frame.End = window.Instant(s.panes) * window.Instant(testPane)
	s.judge.Begin(s.frame.End)
	report, _ := s.judge.Judge(&s.frame, quality)
	for i := range s.frame.Members {
		clear(s.frame.Members[i].Told)
		s.frame.Members[i].Reasons = nil
	}
	return report
}

// play ends so many panes, each after write has told it, and returns the last
// report.
func (s *stage) play(panes int, write func()) (last *Report) {
	for range panes {
		write()
		last = s.end()
	}
	return last
}

// lognormals are n values with that median.
func lognormals(random *rand.Rand, n int, median, sigma float64) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = median * math.Exp(sigma*random.NormFloat64())
	}
	return values
}

// repeated are n times the same value.
func repeated(n int, value float64) []float64 { return slices.Repeat([]float64{value}, n) }

// measureOf finds a measure of a report.
func measureOf(r *Report, name string) *MeasureReport {
	for i := range r.Measures {
		if r.Measures[i].Name == name {
			return &r.Measures[i]
		}
	}
	return nil
}

// seeded is chance that is the same in each run.
func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 6)) }

// served is what a replica's requests of one pane are like.
type served struct {
	requests int
	slower   float64 // so many times a time to first token of 0.3 s, and an e2e of 10 s
	errors   uint64
}

var well = served{requests: 60, slower: 1}

// answer makes a replica tell of its requests.
func (s *stage) answer(random *rand.Rand, m *fleet.MemberFrame, a served) {
	s.tell(m, fleet.TTFT, ttftBounds, lognormals(random, a.requests, 0.3*a.slower, 0.6)...)
	s.tell(m, fleet.E2E, ttftBounds, lognormals(random, a.requests, 10*a.slower, 0.4)...)
	s.count(m, fleet.Finished, uint64(a.requests))
	s.count(m, fleet.Errors, a.errors)
}

// answerAll makes all replicas tell of theirs, by their revision.
func (s *stage) answerAll(random *rand.Rand, baseline, canary served) {
	for i := range s.frame.Members {
		m := &s.frame.Members[i]
		if isOf(m, "next") {
			s.answer(random, m, canary)
		} else {
			s.answer(random, m, baseline)
		}
	}
}

// alike makes all replicas answer so many requests, without an error and all as
// fast.
func (s *stage) alike(requests int) {
	for i := range s.frame.Members {
		m := &s.frame.Members[i]
		s.tell(m, fleet.TTFT, ttftBounds, repeated(requests, 0.3)...)
		s.count(m, fleet.Finished, uint64(requests))
		s.count(m, fleet.Errors, 0)
	}
}

// minute is the end of a pane.
func minute(pane int) window.Instant { return window.Instant(pane) * window.Instant(testPane) }
