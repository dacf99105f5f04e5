// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenantshareprocessor

import (
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/judge/share"
)

// service is what the engines of a fleet did in one pane.
type service struct {
	replicas           int
	itlSum, itlCount   float64
	running            sum
	prompt, made, hits sum
}

// sum adds up what engines tell; it is known if each of them does.
type sum struct {
	value float64
	told  int
}

func (s *sum) add(value float64, told bool) {
	if told {
		s.value += value
		s.told++
	}
}

// of is the sum over so many replicas; negative if it is not known.
func (s *sum) of(replicas int) float64 {
	if replicas == 0 || s.told < replicas {
		return -1
	}
	return s.value
}

// newService reads the frame of a fleet of engines.
func newService(f *fleet.Frame) service {
	s := service{}
	for _, members := range [][]fleet.MemberFrame{f.Members, f.Departed} {
		for i := range members {
			s.read(&members[i])
		}
	}
	return s
}

// read adds one engine. One that told nothing in the pane was not there.
func (s *service) read(m *fleet.MemberFrame) {
	running := &m.Load[fleet.LoadOf(fleet.Running)]
	there := running.MeanKnown
	for i := range m.Told {
		there = there || m.Told[i].Layout != nil
	}
	if !there {
		return
	}
	s.replicas++
	if itl := &m.Told[atITL]; itl.Layout != nil && itl.SumKnown && !itl.Unreliable {
		s.itlSum += itl.Sum
		s.itlCount += float64(itl.Observations())
	}
	s.running.add(running.Mean, running.MeanKnown)
	s.prompt.count(&m.Told[atPrompt])
	s.made.count(&m.Told[atGeneration])
	s.hits.count(&m.Told[atHits])
}

func (s *sum) count(d *fleet.Distribution) {
	s.add(float64(d.Observations()), d.Layout != nil && !d.Unreliable)
}

// pane puts together what engines and gateways told. What tenants are not asked
// to account for, as their gateway does not tell of it either, is left out of
// the engines' prompts: what is found in a cache, where the gateway tells that
// apart.
func (s *service) pane(a *account) share.Pane {
	p := share.Pane{
		Replicas: s.replicas, ITLSum: s.itlSum, ITLCount: s.itlCount,
		Running: s.running.of(s.replicas), Prompt: s.prompt.of(s.replicas), Generation: s.made.of(s.replicas),
	}
	if a == nil {
		return p
	}
	if a.cached && p.Prompt >= 0 {
		if hits := s.hits.of(s.replicas); hits >= 0 {
			p.Prompt = max(0, p.Prompt-hits)
		} else {
			p.Prompt = -1
		}
	}
	p.Tenants = make([]share.Usage, 0, len(a.tenants))
	for i := range a.tenants {
		u := &a.tenants[i]
		p.Tenants = append(p.Tenants, share.Usage{Name: u.name, Uncached: u.pane.uncached(), Output: u.pane.output})
	}
	return p
}
