// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import "github.com/llmfleet/llmfleet/internal/stats"

// Blocks are how many panes are looked at together to see how much more the
// counts of replicas vary than those of independent observations would: requests
// share batches, and a slow minute is followed by another. The first blocks are
// short, so that there is an estimate at all.
const (
	blockPanes      = 10
	firstBlockPanes = 2
	// dispersionDecay is what remains of a block's weight after the next.
	dispersionDecay = 0.98
	// mostScatter is how many times the usual square counts, that of three standard
	// deviations: more is no scatter, but a replica to be found, and in a small
	// fleet all others with it.
	mostScatter = 9
	// trusted is how many blocks it is worth that errors have never come in clumps.
	trusted = 30
)

// dispersion is how much more counts above each boundary vary, over all replicas
// of a fleet: the mean of squared standardised deviations of whole blocks, over
// time, so that a small fleet has it too.
type dispersion struct {
	Squares, Blocks [boundaries]float64 // decayed
	Factor          [boundaries]float64 // 1 or more; 0: not known yet
}

// learn adds the blocks of one boundary, which were so many panes long, of a
// fleet of several replicas. It reorders squares.
func (d *dispersion) learn(j int, squares []float64, panes int) {
	replicas := float64(len(squares))
	if replicas < 2 {
		return
	}
	if d.Factor[j] > 0 {
		for i, square := range squares {
			squares[i] = min(square, mostScatter*d.Factor[j])
		}
	}
	sum, n := stats.TrimmedSquares(squares)
	weight := float64(panes) / blockPanes
	d.Squares[j] = dispersionDecay*d.Squares[j] + weight*sum
	d.Blocks[j] = dispersionDecay*d.Blocks[j] + weight*float64(n)
	// Deviations are from a share that each replica is a part of: they add up to
	// nothing, and are a little too small.
	d.Factor[j] = max(1, d.Squares[j]/d.Blocks[j]*replicas/(replicas-1))
}

// trust takes counts at boundary j for independent until they show otherwise.
func (d *dispersion) trust(j int) {
	if d.Factor[j] == 0 {
		d.Squares[j], d.Blocks[j], d.Factor[j] = trusted, trusted, 1
	}
}

// move forgets what was learned at boundary j, which is another now.
func (d *dispersion) move(j int) { d.Squares[j], d.Blocks[j], d.Factor[j] = 0, 0, 0 }
