// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"math/rand/v2"
	"sort"
)

// roster draws who sends each request of a fleet.
type roster struct {
	Tenants
	random  *rand.Rand
	upTo    []float64 // share of the requests of all tenants up to each
	prompts map[int]*ownPrompt
	limits  map[int]*rateLimit
}

// ownPrompt draws the prompts of a tenant who has a distribution of its own.
type ownPrompt struct {
	tokens Tokens
	draw   variate
	random *rand.Rand
}

func newRoster(f *Fleet, seed uint64) *roster {
	r := &roster{Tenants: f.Tenants, random: stream(seed, f.Name, "tenant"), prompts: map[int]*ownPrompt{}, limits: map[int]*rateLimit{}}
	sum := 0.0
	for _, share := range r.shares() {
		sum += share
		r.upTo = append(r.upTo, sum)
	}
	if r.Count > 0 {
		r.upTo[len(r.upTo)-1] = 1 // whatever rounding left
	}
	for i := range r.Named {
		t := &r.Named[i]
		if t.hasPrompt() {
			r.prompts[i+1] = &ownPrompt{
				tokens: t.Prompt,
				draw:   newVariate(t.Prompt.Distribution, *t.Prompt.CV),
				random: stream(seed, f.Name, "prompt of "+t.Name),
			}
		}
		if t.RateLimit > 0 {
			r.limits[i+1] = &rateLimit{gap: 1 / t.RateLimit}
		}
	}
	return r
}

// clients makes the roster that of a trace which says who sends: each client
// with the number of its requests.
func (r *roster) clients(names []string, arrivals []arrival) {
	r.Named = make([]Tenant, len(names))
	for i, name := range names {
		r.Named[i].Name = clientPrefix + name
	}
	for i := range arrivals {
		r.Named[arrivals[i].tenant-1].Share += 1 / float64(len(arrivals))
	}
}

// turnsAway tells whether the gateway refuses a request because its tenant
// sends too many.
func (r *roster) turnsAway(a arrival) bool {
	limit := r.limits[a.tenant]
	return limit != nil && !limit.allows(a.at)
}

// assigned is a source whose requests a roster gives to tenants.
type assigned struct {
	source arrivalSource
	roster *roster
}

func (s *assigned) next() (arrival, bool) {
	a, more := s.source.next()
	u := s.roster.random.Float64()
	if i := sort.Search(len(s.roster.upTo), func(i int) bool { return u < s.roster.upTo[i] }); i < len(s.roster.upTo) {
		a.tenant = i + 1
	}
	if own := s.roster.prompts[a.tenant]; own != nil {
		a.prompt = tokens(&own.tokens, own.draw.draw(own.random))
	}
	return a, more
}

// rateLimit lets requests through at a steady pace, and up to one second's at
// once: the generic cell rate algorithm of ITU-T I.371.
type rateLimit struct {
	gap float64 // seconds from one request to the next
	due float64 // when the next one is due
}

func (l *rateLimit) allows(at float64) bool {
	const burst = 1 // seconds
	if due := max(l.due, at); due-at <= max(burst-l.gap, 0) {
		l.due = due + l.gap
		return true
	}
	return false
}
