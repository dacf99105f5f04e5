// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package share

import "math"

// effect is what a surplus does to the fleet's latency.
type effect struct {
	fit    *fit
	line   line
	at     int      // which of lags
	reason Withheld // Given: the line is known
	usual  float64  // ITL
	rise   float64  // of ITL over the usual
	gain   float64  // what slower tokens make of slower tokens
}

// certain is how many standard errors the slope has to be above zero. It is the
// best of several lags, and so it takes more than the usual two.
const certain = 3

// mostOfBatch bounds the share of the latency that is put down to the batch.
const mostOfBatch = 2.0 / 3

// effect chooses the lag at which the prompt tokens explain most of what running
// does not, and that makes latency longer: where the slope is most certain. (With
// b the same at all lags this would be the one with the least residual.)
func (j *Judge) effect() effect {
	m := &j.memory
	e := effect{line: line{certainty: math.Inf(-1)}}
	for i := range m.Fits {
		if l := m.Fits[i].solve(); l.certainty > e.line.certainty {
			e.line, e.fit, e.at = l, &m.Fits[i], i
		}
	}
	now := &m.Past[max(0, -lags[e.at])]
	e.usual = m.ITL.mean(now.ITL)
	e.rise = now.ITL - e.usual
	e.gain = 1 / (1 - min(mostOfBatch, e.line.batch*max(0, now.Running)/now.ITL))
	switch {
	case m.Panes < warmup:
		e.reason = Warming
	case !m.accounts():
		e.reason = Unaccounted
	case e.line.certainty < certain:
		e.reason = Unidentifiable
	}
	return e
}

// excess is by how much a surplus makes the latency longer than usual. Slower
// tokens keep requests in the batch for longer, which makes it larger and tokens
// slower still: that is the gain. It is believed as far as the latency did rise.
func (e *effect) excess(surplus float64) float64 {
	if e.line.slope <= 0 || e.usual <= 0 {
		return 0
	}
	direct := e.line.slope * surplus
	return max(direct, min(direct*e.gain, e.rise)) / e.usual
}

// felt is an excess over what the latency would be without it, where that is more
// than usual: beside a surge of all, what one adds to the usual is little.
func (e *effect) felt(excess float64) float64 {
	return excess / max(1, 1+e.rise/e.usual-excess)
}
