// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"iter"
	"slices"

	"github.com/llmfleet/llmfleet/internal/window"
)

// Pool is the observations of several replicas together, on the bounds that they
// have in common. The zero Pool is ready to gather, and may gather again.
type Pool struct {
	Layout *window.Layout
	Counts []uint64
	// excluded are layouts without a bound that most observations are told on.
	excluded []*window.Layout
	shares   []share
}

// share is how much is told on one layout.
type share struct {
	layout       *window.Layout
	observations uint64
}

var noBounds = new(window.Layout)

// Gather pools what is told, on the bounds that most observations are told on:
// who has none of them is left out.
func (p *Pool) Gather(f *Frame, told iter.Seq[*Distribution]) {
	p.weigh(told)
	p.Layout, p.excluded = noBounds, p.excluded[:0]
	for i, share := range p.shares {
		if i == 0 {
			p.Layout = share.layout
		} else if common := f.Common(p.Layout, share.layout); common.Bucketed() {
			p.Layout = common
		} else {
			p.excluded = append(p.excluded, share.layout)
		}
	}
	p.Counts = zeros(p.Counts, p.Layout.Width())
	for d := range told {
		if !p.Excludes(d.Layout) {
			p.Layout.Regroup(p.Counts, d.Layout, d.Counts)
		}
	}
}

// weigh counts what is told on each layout, the most first.
func (p *Pool) weigh(told iter.Seq[*Distribution]) {
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

// Excludes tells whether what is told on a layout is left out.
func (p *Pool) Excludes(l *window.Layout) bool { return slices.Contains(p.excluded, l) }

// Regroup is one distribution on the pool's layout; dst is used again.
func (p *Pool) Regroup(dst []uint64, d *Distribution) []uint64 {
	dst = zeros(dst, p.Layout.Width())
	p.Layout.Regroup(dst, d.Layout, d.Counts)
	return dst
}

// zeros is a slice of n zeros; s is used again if it is long enough.
func zeros(s []uint64, n int) []uint64 {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}
