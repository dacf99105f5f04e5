// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import "github.com/llmfleet/llmfleet/internal/fleet"

// observedAs are the distributions that can be asked for by their signal.
var observedAs = map[fleet.Signal]sample{
	fleet.TTFT: ttft, fleet.ITL: itl, fleet.E2E: e2e, fleet.PromptLength: promptLength, fleet.OutputLength: generatedLength,
}

// Bounds are the bucket bounds in which the page of an engine's current version
// shows a signal; nil if it does not.
func Bounds(engine EngineKind, signal fleet.Signal) []float64 {
	of, known := observedAs[signal]
	if d := dialectOf(engine, Current); d != nil && known {
		for _, f := range d.families {
			if f.kind == histogramKind && f.series[0].sample == of {
				return f.bounds
			}
		}
	}
	return nil
}

// Measured copies what an engine has observed of a signal since its process
// started, with the bounds of its page; empty for a signal that is not measured.
func (e *Engine) Measured(signal fleet.Signal) Histogram {
	of, known := observedAs[signal]
	if !known {
		return Histogram{}
	}
	return e.sim.samples[of].snapshot()
}

// Started is when the engine's process began, in Unix seconds.
func (e *Engine) Started() float64 { return e.sim.epoch + e.sim.started }

// Revision is that of the model which the engine serves; empty if the scenario
// does not say.
func (e *Engine) Revision() string { return e.sim.revision() }

// AnswerKey is what the scenario injects, by time.
func (s *Simulation) AnswerKey() []KeyFault { return s.keyFaults() }
