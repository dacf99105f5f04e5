// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstart_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/llmfleet/llmfleet/internal/judge/coldstart"
	"github.com/llmfleet/llmfleet/internal/lifecycle"
)

// noted notes facts as they happen.
func noted(book *coldstart.Book, s *story) {
	for i := range s.facts {
		book.Note(&s.facts[i], s.facts[i].At)
	}
}

func whole(uid string) *story {
	return podStory(uid, engine).at(1, lifecycle.Scheduled).at(2, lifecycle.ContainerStarted, in("engine"), attempt(0)).
		at(60, lifecycle.Ready)
}

func TestOnlyOneReportAPod(t *testing.T) {
	book := newBook()
	noted(book, whole("a"))
	assert.Empty(t, book.Close(after(89)).Starts, "late facts may come for half a minute")
	require.Len(t, book.Close(after(91)).Starts, 1)
	s := whole("a").at(3600, lifecycle.Ready)
	for i := range s.facts {
		assert.Equal(t, coldstart.Over, book.Note(&s.facts[i], after(3601)))
	}
	assert.Empty(t, book.Close(after(3700)).Starts)
}

func TestLongServingPodGivesNoSample(t *testing.T) {
	const tenDays = 10 * 24 * 3600
	tests := map[string]*story{
		"told of its creation first": whole("a").at(tenDays, lifecycle.Ready).at(tenDays-5, lifecycle.ContainerStarted, in("engine"), attempt(1)),
		"told of its restart first": {pod: "a", facts: append(
			(&story{pod: "a"}).at(tenDays-5, lifecycle.ContainerStarted, in("engine"), attempt(1)).at(tenDays, lifecycle.Ready).facts, whole("a").facts...)},
		"served for an hour": whole("a"),
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) {
			book := newBook()
			now := after(tenDays + 1)
			if name == "served for an hour" {
				now = after(3660)
			}
			for i := range s.facts {
				book.Note(&s.facts[i], now)
			}
			assert.Empty(t, book.Close(now.Add(time.Hour)).Starts)
			assert.Empty(t, book.Close(now.Add(3*time.Hour)).Starts)
			book.Close(now.Add(6 * time.Hour))
			open, remembered := book.Pods()
			assert.Zero(t, open)
			assert.Zero(t, remembered)
		})
	}
}

func TestFirstTokenComesAfterwards(t *testing.T) {
	book := newBook()
	noted(book, whole("a"))
	require.Len(t, book.Close(after(100)).Starts, 1)
	token := lifecycle.Fact{Pod: "a", Name: lifecycle.FirstToken, At: after(130), Attempt: -1, Took: 15 * time.Second}
	assert.Equal(t, coldstart.Taken, book.Note(&token, after(131)))
	assert.Equal(t, coldstart.Over, book.Note(&token, after(132)), "once")
	closed := book.Close(after(140))
	require.Len(t, closed.Afters, 1)
	assert.Equal(t, "a", closed.Afters[0].ID)
	assert.Equal(t, after(60), closed.Afters[0].Span.Start)
	assert.Equal(t, after(130), closed.Afters[0].Span.End)
}

func TestFirstTokenBeforeTheReport(t *testing.T) {
	book := newBook()
	noted(book, whole("a").at(65, lifecycle.FirstToken))
	closed := book.Close(after(100))
	require.Len(t, closed.Starts, 1)
	require.Len(t, closed.Afters, 1)
	assert.Equal(t, 5*time.Second, closed.Afters[0].Span.End.Sub(closed.Afters[0].Span.Start))
}

func TestPodThatIsNeverReady(t *testing.T) {
	pending := func() *story { return podStory("a", engine) }
	scheduled := func() *story { return pending().at(5, lifecycle.Scheduled) }
	running := func() *story {
		return scheduled().at(6, lifecycle.PullFinished, in("engine"), cached).at(7, lifecycle.ContainerStarted, in("engine"), attempt(0))
	}
	tests := map[string]struct {
		story   *story
		stopped coldstart.Stage
	}{
		"no place":          {pending().at(1, lifecycle.Unschedulable), coldstart.Scheduling},
		"no node":           {pending().at(1, lifecycle.NodeRequested), coldstart.NodeProvision},
		"no devices":        {pending().at(0, lifecycle.ClaimCreated, in("gpus")), coldstart.DRAAllocate},
		"no volume":         {scheduled().at(9, lifecycle.VolumeFailed), coldstart.VolumeAttach},
		"no sandbox":        {scheduled(), coldstart.Sandbox},
		"pulling":           {scheduled().at(6, lifecycle.PullStarted, in("engine")), coldstart.ImagePull},
		"no image":          {scheduled().at(6, lifecycle.PullStarted, in("engine")).at(8, lifecycle.PullFailed, in("engine")).at(9, lifecycle.PullBackOff, in("engine")), coldstart.PullBackOff},
		"silent":            {running(), coldstart.EngineBoot},
		"weights":           {running().at(20, lifecycle.EngineInitializing, in("engine")).at(25, lifecycle.WeightsStarted, in("engine")), coldstart.WeightsLoad},
		"graphs":            {running().at(25, lifecycle.WeightsFinished, in("engine")).at(27, lifecycle.KVCacheFinished, in("engine")), coldstart.GraphCapture},
		"not yet reachable": {running().vllm(7), coldstart.Readiness},
		"crash loop":        {running().at(25, lifecycle.ContainerExited, in("engine"), attempt(0)), coldstart.CrashLoop},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			book := newBook()
			noted(book, test.story)
			if name != "crash loop" {
				progress := book.Progress()
				require.Len(t, progress, 1)
				assert.Equal(t, test.stopped, progress[0].Stage)
			}
			closed := book.Close(after(7201))
			require.Len(t, closed.Starts, 1)
			r := closed.Starts[0]
			assert.Equal(t, coldstart.Expired, r.Outcome)
			assert.Equal(t, test.stopped.String(), r.Stopped.String())
			assert.NotEmpty(t, r.Spans[0].Failure)
			open, _ := book.Pods()
			assert.Zero(t, open)

			book = newBook()
			noted(book, test.story.at(300, lifecycle.Deleted))
			closed = book.Close(after(331))
			require.Len(t, closed.Starts, 1)
			assert.Equal(t, coldstart.Gone, closed.Starts[0].Outcome)
			assert.Equal(t, 300*time.Second, closed.Starts[0].Total)
		})
	}
}

func TestLimitOfPods(t *testing.T) {
	book := coldstart.New(coldstart.Options{MaxPods: 2, TTL: time.Hour, Grace: time.Second, MaxAge: time.Minute})
	created := func(uid string) coldstart.Ignored {
		return book.Note(&podStory(uid, engine).facts[0], noon)
	}
	assert.Equal(t, coldstart.Taken, created("a"))
	assert.Equal(t, coldstart.Taken, created("b"))
	assert.Equal(t, coldstart.Limit, created("c"))
	ready := lifecycle.Fact{Pod: "a", Name: lifecycle.Ready, At: after(5), Attempt: -1}
	book.Note(&ready, after(5))
	require.Len(t, book.Close(after(7)).Starts, 1)
	assert.Equal(t, coldstart.Taken, created("c"), "in the place of one that is done")
	open, remembered := book.Pods()
	assert.Equal(t, []int{2, 0}, []int{open, remembered})
}

func TestGoesOnWithWhatWasSaved(t *testing.T) {
	book := newBook()
	noted(book, whole("done"))
	require.Len(t, book.Close(after(91)).Starts, 1)
	half, rest := whole("half"), whole("half")
	half.facts, rest.facts = half.facts[:2], rest.facts[2:]
	noted(book, half)
	saved := book.Save()

	again := newBook()
	require.NoError(t, again.Load(saved, after(95)))
	noted(again, rest)
	noted(again, whole("done"))
	closed := again.Close(after(200))
	require.Len(t, closed.Starts, 1)
	assert.Equal(t, "half", closed.Starts[0].ID)
	assert.Equal(t, waterfall(told(t, newBook(), 200, whole("half"))), waterfall(closed.Starts[0]))

	saved[len(saved)/2] ^= 1
	require.Error(t, newBook().Load(saved, noon))
}

// Whatever is told, in whatever order and however often: no span ends before it
// begins, none leaves its parent, and the critical path is as long as the start.
func TestAnyFactsMakeAnOrderlyReport(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := podStory("a", engine)
		n := rapid.IntRange(0, 40).Draw(rt, "facts")
		for range n {
			name := lifecycle.Name(rapid.IntRange(int(lifecycle.Desired), int(lifecycle.FirstToken)).Draw(rt, "name"))
			if name == lifecycle.Ready {
				continue
			}
			clock := lifecycle.Clock{}
			switch {
			case name.OfEngine():
				clock = lifecycle.Clock{Kind: lifecycle.Engine, Of: "a"}
			case name > lifecycle.Scheduled:
				clock = lifecycle.Clock{Kind: lifecycle.Node, Of: "n"}
			}
			s.at(rapid.Float64Range(-60, 400).Draw(rt, "at"), name, func(f *lifecycle.Fact) {
				f.Container = rapid.SampledFrom([]string{"", "engine", "fetch"}).Draw(rt, "container")
				f.Attempt = rapid.IntRange(-1, 2).Draw(rt, "attempt")
				f.Took = time.Duration(rapid.IntRange(0, 100).Draw(rt, "took")) * time.Second
				f.Waited = time.Duration(rapid.IntRange(0, 100).Draw(rt, "waited")) * time.Second
				f.Cached = rapid.Bool().Draw(rt, "cached")
				f.ExitCode = rapid.IntRange(0, 1).Draw(rt, "exit")
				f.Clock, f.Learned = clock, f.At.Add(time.Duration(rapid.IntRange(-5, 5).Draw(rt, "lag"))*time.Second)
				f.Until = f.At.Add(time.Duration(rapid.IntRange(0, 50).Draw(rt, "until")) * time.Second)
			})
		}
		s.at(300, lifecycle.Ready)
		same := func(a, b lifecycle.Fact) bool {
			return a.Name == b.Name && a.Container == b.Container && a.Attempt == b.Attempt && a.At == b.At
		}
		for i := 0; i < len(s.facts); i++ { // what differs is not one fact told twice
			if slices.ContainsFunc(s.facts[:i], func(f lifecycle.Fact) bool { return same(f, s.facts[i]) }) {
				s.facts = slices.Delete(s.facts, i, i+1)
				i--
			}
		}
		note := func(seed uint64) *coldstart.Report {
			book := newBook()
			order := append(rand.New(rand.NewPCG(seed, 0)).Perm(len(s.facts)), rand.New(rand.NewPCG(seed, 1)).Perm(len(s.facts))...)
			for _, i := range order {
				book.Note(&s.facts[i], after(310))
			}
			closed := book.Close(after(400))
			if len(closed.Starts) != 1 {
				rt.Fatalf("%d reports", len(closed.Starts))
			}
			return closed.Starts[0]
		}
		r := note(1)
		var sum time.Duration
		for i, span := range r.Spans {
			sum += span.Critical
			if span.End < span.Start || span.Critical < 0 {
				rt.Fatalf("negative: %+v", span)
			}
			if i == 0 {
				continue
			}
			if parent := r.Spans[span.Parent]; span.Parent >= i || span.Start < parent.Start || span.End > parent.End {
				rt.Fatalf("%+v leaves %+v", span, parent)
			}
		}
		if sum != r.Total {
			rt.Fatalf("critical %s of %s", sum, r.Total)
		}
		if one, other := fmt.Sprint(waterfall(r)), fmt.Sprint(waterfall(note(2))); one != other {
			rt.Fatalf("another order, another report:\n%s\n%s", one, other)
		}
	})
}

// What a pod finds when it is made may be as old as it likes.
func TestOldNodeAndClaim(t *testing.T) {
	book := newBook()
	s := &story{pod: "a"}
	s.at(-1, lifecycle.Desired).at(-90000, lifecycle.NodeCreated).at(-89000, lifecycle.NodeReady).at(-5000, lifecycle.ClaimCreated)
	for i := range s.facts {
		assert.Equal(t, coldstart.Taken, book.Note(&s.facts[i], after(0)))
		assert.Empty(t, book.Close(after(0)).Starts)
	}
	r := told(t, book, 100, whole("a"))
	assert.Equal(t, coldstart.Served, r.Outcome)
	assert.Equal(t, coldstart.Yes, r.NodeWarm)
	assert.Equal(t, 61*time.Second, r.Total)
}

// A counted event tells its first and its last time, and is told again each time.
func TestCrashLoopByEventsAlone(t *testing.T) {
	book := newBook()
	s := podStory("a", engine).at(1, lifecycle.Scheduled).at(2, lifecycle.PullFinished, in("engine"), cached)
	for n, at := range []float64{3, 33, 73} {
		s.at(3, lifecycle.ContainerStarted, in("engine"), func(f *lifecycle.Fact) { f.Count, f.Until = n+1, after(at) })
	}
	s.at(23, lifecycle.RestartBackOff, in("engine"), func(f *lifecycle.Fact) { f.Message = "Back-off restarting failed container" }).
		at(120, lifecycle.Ready)
	r := told(t, book, 200, s)
	assert.Equal(t, 3, r.Attempts)
	assert.Contains(t, waterfall(r), "  attempt 3-23 !Back-off restarting failed container")
	assert.Contains(t, waterfall(r), "  crash_loop 23-33 *10")
	assert.Equal(t, 30*time.Second, r.Wasted)
}

func TestReadyWithinTheWaitBeforeTTL(t *testing.T) {
	book := newBook()
	noted(book, podStory("a", engine).at(1, lifecycle.Scheduled).at(7190, lifecycle.Ready))
	assert.Empty(t, book.Close(after(7210)).Starts)
	closed := book.Close(after(7221))
	require.Len(t, closed.Starts, 1)
	assert.Equal(t, coldstart.Served, closed.Starts[0].Outcome)
}

func TestFactsOfTheFutureAreNotBelieved(t *testing.T) {
	book := newBook()
	s := podStory("a", engine).at(601, lifecycle.Scheduled)
	s.facts[0].At = after(599)
	assert.Equal(t, coldstart.Taken, book.Note(&s.facts[0], after(0)))
	assert.Equal(t, coldstart.Future, book.Note(&s.facts[1], after(0)))
	assert.Len(t, book.Close(after(7201)).Starts, 1, "not ready in time, from when it was heard of")
}

func TestGroupThatLacksAPod(t *testing.T) {
	about := engine
	about.Group, about.Leader, about.GroupSize = "ai/llm-0", "leader", 2
	r := told(t, newBook(), 7300, podStory("worker", about).at(1, lifecycle.Scheduled).at(60, lifecycle.Ready))
	assert.Equal(t, "leader", r.ID)
	assert.Equal(t, coldstart.Expired, r.Outcome)
	assert.Equal(t, "not ready in time: of 2 pods of the group 1 were heard of", r.Spans[0].Failure)
	assert.Equal(t, 7300*time.Second, r.Total)
}

// What an engine says that something took is believed as far as its container ran.
func TestTookLongerThanItRan(t *testing.T) {
	s := podStory("a", engine).at(1, lifecycle.ContainerStarted, in("engine"), attempt(0)).
		at(30, lifecycle.KVCacheFinished, in("engine")).
		at(50, lifecycle.GraphsFinished, in("engine"), took(2e6), attempt(1<<40)).
		at(60, lifecycle.Ready)
	r := told(t, newBook(), 100, s)
	assert.Equal(t, 1, r.Attempts)
	for _, span := range r.Spans {
		assert.NotEqual(t, coldstart.GraphCapture, span.Stage)
	}
}
