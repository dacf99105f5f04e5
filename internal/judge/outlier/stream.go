// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"math"

	"github.com/llmfleet/llmfleet/internal/stats"
	"github.com/llmfleet/llmfleet/internal/window"
)

// stream is what the alarm remembers of one signal of one replica. It is plain
// numbers, so that it can be stored as it is.
type stream struct {
	// Change finds that a replica became slower than it was, Level that it is
	// slower than tolerated, if it always was.
	Change, Level [boundaries]stats.Detector
	// Excess and Weight are decayed sums of what lay above the boundaries beyond
	// the fleet's share, and of all observations: together the replica's own
	// offset from the fleet.
	Excess, Weight [boundaries]float32
	// Block and BlockWeight are the same of the current block, which ends every
	// blockPanes.
	Block, BlockWeight [boundaries]float32
	Variance           [boundaries]float32 // of Block, of independent observations
	// LogRatio is the log of the replica's median latency over the fleet's,
	// decayed, and RatioWeight how much that stands on.
	LogRatio, RatioWeight float32
	// Raised is when the stream last raised the alarm, or since then was last too
	// slow to be clear; zero while it is clear.
	Raised window.Instant
	// Found is the evidence that it was last raised on.
	Found float32
	// Learning is for how many panes the change detector rests, because what is
	// usual for the replica is learned anew.
	Learning int32
}

const (
	// offsetMemory is the half-life of what a replica's offset is learned from,
	// in seconds.
	offsetMemory = 6 * 3600
	// offsetPrior is how many observations without an offset stand against it.
	offsetPrior = 500
	// suspicious is a detector that no offset is learned under: what it has found
	// would pass for the replica's nature.
	suspicious = 1e3
)

// update adds one pane: n observations of which so many lie above the
// boundaries. What says nothing is no step of a detector, which would grow by it.
// The change detector is held while the replica's offset is not yet known.
func (s *stream) update(p *split, above *[boundaries]float64, n float64, dispersion *[boundaries]float64, offsetKnown bool) {
	if n == 0 {
		return
	}
	rests := !offsetKnown || s.Learning > 0
	s.Learning = max(0, s.Learning-1)
	for j := range p.used {
		share := p.share[j]
		s.Block[j] += float32(above[j] - n*share)
		s.BlockWeight[j] += float32(n)
		s.Variance[j] += float32(n * share * (1 - share))
		if p.mute[j] || dispersion[j] == 0 { // a detector that takes an unknown dispersion for 1 would be deceived
			continue
		}
		s.Level[j].Update(&p.level[j], above[j], n, dispersion[j])
		if rests || p.fresh[j] {
			continue
		}
		null := p.change[j]
		if offset := s.offset(j); offset > 0 {
			null = stats.NullOf(min(p.allowed[j]+offset, 1))
		}
		s.Change[j].Update(&null, above[j], n, dispersion[j])
	}
}

// offset is how much more of the replica's observations usually lie above a
// boundary than of the fleet's.
func (s *stream) offset(j int) float64 {
	return float64(s.Excess[j]) / (float64(s.Weight[j]) + offsetPrior)
}

// move forgets what was found and learned at boundary j, which is another now.
func (s *stream) move(j int) {
	s.Change[j], s.Level[j] = stats.Detector{}, stats.Detector{}
	s.Excess[j], s.Weight[j], s.Block[j], s.BlockWeight[j], s.Variance[j] = 0, 0, 0, 0, 0
}

// scatter is the square of a block's deviation from what the replica did before,
// over its variance; ok is false if either says too little. What a replica always
// does is its nature, and no scatter.
func (s *stream) scatter(j int) (square float64, ok bool) {
	block, weight, before := float64(s.Block[j]), float64(s.BlockWeight[j]), float64(s.Weight[j])
	if s.Variance[j] < 1 || before < weight/2 {
		return 0, false
	}
	deviation := block - weight*float64(s.Excess[j])/before
	return deviation * deviation / (float64(s.Variance[j]) * (1 + weight/before)), true // what was before varies, too
}

// endBlock learns the offset from the block, and begins another.
func (s *stream) endBlock(used int, decay float32) {
	if s.Raised == 0 && mean(&s.Change, used) <= suspicious {
		for j := range s.Excess {
			s.Excess[j] = decay*s.Excess[j] + s.Block[j]
			s.Weight[j] = decay*s.Weight[j] + s.BlockWeight[j]
		}
	}
	s.Block, s.BlockWeight, s.Variance = [boundaries]float32{}, [boundaries]float32{}, [boundaries]float32{}
}

// learnRatio keeps the persistent log ratio of the replica.
func (s *stream) learnRatio(ratio float64, decay float32) {
	if !(ratio > 0) || math.IsInf(ratio, 1) {
		return
	}
	s.LogRatio = decay*s.LogRatio + float32(math.Log(ratio))
	s.RatioWeight = decay*s.RatioWeight + 1
}

// strongest is the mean of the stronger of both detectors, over the boundaries
// that are in use.
func (s *stream) strongest(used int) float64 {
	return max(mean(&s.Change, used), mean(&s.Level, used))
}

func mean(d *[boundaries]stats.Detector, used int) float64 {
	var sum float64
	for j := range used {
		sum += d[j].Sum()
	}
	return sum / float64(used*len(stats.Effects))
}

// relearn takes what the replica is now for usual: it has been found to be
// tolerable.
func (s *stream) relearn() {
	s.restart()
	s.Excess, s.Weight = [boundaries]float32{}, [boundaries]float32{}
	s.Learning = freshPanes
}

// restart forgets the evidence, and nothing else.
func (s *stream) restart() {
	s.Change, s.Level = [boundaries]stats.Detector{}, [boundaries]stats.Detector{}
}
