// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"slices"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// StuckSignals are what a replica's progress is seen from; a frame that tells
// none of them tells only of replicas that are silent.
var StuckSignals = []fleet.Signal{fleet.GenerationTokens, fleet.ITL}

// stuckPanes is for how many panes a replica has to have work, and to make no
// token.
const stuckPanes = 2

// stuck tells whether a replica hangs: it is reached and its engine says nothing,
// or requests wait or run, and no token comes. A long answer is no hang, and
// neither is an empty queue; a prompt that takes panes to compute before its first
// token looks like one. Two panes are evidence enough for a replica that is young.
// Of a prefill replica the tokens are made elsewhere, and a fleet that has never
// made one, as of embeddings, does not.
func stuck(f *fleet.Frame, m *fleet.MemberFrame, makesTokens bool) Figure {
	switch {
	case m.Silent:
		return Figure{Value: 1}
	case !slices.ContainsFunc(StuckSignals, func(s fleet.Signal) bool { return f.Index(s) >= 0 }):
		return withheld(NotAsked)
	case m.Unreachable, slices.Contains(f.Fleet.Keys, prefill):
		return withheld(NotReported)
	}
	stalled, why := standstill(f, m)
	busy, known := busyness(m)
	switch {
	case why != Given:
		return withheld(why)
	case !makesTokens:
		return withheld(NotReported)
	case !m.Realtime:
		return withheld(TokensAtEnd)
	case stalled < stuckPanes:
		return Figure{}
	case !known:
		return withheld(NotReported)
	case busy < stuckPanes:
		return Figure{}
	}
	return Figure{Value: 1}
}

// makesTokens tells whether any replica of the fleet has ever made a token.
func makesTokens(f *fleet.Frame) bool {
	for _, s := range StuckSignals {
		made := func(m fleet.MemberFrame) bool {
			d, reason := find(f, m.Told, s)
			return reason == Given && d.Ever
		}
		if slices.ContainsFunc(f.Members, made) {
			return true
		}
	}
	return false
}

// prefill is the key of a fleet that computes prompts and leaves the tokens to
// another.
var prefill = fleet.Label{Name: fleet.Role.String(), Value: "prefill"}

// standstill is for how many panes no token came, whatever tells of them.
func standstill(f *fleet.Frame, m *fleet.MemberFrame) (panes int, why Reason) {
	why = NotReported
	for _, s := range StuckSignals {
		d, reason := find(f, m.Told, s)
		switch {
		case reason == Given && why == Given:
			panes = min(panes, d.Stalled)
		case reason == Given:
			panes, why = d.Stalled, Given
		case why != Given:
			why = max(why, reason) // Unreliable, if any is
		}
	}
	return panes, why
}

// busyness is for how many panes requests waited, or ran.
func busyness(m *fleet.MemberFrame) (panes int, known bool) {
	for _, s := range []fleet.Signal{fleet.Waiting, fleet.Running} {
		l := &m.Load[fleet.LoadOf(s)]
		panes, known = max(panes, l.Busy), known || l.MeanKnown
	}
	return panes, known
}
