// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"slices"
	"sync"
)

// Layout is the bucket bounds of explicit histograms: ascending finite upper
// bounds, shared by all series that have them, so that equal layouts are equal
// pointers. A layout without bounds is that of a histogram that tells only
// count and sum.
type Layout struct {
	bounds []float64
}

// Bounds are the finite upper bounds; the caller must not change them.
func (l *Layout) Bounds() []float64 { return l.bounds }

// Width is the number of buckets, the last, unbounded one included.
func (l *Layout) Width() int { return len(l.bounds) + 1 }

// Bucketed tells whether there are buckets at all, and not just a count.
func (l *Layout) Bucketed() bool { return len(l.bounds) > 0 }

// Equal tells whether these are the layout's bounds.
func (l *Layout) Equal(bounds []float64) bool { return slices.Equal(l.bounds, bounds) }

// Regroup adds counts, one a bucket of the layout from, to dst, one a bucket of
// l. The bounds of l are among those of from.
func (l *Layout) Regroup(dst []uint64, from *Layout, counts []uint64) {
	i := 0
	for j, c := range counts {
		if i < len(l.bounds) && (j == len(from.bounds) || from.bounds[j] > l.bounds[i]) {
			i++
		}
		dst[i] += c
	}
}

// maxLayouts bounds how many layouts are shared; series past it get their own.
const maxLayouts = 1024

// Layouts shares equal layouts. It is safe for concurrent use.
type Layouts struct {
	mu     sync.Mutex
	shared []*Layout
	common map[[2]*Layout]*Layout
}

// Intern returns the shared layout of these bounds, which it copies if it keeps
// them.
func (ls *Layouts) Intern(bounds []float64) *Layout {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.intern(bounds)
}

func (ls *Layouts) intern(bounds []float64) *Layout {
	for _, l := range ls.shared {
		if l.Equal(bounds) {
			return l
		}
	}
	l := &Layout{bounds: slices.Clone(bounds)}
	if len(ls.shared) < maxLayouts {
		ls.shared = append(ls.shared, l)
	}
	return l
}

// Common is the layout of the bounds that a and b share: the only ones at which
// their counts may be added.
func (ls *Layouts) Common(a, b *Layout) *Layout {
	if a == b {
		return a
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l, ok := ls.common[[2]*Layout{a, b}]; ok {
		return l
	}
	both := make([]float64, 0, min(len(a.bounds), len(b.bounds)))
	for _, bound := range a.bounds {
		if _, ok := slices.BinarySearch(b.bounds, bound); ok {
			both = append(both, bound)
		}
	}
	l := ls.intern(both)
	if ls.common == nil {
		ls.common = make(map[[2]*Layout]*Layout)
	}
	if len(ls.common) < maxLayouts {
		ls.common[[2]*Layout{a, b}] = l
	}
	return l
}
