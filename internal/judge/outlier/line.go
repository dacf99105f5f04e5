// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"math"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// line is the fleet's inter-token latency over the requests in its batches,
// ITL = a + b·running, by least squares that forget (in practice the relation is
// linear: Agrawal et al., Sarathi-Serve, OSDI 2024). It is learned from replicas
// that are not suspected: who is slow has a larger batch for it, and would tilt
// the line towards itself.
type line struct {
	N, X, Y, XX, XY float64 // decayed sums
}

// lineMemory is the half-life of what the line is learned from, in seconds.
const lineMemory = 3600

// fewestPoints are how many it takes before the line says anything.
const fewestPoints = 6

// learn adds a pane of the fleet.
func (l *line) learn(f *fleet.Frame, suspected func(i int) bool) {
	decay := math.Exp2(-f.Pane.Seconds() / lineMemory)
	l.N, l.X, l.Y, l.XX, l.XY = decay*l.N, decay*l.X, decay*l.Y, decay*l.XX, decay*l.XY
	for i := range f.Members {
		if x, y, known := point(f, &f.Members[i]); known && !suspected(i) {
			l.N++
			l.X += x
			l.Y += y
			l.XX += x * x
			l.XY += x * y
		}
	}
}

// point is a replica's mean batch and mean inter-token latency in seconds.
func point(f *fleet.Frame, m *fleet.MemberFrame) (running, itl float64, known bool) {
	at := f.Index(fleet.ITL)
	if at < 0 {
		return 0, 0, false
	}
	load, d := &m.Load[fleet.LoadOf(fleet.Running)], &m.Told[at]
	n := d.Observations()
	if !load.MeanKnown || m.Warming || d.Layout == nil || d.Unreliable || !d.SumKnown || n == 0 {
		return 0, 0, false
	}
	return load.Mean, d.Sum / float64(n), true
}

// residual is a replica's inter-token latency over what its batch explains; 0 if
// that is not known.
func (l *line) residual(f *fleet.Frame, m *fleet.MemberFrame) float64 {
	x, y, known := point(f, m)
	if !known || l.N < fewestPoints {
		return 0
	}
	var slope float64
	if spread := l.N*l.XX - l.X*l.X; spread > 1e-9*l.N*l.XX {
		slope = max(0, (l.N*l.XY-l.X*l.Y)/spread)
	}
	expected := (l.Y-slope*l.X)/l.N + slope*x
	if !(expected > 0) {
		return 0
	}
	return y / expected
}
