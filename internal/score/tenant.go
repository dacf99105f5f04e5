// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package score

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// tenantScale is how much is played.
type tenantScale struct {
	bursts, hours int // runs of each story with a burst, and without
	panes         int // of the ledger's stream
}

var (
	someTenants = tenantScale{bursts: 100, hours: 200, panes: 40}
	manyTenants = tenantScale{bursts: 1000, hours: 2000, panes: 120}
)

// toldStory is a story, how often it is told, and what the card says of it.
type toldStory struct {
	story
	runs    int
	figures []tenantFigure
}

// tenantFigure is what a card says of the runs of a story.
type tenantFigure struct {
	name   string
	target Target
	take   func(runs []*storyOutcome, r tenantRule) (value float64, unit, note string)
	// peers have the figure too.
	peers bool
}

// clientRates is the file of real clients' rates, below the folder of data.
const clientRates = "servegen/reason_deepseek-r1_client_rates.csv.gz"

// Tenants makes the card of the judgement of tenants, and of their ledger.
func Tenants(o Options) (*Card, error) {
	s := someTenants
	if o.Full {
		s = manyTenants
	}
	stories := tenantStories(s)
	if o.Data != "" {
		clients, err := fleetsim.ReadTenants(filepath.Join(o.Data, clientRates))
		if err != nil {
			return nil, err
		}
		stories = append(stories, clientStories(s, clients)...)
	}
	stories = slices.DeleteFunc(stories, func(s toldStory) bool { return !o.Only.MatchString(s.name) })
	var card Card
	var deaf []string
	for i := range stories {
		runs, err := stories[i].play(o.Seed)
		if err != nil {
			return nil, fmt.Errorf("story %s: %w", stories[i].name, err)
		}
		stories[i].write(&card, runs)
		if !slices.ContainsFunc(runs, func(o *storyOutcome) bool { return !math.IsInf(o.delay, 1) }) {
			deaf = append(deaf, stories[i].name)
		}
	}
	if len(stories) > 0 {
		card.Lines = append(card.Lines, controlsLine("tenant", len(stories), deaf))
	}
	if o.Only.MatchString("tenants_ledger") {
		card.Lines = append(card.Lines, ledgerLines(s.panes, o.Seed)...)
	}
	return &card, nil
}

// tenantStories are the stories of tenants by Zipf's law.
func tenantStories(s tenantScale) []toldStory {
	top1 := func(name string, target Target) []tenantFigure {
		return []tenantFigure{{name: "tenant_culprit_top1" + name, target: target, take: culpritTop1, peers: true}}
	}
	alone := append(top1("", atLeast(0.95)),
		tenantFigure{name: "tenant_delay", take: delayMedian},
		tenantFigure{name: "tenant_clear_delay", take: clearMedian},
		tenantFigure{name: "tenant_onset_error", take: onsetError},
		tenantFigure{name: "tenant_excess_error", take: excessError},
		tenantFigure{name: "tenant_bystander_flagged", take: bystanders},
	)
	return []toldStory{
		{story{name: "tenants_burst", burst: true}, s.bursts, alone},
		{story{name: "tenants_burst_in_surge", burst: true, surge: true}, s.bursts, top1("_surge", atLeast(0.95))},
		{story{name: "tenants_small_burst", burst: true, small: true}, s.bursts, top1("_small", Target{})},
		{story{name: "tenants_tokens_late", burst: true, tokensLate: true}, s.bursts, top1("_lag1", atLeast(0.95))},
		{story{name: "tenants_engines_late", burst: true, enginesLate: true}, s.bursts, top1("_engines_late", Target{})},
		{story{name: "tenants_top20", burst: true, apart: 20}, s.bursts, top1("_of_20_named", Target{})},
		{story{name: "tenants_surge", surge: true}, s.hours, []tenantFigure{
			{name: "tenant_false_accusation", target: atMost(0.08), take: accusedInStory, peers: true},
			{name: "tenant_quiet_accusation", take: accusedInQuiet, peers: true},
			{name: "tenant_found_after_surge", take: foundRuns},
		}},
	}
}

// clientStories are those of real clients. As they burst by themselves, an
// accusation is false only if it is not true.
func clientStories(s tenantScale, clients []fleetsim.DrawnTenant) []toldStory {
	return []toldStory{
		{story{name: "tenants_clients", burst: true, clients: clients}, s.bursts, []tenantFigure{
			{name: "tenant_culprit_top1_clients", target: atLeast(0.95), take: culpritTop1, peers: true},
		}},
		{story{name: "tenants_clients_surge", surge: true, clients: clients}, s.hours, []tenantFigure{
			{name: "tenant_false_accusation_clients", target: atMost(0.08), take: untrueInStory, peers: true},
		}},
	}
}

// play plays all runs, as many at a time as there are processors.
func (s *toldStory) play(seed uint64) ([]*storyOutcome, error) {
	var (
		players  sync.WaitGroup
		places   = make(chan struct{}, runtime.GOMAXPROCS(0))
		outcomes = make([]*storyOutcome, s.runs)
		mistakes = make([]error, s.runs)
	)
	for n := range outcomes {
		places <- struct{}{}
		players.Go(func() {
			outcomes[n], mistakes[n] = s.plan(uint64(n), seed).play(seed) //nolint:gosec // no run is below 0
			<-places
		})
	}
	players.Wait()
	return outcomes, errors.Join(mistakes...)
}

// write writes the figures, each first ours and then the peers'.
func (s *toldStory) write(card *Card, runs []*storyOutcome) {
	for _, f := range s.figures {
		for r := range tenantRuleCount {
			if r != judgement && !f.peers {
				continue
			}
			line := Line{Name: f.name, Target: f.target}
			line.Value, line.Unit, line.Note = f.take(runs, r)
			if r != judgement {
				line.Name, line.Peer = fmt.Sprintf("%s/%s", f.name, tenantRuleNames[r]), true
			}
			card.Lines = append(card.Lines, line)
		}
	}
}
