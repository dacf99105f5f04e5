// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"cmp"
	"iter"
	"slices"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// pool is what the whole fleet observed of one signal, on the buckets that its
// replicas share. Replicas that share none with the others are not in it.
type pool struct {
	layout   *window.Layout
	counts   []uint64
	excluded []*window.Layout
	shares   []share
}

// share is how many observations were made with one layout.
type share struct {
	layout       *window.Layout
	observations uint64
}

// noBounds is the layout of a fleet that observed nothing.
var noBounds = new(window.Layout)

// gather adds up what all replicas told of one signal, the departed ones too. Of
// layouts without a common bound, the one with more observations stays.
func (p *pool) gather(f *fleet.Frame, told iter.Seq[*fleet.Distribution]) {
	p.weigh(told)
	p.layout, p.excluded = noBounds, p.excluded[:0]
	for i, share := range p.shares {
		if i == 0 {
			p.layout = share.layout
		} else if common := f.Common(p.layout, share.layout); common.Bucketed() {
			p.layout = common
		} else {
			p.excluded = append(p.excluded, share.layout)
		}
	}
	p.counts = zeros(p.counts, p.layout.Width())
	for d := range told {
		if !p.excludes(d.Layout) {
			p.layout.Regroup(p.counts, d.Layout, d.Counts)
		}
	}
}

// weigh finds the layouts in use, those with the most observations first. Most
// often there is one, and nothing to count.
func (p *pool) weigh(told iter.Seq[*fleet.Distribution]) {
	p.shares = p.shares[:0]
	of := func(l *window.Layout) int {
		return slices.IndexFunc(p.shares, func(x share) bool { return x.layout == l })
	}
	for d := range told {
		if of(d.Layout) < 0 {
			p.shares = append(p.shares, share{layout: d.Layout})
		}
	}
	if len(p.shares) < 2 {
		return
	}
	for d := range told {
		p.shares[of(d.Layout)].observations += d.Observations()
	}
	slices.SortFunc(p.shares, func(a, b share) int {
		return cmp.Or(cmp.Compare(b.observations, a.observations), a.layout.Compare(b.layout))
	})
}

// excludes tells whether the layout shares no bound with the pool.
func (p *pool) excludes(l *window.Layout) bool { return slices.Contains(p.excluded, l) }

// regroup is one distribution on the pool's bounds.
func (p *pool) regroup(dst []uint64, d *fleet.Distribution) []uint64 {
	dst = zeros(dst, p.layout.Width())
	p.layout.Regroup(dst, d.Layout, d.Counts)
	return dst
}

// quantile is the fleet's own.
func (p *pool) quantile(q float64, enough uint64) quantile {
	return quantileOf(q, p.layout, p.counts, enough)
}
