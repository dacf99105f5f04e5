// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// echoSpread is within how many seconds after a request its repetitions come:
// what is added to Poisson arrivals so is close to Poisson itself.
const echoSpread = 10

// everyone stands for the number of a tenant.
const everyone = -1

// surge is a surge fault of one fleet.
type surge struct {
	from, to       float64 // seconds; +Inf when it stays
	tenant         int
	factor, prompt float64 // how many times as many requests, and as long
	random         *rand.Rand
}

func (s *surge) strikes(a arrival) bool {
	return a.at >= s.from && a.at < s.to && (s.tenant == everyone || s.tenant == a.tenant)
}

// surging is a source to which surges add.
type surging struct {
	source arrivalSource
	surges []surge
	head   arrival // the source's next
	more   bool    // whether there is one
	queue  []arrival
}

// newSurging adds the surges of a fleet to its arrivals.
func newSurging(f *Fleet, source arrivalSource, r *roster, faults []Fault, seed uint64) (arrivalSource, error) {
	s := &surging{source: source}
	for i := range faults {
		fault := &faults[i]
		if fault.Kind != TrafficSurge || fault.Fleet != f.Name {
			continue
		}
		one := surge{
			from: fault.From.Seconds(), to: math.Inf(1), tenant: everyone,
			factor: fault.Factor, prompt: fault.PromptFactor, random: stream(seed, f.Name, fmt.Sprintf("surge %d", i)),
		}
		if fault.To != 0 {
			one.to = fault.To.Seconds()
		}
		if fault.Tenant != "" {
			if one.tenant = r.number(fault.Tenant); one.tenant == 0 {
				return nil, fmt.Errorf("faults[%d].tenant: is %q, who sends nothing", i, fault.Tenant)
			}
		}
		s.surges = append(s.surges, one)
	}
	if len(s.surges) == 0 {
		return source, nil
	}
	s.head, s.more = source.next()
	return s, nil
}

func (s *surging) next() (arrival, bool) {
	for s.more && (len(s.queue) == 0 || s.head.at <= s.queue[0].at) {
		s.take(s.head)
		s.head, s.more = s.source.next()
	}
	if len(s.queue) == 0 {
		return arrival{}, false
	}
	first := s.queue[0]
	s.queue = s.queue[1:]
	return first, true
}

// take queues a request of the source as often as the surges say, the first time
// when it comes.
func (s *surging) take(a arrival) {
	times, repeated := 1, (*rand.Rand)(nil)
	for i := range s.surges {
		if one := &s.surges[i]; one.strikes(a) {
			times *= int(one.factor + one.random.Float64())
			a.prompt = scaled(a.prompt, one.prompt)
			repeated = one.random
		}
	}
	for i := range times {
		echo := a
		if i > 0 {
			echo.at += echoSpread * repeated.Float64()
		}
		s.push(echo)
	}
}

func (s *surging) push(a arrival) {
	i, _ := slices.BinarySearchFunc(s.queue, a, func(queued, a arrival) int {
		if queued.at <= a.at {
			return -1
		}
		return 1
	})
	s.queue = slices.Insert(s.queue, i, a)
}

// tenantShares are a tenant's shares of the prompt tokens of a fleet, as far as
// lengths have the means that the scenario says, before a surge of it and
// during it.
func tenantShares(f *Fleet, r *roster, fault *Fault) (before, during float64) {
	n := r.number(fault.Tenant)
	total, own := 1.0, 0.0 // in the fleet's mean prompts; who is nobody sends those
	for i, share := range r.shares() {
		length := 1.0
		if i < len(r.Named) && r.Named[i].hasPrompt() {
			length = r.Named[i].Prompt.Mean / f.Prompt.Mean
		}
		total += share * (length - 1)
		if i == n-1 {
			own = share * length
		}
	}
	grown := own * fault.Factor * fault.PromptFactor
	return own / total, grown / (total - own + grown)
}
