// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package share

import (
	"slices"
	"time"

	"github.com/llmfleet/llmfleet/internal/window"
)

// memory is what is remembered of the fleet.
type memory struct {
	Last  window.Instant // end of the latest pane that told something
	Panes int
	Fits  [len(lags)]fit
	Past  [reach + 1]observation // the newest first
	// ITL is the usual one; it is held since Held.
	ITL  usual
	Held window.Instant
	// Decayed sums of tokens, as tenants' and as engines'; of the panes in which
	// the latter are told.
	Uncached, Prompt   float64
	Output, Generation float64
	Total              float64 // uncached, of all panes
}

// doubts tells whether a pane is too far from what is usual to be learned from.
// What goes on so for long is a gap, and then everything begins anew.
func (m *memory) doubts(volume, itl, total float64) bool {
	f := &m.Fits[slices.Index(lags[:], 0)]
	return m.Panes >= warmup && f.Weight > 0 && (total > incredible*f.Prompt*volume || itl > incredible*f.ITL)
}

// accounted is the least share of the engines' tokens that the tenants' make up.
const accounted = 0.8

// reckon adds up tokens by who tells of them.
func (m *memory) reckon(p *Pane, total float64) {
	m.Total += total
	if p.Prompt >= 0 {
		m.Uncached += total
		m.Prompt += p.Prompt
	}
	if p.Generation >= 0 {
		for i := range p.Tenants {
			m.Output += p.Tenants[i].Output
		}
		m.Generation += p.Generation
	}
}

// accounts tells whether the tenants make up for what the engines did: by the
// tokens made, or by the prompts. Either will do, as prompts found in a cache are
// the engines' and not the tenants', and not all gateways tell of output.
func (m *memory) accounts() bool {
	told := m.Prompt > 0 || m.Generation > 0
	return !told || m.Prompt > 0 && m.Uncached >= accounted*m.Prompt || m.Generation > 0 && m.Output >= accounted*m.Generation
}

// fit adds the newest pane to the fits of all lags over which panes are known.
func (m *memory) fit(pane time.Duration) (d [len(lags)]deviation) {
	now := &m.Past[0]
	for i, lag := range lags {
		engines, tokens := now, now
		if lag > 0 {
			tokens = &m.Past[lag]
		} else {
			engines = &m.Past[-lag]
		}
		apart := engines.End.Sub(tokens.End)
		if apart == time.Duration(lag)*pane {
			d[i] = m.Fits[i].add(engines.Running, tokens.Prompt, engines.ITL)
		}
	}
	return d
}

// settle takes the pane's latency as usual, unless a tenant is in the way: then
// only after long, or if what that tenant does is usual now.
func (m *memory) settle(held, adopted bool, decay float64, o *Options) {
	itl := m.Past[0].ITL
	if !held {
		m.Held = 0
		m.ITL.learn(itl, 1, decay)
		return
	}
	if m.Held == 0 {
		m.Held = m.Last
	}
	m.ITL.hold(itl, 1)
	if adopted || m.Last.Sub(m.Held) > becomesUsual*o.HalfLife {
		m.ITL.adopt()
		m.Held = 0
	}
}
