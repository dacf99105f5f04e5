// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// DefaultSeed is the judging seed of the runs that continuous integration makes.
const DefaultSeed = 20260801

// Options of a run.
type Options struct {
	// Full plays a fleet-week instead of a fleet-day.
	Full bool
	// Seed of every random choice.
	Seed uint64
	// Data is a folder of public traces; empty if none are to be played.
	Data string
	// Only the worlds whose name matches are played.
	Only *regexp.Regexp
}

// Judgements makes the card of all judgements.
func Judgements(o Options) (*Card, error) {
	var all Card
	for _, judgement := range []func(Options) (*Card, error){Outliers, Tenants, Canaries, ColdStarts} {
		card, err := judgement(o)
		if err != nil {
			return nil, err
		}
		all.Lines = append(all.Lines, card.Lines...)
	}
	return &all, nil
}

// Outliers makes the card of the outlier alarm.
func Outliers(o Options) (*Card, error) {
	s := aDay
	if o.Full {
		s = aWeek
	}
	worlds := outlierWorlds(s, o.Seed)
	why, err := causes(s.seeds, o.Seed)
	if err != nil {
		return nil, err
	}
	worlds = append(worlds, why)
	if o.Data != "" {
		worlds = append(worlds, traceWorld(o.Data, o.Seed))
	}
	return score(slices.DeleteFunc(worlds, func(w scored) bool { return !o.Only.MatchString(w.worlds[0].name) }))
}

// score plays all worlds, as many at a time as there are processors, and reads
// their figures.
func score(all []scored) (*Card, error) {
	var (
		players  sync.WaitGroup
		places   = make(chan struct{}, runtime.GOMAXPROCS(0))
		outcomes = make([][]*outcome, len(all))
		mistakes = make([][]error, len(all))
	)
	for i, s := range all {
		outcomes[i], mistakes[i] = make([]*outcome, len(s.worlds)), make([]error, len(s.worlds))
		for k, w := range s.worlds {
			places <- struct{}{}
			players.Go(func() {
				outcomes[i][k], mistakes[i][k] = w.run()
				<-places
			})
		}
	}
	players.Wait()
	var card Card
	for i, s := range all {
		if err := errors.Join(mistakes[i]...); err != nil {
			return nil, err
		}
		card.add(&s, outcomes[i])
	}
	if len(all) > 0 {
		card.Lines = append(card.Lines, controls(all, outcomes))
	}
	return &card, nil
}

// controls tells in which share of the worlds something that is wrong was found:
// where nothing was, that there were no false alarms says nothing.
func controls(all []scored, outcomes [][]*outcome) Line {
	var deaf []string
	worlds := 0
	for i, s := range all {
		for k, o := range outcomes[i] {
			worlds++
			if found(o.delays[ours]) == 0 {
				deaf = append(deaf, s.worlds[k].name)
			}
		}
	}
	return controlsLine("outlier", worlds, deaf)
}

// controlsLine is the figure of so many worlds, in some of which nothing was
// found.
func controlsLine(judgement string, worlds int, deaf []string) Line {
	line := Line{Name: judgement + "_controls_found", Value: float64(worlds-len(deaf)) / float64(worlds), Unit: "1", Target: atLeast(1)}
	line.Note = fmt.Sprintf("in %d worlds", worlds)
	if len(deaf) > 0 {
		line.Note = "not in " + strings.Join(deaf, ", ")
	}
	return line
}

// add writes the figures of one entry, each first ours and then the peers'.
func (c *Card) add(s *scored, outcomes []*outcome) {
	var all outcome
	for _, o := range outcomes {
		all.add(o)
	}
	for _, f := range s.figures {
		for r := range ruleCount {
			if f.oursOnly && r != ours {
				continue
			}
			line := Line{Name: f.name, Target: f.target}
			line.Value, line.Unit, line.Note = f.take(&all, r)
			if r != ours {
				line.Name, line.Peer = fmt.Sprintf("%s/%s", f.name, ruleNames[r]), true
			}
			c.Lines = append(c.Lines, line)
		}
	}
}
