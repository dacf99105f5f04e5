// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/judge/canary"
	"github.com/llmfleet/llmfleet/internal/window"
)

const (
	// replayMinutes is how long the rollout is recorded that is played again, with
	// a page of every replica at every interval.
	replayMinutes  = 30
	replayInterval = 15 * time.Second
	replayLateness = 5 * time.Second
	// shuffles is how many times it is played in another order.
	shuffles = 5
)

// scraped is what one page told.
type scraped struct {
	identity *fleet.Identity
	started  float64
	at       window.Instant
	series   []scrapedSeries
}

// scrapedSeries is one series, a counter if it has no bounds.
type scrapedSeries struct {
	total

	signal fleet.Signal
	reason string // of finished
	bounds []float64
}

// record plays simulated engines, and returns what their pages tell in each round
// of scrapes.
func record(s fleetsim.Scenario) (rounds [][]scraped, err error) {
	sim, err := fleetsim.New(s, time.Unix(0, 0))
	if err != nil {
		return nil, err
	}
	for n := range int(replayMinutes * time.Minute / replayInterval) {
		elapsed := time.Duration(n+1) * replayInterval
		sim.AdvanceTo(elapsed)
		var round []scraped
		for i, e := range sim.Engines() {
			// A scraper spreads its targets over the interval.
			spread := time.Duration(i) * replayInterval / time.Duration(len(sim.Engines()))
			round = append(round, readPage(e, window.Instant(elapsed-spread)))
		}
		rounds = append(rounds, round)
	}
	return rounds, nil
}

func readPage(e *fleetsim.Engine, at window.Instant) scraped {
	now := e.Snapshot()
	page := scraped{identity: podIdentity(e.Name(), e.Revision(), []fleet.Label{{Name: "model_name", Value: e.Fleet()}}), started: e.Started(), at: at}
	for _, s := range canary.Signals() {
		bounds := e.Measured(s).Bounds
		switch {
		case s == fleet.Finished:
			for _, r := range []fleet.ReasonCount{{Reason: "error", Count: uint64(now.Failed)}, {Reason: "stop", Count: uint64(now.Finished)}} {
				page.series = append(page.series, scrapedSeries{total{counts: []uint64{r.Count}}, s, r.Reason, nil})
			}
		case bounds != nil || s == fleet.GenerationTokens || slices.Contains(counters, s):
			page.series = append(page.series, scrapedSeries{totalOf(e, &now, s), s, "", bounds})
		}
	}
	return page
}

// replay plays rounds through a registry and our judgement, the pages of each in
// the order that is drawn, and returns every report as it would be written.
func replay(rounds [][]scraped, order *rand.Rand) (said []byte, failed bool, err error) {
	registry := fleet.NewRegistry(fleet.Options{Grids: []window.Grid{window.NewGrid(pane, pane, replayLateness)}, Lateness: replayLateness, MaxReplicas: 100})
	judge := canary.NewJudge(canary.DefaultOptions(pane))
	ask := fleet.Ask{Signals: canary.Signals(), Reasons: true}
	registry.Open(0)
	var out bytes.Buffer
	for n, round := range rounds {
		round = slices.Clone(round)
		if order != nil {
			order.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		}
		for i := range round {
			if err := round[i].read(registry); err != nil {
				return nil, false, err
			}
		}
		// What was told of the pane's end is in, as it lies within the lateness.
		at := window.Instant(n+1) * window.Instant(replayInterval)
		if at%window.Instant(pane) != window.Instant(replayInterval) || n == 0 {
			continue
		}
		end := at - window.Instant(replayInterval)
		judge.Begin(end)
		registry.Close(end, ask, func(f *fleet.Frame) {
			report, _ := judge.Judge(f, nil)
			failed = failed || report != nil && report.Verdict == canary.Fail
			text, mistake := json.Marshal(report)
			if mistake != nil {
				err = fmt.Errorf("report of %v: %w", end, mistake)
			}
			out.Write(text)
		})
	}
	return out.Bytes(), failed, err
}

// read folds a page into the registry.
func (p *scraped) read(registry *fleet.Registry) error {
	target, err := registry.Acquire(idOf(p.identity.Replica), true)
	if err != nil {
		return err
	}
	defer target.Unlock()
	target.Process(p.started)
	for i := range p.series {
		s := &p.series[i]
		id := idOf(s.signal.String() + "/" + s.reason)
		series := target.Series(id)
		if series == nil {
			if series, err = target.Join(id, p.identity, s.signal, fleet.Spelling{Reason: s.reason}); err != nil {
				return err
			}
		}
		series.Describe(p.identity)
		series.Touch(p.at)
		series.ObserveHistogram(s.bounds, &window.Sample{At: p.at, Counts: s.counts, Sum: s.sum})
	}
	target.Heard(true, p.at)
	return nil
}

func idOf(name string) fleet.ID {
	h := fnv.New64a()
	h.Write([]byte(name))
	return fleet.ID(h.Sum64())
}

// canaryReplay is the line of a rollout that is recorded and played again: 1 if
// every time the same is said to the last byte.
func canaryReplay(seed uint64) (Line, error) {
	line := Line{Name: "canary_replay_identical", Unit: "1", Target: atLeast(1)}
	scenario, err := fleetsim.Builtin("canary")
	if err != nil {
		return line, err
	}
	scenario.Seed = seed
	rounds, err := record(scenario)
	if err != nil {
		return line, err
	}
	first, failed, err := replay(rounds, nil)
	if err != nil {
		return line, err
	}
	same := 0
	for n := range shuffles + 1 {
		var order *rand.Rand
		if n > 0 {
			order = rand.New(rand.NewPCG(seed, uint64(n)))
		}
		again, _, err := replay(rounds, order)
		if err != nil {
			return line, err
		}
		if bytes.Equal(first, again) {
			same++
		}
	}
	line.Value = oneIf(same == shuffles+1 && failed)
	line.Note = fmt.Sprintf("%d of %d replays, %d of them with targets shuffled, say the same %d bytes", same, shuffles+1, shuffles, len(first))
	if !failed {
		line.Note += ", but the canary is not failed"
	}
	return line, nil
}
