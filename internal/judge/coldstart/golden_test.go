// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstart_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/llmfleet/llmfleet/internal/judge/coldstart"
	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// noon is when the stories of these tests begin.
var noon = window.Instant(time.Date(2026, 8, 5, 12, 0, 0, 0, time.UTC).UnixNano())

func after(seconds float64) window.Instant {
	return noon.Add(time.Duration(seconds * float64(time.Second)))
}

// story tells the facts of one pod, in seconds since noon.
type story struct {
	pod   string
	facts []lifecycle.Fact
}

func podStory(uid string, about lifecycle.Pod) *story {
	s := &story{pod: uid}
	s.at(0, lifecycle.Created, func(f *lifecycle.Fact) { f.About = &about })
	return s
}

func (s *story) at(seconds float64, name lifecycle.Name, with ...func(*lifecycle.Fact)) *story {
	f := lifecycle.Fact{Pod: s.pod, Name: name, At: after(seconds), Attempt: -1}
	for _, w := range with {
		w(&f)
	}
	s.facts = append(s.facts, f)
	return s
}

func in(container string) func(*lifecycle.Fact) {
	return func(f *lifecycle.Fact) { f.Container = container }
}

func took(seconds float64) func(*lifecycle.Fact) {
	return func(f *lifecycle.Fact) { f.Took = time.Duration(seconds * float64(time.Second)) }
}

func attempt(n int) func(*lifecycle.Fact) { return func(f *lifecycle.Fact) { f.Attempt = n } }

func cached(f *lifecycle.Fact) { f.Cached = true }

func newBook() *coldstart.Book {
	return coldstart.New(coldstart.Options{MaxPods: 100, TTL: 2 * time.Hour, Grace: 30 * time.Second, MaxAge: 10 * time.Minute})
}

// told notes all facts half a second after they happened, and returns what a close
// makes of them.
func told(t *testing.T, book *coldstart.Book, at float64, stories ...*story) *coldstart.Report {
	t.Helper()
	for _, s := range stories {
		for i := range s.facts {
			book.Note(&s.facts[i], s.facts[i].At.Add(time.Second/2))
		}
	}
	closed := book.Close(after(at))
	require.Len(t, closed.Starts, 1)
	return closed.Starts[0]
}

// waterfall writes a report as a test expects it: a line a stage, with its seconds
// since noon, and a star for the seconds on the critical path.
func waterfall(r *coldstart.Report) []string {
	var lines []string
	for _, s := range r.Spans {
		line := fmt.Sprintf("%s%s %g-%g", strings.Repeat("  ", depth(r, s)), s.Stage, s.Start.Sub(noon).Seconds(), s.End.Sub(noon).Seconds())
		if s.Critical > 0 {
			line += fmt.Sprintf(" *%g", s.Critical.Seconds())
		}
		if s.Failure != "" {
			line += " !" + s.Failure
		}
		for _, name := range s.Missing {
			line += " ?" + strings.TrimPrefix(name.String(), "llmfleet.")
		}
		lines = append(lines, line)
	}
	return lines
}

func depth(r *coldstart.Report, s coldstart.Span) int {
	if s.Parent < 0 {
		return 0
	}
	return 1 + depth(r, r.Spans[s.Parent])
}

var engine = lifecycle.Pod{Name: "llm-0", Namespace: "ai", Model: "qwen", Containers: []lifecycle.Container{{Name: "engine"}}}

// vllm tells what vLLM says from an instant on, in the order and with the durations
// of its lines.
func (s *story) vllm(start float64) *story {
	return s.at(start+10, lifecycle.EngineInitializing, in("engine")).
		at(start+15, lifecycle.WeightsStarted, in("engine")).
		at(start+75, lifecycle.WeightsFinished, in("engine"), took(50)).
		at(start+130, lifecycle.CompileFinished, in("engine"), took(55)).
		at(start+140, lifecycle.KVCacheFinished, in("engine")).
		at(start+170, lifecycle.GraphsFinished, in("engine"), took(25)).
		at(start+180, lifecycle.EngineReady, in("engine"))
}

func TestOnePodWhole(t *testing.T) {
	s := podStory("a", engine).
		at(2, lifecycle.Scheduled).
		at(3, lifecycle.SandboxReady).
		at(3, lifecycle.PullStarted, in("engine")).
		at(63, lifecycle.PullFinished, in("engine"), took(40), func(f *lifecycle.Fact) { f.Waited = 20 * time.Second }).
		at(65, lifecycle.ContainerStarted, in("engine"), attempt(0)).
		vllm(65).
		at(250, lifecycle.Ready)
	r := told(t, newBook(), 300, s)
	assert.Equal(t, []string{
		"replica.cold_start 0-250",
		"  scheduling 0-2 *2",
		"  sandbox 2-3 *1",
		"  image.pull_wait 3-23 *20",
		"  image.pull 23-63 *40",
		"  container.create 63-65 *2",
		"  engine.boot 65-75 *10",
		"  weights.load 80-140 *60",
		"  compile 140-195 *55",
		"  kv_cache.init 195-205 *10",
		"  graph.capture 210-235 *25",
		"  warmup 235-245 *10",
		"  ready 245-250 *5",
		"  unattributed 75-80 *5",
		"  unattributed 205-210 *5",
	}, waterfall(r))
	assert.Equal(t, 250*time.Second, r.Total)
	assert.Equal(t, 10*time.Second, r.Unattributed)
	assert.Equal(t, coldstart.WeightsLoad, r.Dominant)
	assert.Equal(t, coldstart.Cold, r.Class)
	assert.Equal(t, coldstart.No, r.ImageCached)
}

func TestGroupWaitsForItsSlowestPull(t *testing.T) {
	group := func(name, leader string) lifecycle.Pod {
		p := engine
		p.Name, p.Group, p.Leader, p.GroupSize, p.GPUs = name, "ai/llm-0", leader, 2, 8
		return p
	}
	member := func(uid string, about lifecycle.Pod, pull float64) *story {
		return podStory(uid, about).
			at(10, lifecycle.Scheduled).
			at(10+pull, lifecycle.PullFinished, in("engine"), took(pull)).
			at(15+pull, lifecycle.ContainerStarted, in("engine"), attempt(0))
	}
	leader := member("leader", group("llm-0", "leader"), 60)
	worker := member("worker", group("llm-0-1", "leader"), 240)
	leader.at(255, lifecycle.EngineInitializing, in("engine")).
		at(255, lifecycle.WeightsStarted, in("engine")).
		at(555, lifecycle.WeightsFinished, in("engine")).
		at(555, lifecycle.GraphsFinished, in("engine")).
		at(570, lifecycle.EngineReady, in("engine")).
		at(570, lifecycle.Ready)
	worker.at(256, lifecycle.Ready)
	r := told(t, newBook(), 700, worker, leader)
	assert.Equal(t, "leader", r.ID)
	assert.Equal(t, 570*time.Second, r.Total)
	var critical []string
	for _, s := range r.Spans {
		if s.Critical > 0 {
			critical = append(critical, fmt.Sprintf("%s %s %g", s.Pod, s.Stage, s.Critical.Seconds()))
		}
	}
	slices.Sort(critical)
	assert.Equal(t, []string{
		"leader warmup 15", "leader weights.load 300", "worker container.create 5", "worker image.pull 240", "worker scheduling 10",
	}, critical)
}

func TestRestartIsAnAttempt(t *testing.T) {
	s := podStory("a", engine).
		at(1, lifecycle.Scheduled).at(2, lifecycle.SandboxReady).
		at(2, lifecycle.PullFinished, in("engine"), cached).
		at(3, lifecycle.ContainerStarted, in("engine"), attempt(0)).
		at(13, lifecycle.EngineInitializing, in("engine")).
		at(18, lifecycle.WeightsStarted, in("engine")).
		at(43, lifecycle.ContainerExited, in("engine"), attempt(0), func(f *lifecycle.Fact) { f.Reason, f.ExitCode = "OOMKilled", 137 }).
		at(53, lifecycle.PullFinished, in("engine"), cached).
		at(54, lifecycle.ContainerStarted, in("engine"), attempt(1)).
		vllm(54).
		at(240, lifecycle.Ready)
	r := told(t, newBook(), 300, s)
	assert.Equal(t, []string{
		"replica.cold_start 0-240",
		"  attempt 3-43 !OOMKilled, exit code 137",
		"  scheduling 0-1 *1",
		"  sandbox 1-2 *1",
		"  container.create 2-3 *1",
		"    engine.boot 3-13 *10",
		"    weights.load 18-43 *25 !OOMKilled, exit code 137",
		"  crash_loop 43-53 *10",
		"  container.create 53-54 *1",
		"  engine.boot 54-64 *10",
		"  weights.load 69-129 *60",
		"  compile 129-184 *55",
		"  kv_cache.init 184-194 *10",
		"  graph.capture 199-224 *25",
		"  warmup 224-234 *10",
		"  ready 234-240 *6",
		"  unattributed 13-18 *5",
		"  unattributed 64-69 *5",
		"  unattributed 194-199 *5",
	}, waterfall(r))
	assert.Equal(t, 2, r.Attempts)
	assert.Equal(t, 50*time.Second, r.Wasted)
	assert.Equal(t, coldstart.Yes, r.ImageCached)
}

func TestGroupOfWhichOnePodIsNeverReady(t *testing.T) {
	about := engine
	about.Group, about.Leader, about.GroupSize = "ai/llm-0", "leader", 2
	leader := podStory("leader", about).at(1, lifecycle.Scheduled).at(60, lifecycle.Ready)
	worker := podStory("worker", about).at(1, lifecycle.Unschedulable, func(f *lifecycle.Fact) { f.Message = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu." })
	r := told(t, newBook(), 7300, leader, worker)
	assert.Equal(t, coldstart.Expired, r.Outcome)
	assert.Equal(t, coldstart.Scheduling, r.Stopped)
	assert.Equal(t, "not ready in time: 0/4 nodes are available: 4 Insufficient nvidia.com/gpu.", r.Spans[0].Failure)
}

func TestCountedBackOffIsOneStage(t *testing.T) {
	s := podStory("a", engine).at(1, lifecycle.Scheduled).at(2, lifecycle.SandboxReady).
		at(2, lifecycle.PullStarted, in("engine")).at(5, lifecycle.PullFailed, in("engine"), func(f *lifecycle.Fact) { f.Message = "pull QPS exceeded" }).
		at(6, lifecycle.PullBackOff, in("engine"), func(f *lifecycle.Fact) { f.Count, f.Until = 5, after(60) }).
		at(70, lifecycle.PullFinished, in("engine"), cached). // another pod had it pulled
		at(71, lifecycle.ContainerStarted, in("engine"), attempt(0)).
		at(80, lifecycle.Ready)
	r := told(t, newBook(), 200, s)
	assert.Contains(t, waterfall(r), "  image.pull 2-5 *3 !pull QPS exceeded")
	assert.Contains(t, waterfall(r), "  image.pull_back_off 5-70 *65")
	assert.Equal(t, coldstart.Yes, r.ImageCached)
	for _, span := range r.Spans {
		if span.Stage == coldstart.PullBackOff {
			assert.Equal(t, 5, span.Count)
		}
	}
}

// The event that tells it is best effort: the condition has it too, in whole seconds.
func TestScheduledEventLost(t *testing.T) {
	second := func(f *lifecycle.Fact) { f.Grain = time.Second }
	s := podStory("a", engine).at(4, lifecycle.Scheduled, second).at(60, lifecycle.Ready)
	r := told(t, newBook(), 200, s)
	assert.Contains(t, waterfall(r), "  scheduling 0-4.5 *4.5")
	s.at(4.2, lifecycle.Scheduled)
	r = told(t, newBook(), 200, s)
	assert.Contains(t, waterfall(r), "  scheduling 0-4.2 *4.2")
}
