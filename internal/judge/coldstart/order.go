// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"time"

	"github.com/llmfleet/llmfleet/internal/window"
)

// put is a boundary's place in the order: when it was told to be, how far that
// may be off, and when it is taken to be.
type put struct {
	told, at window.Instant
	sigma    time.Duration
}

// inOrder moves boundaries as little as they must be for none to come before one
// that it follows, nor outside of [from, to]: isotonic regression weighted by
// 1/sigma², by pooling adjacent violators (Barlow et al., "Statistical Inference
// under Order Restrictions", 1972); clamping its solution solves the bounded
// problem.
func inOrder(chain []*put, from, to window.Instant) {
	type block struct {
		mean, weight float64 // of the distance to from, in ns
		first        int
	}
	blocks := make([]block, 0, len(chain))
	for i, p := range chain {
		sigma := float64(max(p.sigma, time.Millisecond))
		b := block{mean: float64(p.told.Sub(from)), weight: 1 / (sigma * sigma), first: i}
		for len(blocks) > 0 && blocks[len(blocks)-1].mean > b.mean {
			last := blocks[len(blocks)-1]
			weight := last.weight + b.weight
			b = block{mean: (last.mean*last.weight + b.mean*b.weight) / weight, weight: weight, first: last.first}
			blocks = blocks[:len(blocks)-1]
		}
		blocks = append(blocks, b)
	}
	for i, b := range blocks {
		end := len(chain)
		if i+1 < len(blocks) {
			end = blocks[i+1].first
		}
		pooled := from.Add(time.Duration(b.mean))
		for _, p := range chain[b.first:end] {
			if end-b.first == 1 {
				pooled = p.told // exact where nothing was moved
			}
			p.at = within(pooled, from, to)
		}
	}
}

func within(at, from, to window.Instant) window.Instant { return max(from, min(at, to)) }
