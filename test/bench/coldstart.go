// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
	"github.com/llmfleet/llmfleet/internal/judge/coldstart"
	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

const (
	startingPods    = 5000
	coldStartRounds = 5
	coldStartTick   = 10 * time.Second
)

// coldStartOptions let in what is told a minute late.
var coldStartOptions = coldstart.Options{
	MaxPods: 20_000, TTL: 2 * time.Hour, Grace: 2 * time.Minute, MaxAge: 2 * time.Hour,
}

// startingFact is a fact and when it is delivered.
type startingFact struct {
	at   window.Instant
	fact *lifecycle.Fact
}

// tellColdStarts are the facts of a world in which little can be relied on, and how
// many pods and starts they are of.
func tellColdStarts() (facts []startingFact, pods, starts int, err error) {
	err = fleetsim.HardColdStarts("bench", startingPods).Play(seed,
		func(s *fleetsim.ColdStart) { starts++; pods += len(s.Pods) },
		func(at window.Instant, f *lifecycle.Fact) { facts = append(facts, startingFact{at, f}) })
	return facts, pods, starts, err
}

// coldStartPods measures how many pods a second one core accounts for: from their
// facts to the reports on their starts.
func coldStartPods(context.Context) (perSecond float64, err error) {
	facts, pods, starts, err := tellColdStarts()
	if err != nil {
		return 0, err
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var rates []float64
	for range coldStartRounds {
		runtime.GC()
		began := processorTime()
		told := accountFor(facts)
		rates = append(rates, float64(pods)/(processorTime()-began).Seconds())
		if told < starts*99/100 {
			return 0, fmt.Errorf("told %d starts of %d", told, starts)
		}
	}
	return median(rates), nil
}

// accountFor gives facts to a book that is closed at every tick, and on until its
// last start is over; it returns how many starts were told.
func accountFor(facts []startingFact) (told int) {
	book := coldstart.New(coldStartOptions)
	tick := facts[0].at
	until := func(now window.Instant) {
		for ; tick <= now; tick = tick.Add(coldStartTick) {
			told += len(book.Close(tick).Starts)
		}
	}
	for _, f := range facts {
		until(f.at)
		book.Note(f.fact, f.at)
	}
	until(tick.Add(coldStartOptions.Grace))
	told += len(book.Close(tick.Add(coldStartOptions.TTL)).Starts)
	return told
}
