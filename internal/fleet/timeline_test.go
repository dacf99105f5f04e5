// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/window"
)

const (
	interval = 30 * time.Second
	length   = 5 * time.Minute
	lateness = 5 * time.Second
	pace     = 15 * time.Second // of a scrape
)

// noon is an instant on the grid.
const noon = window.Instant(1_767_268_800) * window.Instant(time.Second)

// after is noon and so many seconds.
func after(seconds int) window.Instant { return noon.Add(time.Duration(seconds) * time.Second) }

// timeline is what happens to a registry: pages arrive when they are scraped,
// and each pane is judged lateness after its end.
type timeline struct {
	registry *Registry
	events   []event
	judged   window.Instant
}

type event struct {
	at window.Instant
	do func()
}

func newTimeline(change ...func(*Options)) *timeline {
	o := Options{Grids: []window.Grid{window.NewGrid(interval, length, lateness)}, Lateness: lateness, MaxReplicas: 100}
	for _, c := range change {
		c(&o)
	}
	tl := &timeline{registry: NewRegistry(o), judged: noon}
	tl.registry.Open(noon + 1)
	return tl
}

// scraped adds an event at every pace from one time to the next, in seconds
// after noon; the last is excluded.
func (tl *timeline) scraped(from, until int, do func(at window.Instant)) {
	for at := after(from); at < after(until); at = at.Add(pace) {
		tl.events = append(tl.events, event{at, func() { do(at) }})
	}
}

// run lets time pass and returns what was seen of the only fleet at each
// pane's end, in seconds after noon.
func (tl *timeline) run(until int) map[int]view {
	slices.SortStableFunc(tl.events, func(a, b event) int { return int(a.at - b.at) })
	views := map[int]view{}
	for end := tl.judged.Add(interval); end <= after(until); end = end.Add(interval) {
		for len(tl.events) > 0 && tl.events[0].at <= end.Add(lateness) {
			tl.events[0].do()
			tl.events = tl.events[1:]
		}
		tl.judged = end
		seen := view{}
		tl.registry.Close(end, Ask{Signals: []Signal{TTFT}}, func(f *Frame) { seen = viewOf(f) })
		views[int(end.Sub(noon).Seconds())] = seen
	}
	return views
}

// view is what a test looks at in a frame.
type view struct {
	members  map[string]standing
	departed map[string]uint64 // observations
	pool     uint64            // observations of all
	copies   int
}

type standing struct {
	warming, unreachable bool
	observations         uint64
	load                 [loads]Load
}

func viewOf(f *Frame) view {
	v := view{members: map[string]standing{}, departed: map[string]uint64{}, copies: f.Copies}
	for i := range f.Members {
		m := &f.Members[i]
		v.members[m.Identity.Replica] = standing{m.Warming, m.Unreachable, m.Told[0].Observations(), m.Load}
	}
	for i := range f.Departed {
		m := &f.Departed[i]
		v.departed[m.Identity.Replica] = m.Told[0].Observations()
	}
	for d := range f.Distributions(0) {
		v.pool += d.Observations()
	}
	return v
}

// scrape is one target of one replica.
type scrape struct {
	tl       *timeline
	target   ID
	identity Identity
	process  float64 // start time; zero: untold
	spelling Spelling
}

func (tl *timeline) scrape(target ID, replica string) *scrape {
	return &scrape{tl: tl, target: target, identity: Identity{
		Replica: replica,
		Keys:    []Label{{"model_name", "m"}, {"engine_name", "vllm"}},
	}}
}

// bounds are those of every histogram here: at most 0.1 s, at most 1 s, more.
var bounds = []float64{0.1, 1}

// total is a page that shows so many first tokens so far, all within 1 s.
func (s *scrape) total(at window.Instant, n uint64) {
	s.page(at, func(t *Target) error {
		series, err := s.series(t, TTFT)
		if err == nil {
			series.Touch(at)
			series.ObserveHistogram(bounds, &window.Sample{At: at, Sum: float64(n) / 2, Counts: []uint64{0, n, 0}})
		}
		return err
	})
}

// gauge is a page that shows one gauge.
func (s *scrape) gauge(at window.Instant, signal Signal, value float64) {
	s.page(at, func(t *Target) error {
		series, err := s.series(t, signal)
		if err == nil {
			series.Touch(at)
			series.ObserveGauge(at, value)
		}
		return err
	})
}

// fail is a failed scrape: all series are ended by a marker, and up is 0.
func (s *scrape) fail(at window.Instant) {
	t, err := s.tl.registry.Acquire(s.target, false)
	if t == nil || err != nil {
		return
	}
	defer t.Unlock()
	for _, series := range t.series.all() {
		series.Suspend(at)
		series.Unreached()
	}
	t.Heard(false, at)
}

func (s *scrape) page(at window.Instant, read func(*Target) error) {
	t, err := s.tl.registry.Acquire(s.target, true)
	if err != nil {
		panic(err)
	}
	defer t.Unlock()
	if s.process != 0 {
		t.Process(s.process)
	}
	if err := read(t); err != nil {
		panic(err)
	}
	t.Heard(true, at)
}

// series finds the scrape's only series of the signal, or joins it.
func (s *scrape) series(t *Target, signal Signal) (*Series, error) {
	id := ID(signal) + 100*ID(s.spelling.Alias) + 1000*s.spelling.Choice
	if series := t.Series(id); series != nil {
		return series, nil
	}
	return t.Join(id, &s.identity, signal, s.spelling)
}

// steady is a page of an engine that has given one first token a second since
// long before noon.
func (s *scrape) steady(at window.Instant) {
	s.total(at, uint64(at.Sub(noon.Add(-24*time.Hour)).Seconds()))
}

// perWindow is what a steady engine gives in one window.
const perWindow = uint64(length / time.Second)

// assertForgotten asserts that nothing is left in the registry.
func assertForgotten(t *testing.T, r *Registry) {
	t.Helper()
	assert.Empty(t, r.targets)
	assert.Empty(t, r.fleets)
	assert.Zero(t, r.members)
	assert.Zero(t, r.seriesCount.Load())
}

func TestSteadyReplicaIsJudgedOnceWarm(t *testing.T) {
	for name, first := range map[string]int{"between panes": 3, "at the end of a pane": 0} {
		t.Run(name, func(t *testing.T) {
			tl := newTimeline()
			s := tl.scrape(1, "a")
			tl.scraped(first, 700, s.steady)
			views := tl.run(690)
			for end := 30; end <= 690; end += 30 {
				require.Contains(t, views[end].members, "a", "at %d s", end)
				m := views[end].members["a"]
				assert.Equal(t, end < first+300, m.warming, "at %d s", end)
				assert.False(t, m.unreachable)
				if !m.warming {
					assert.Equal(t, perWindow, m.observations, "at %d s", end)
				}
			}
		})
	}
}
