// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// Layout is the buckets of histograms, shared by all series that have them, so
// that equal layouts are equal pointers. It is explicit, with ascending finite
// upper bounds and a last, unbounded bucket, or exponential. An explicit layout
// without bounds is that of a histogram that tells only count and sum.
type Layout struct {
	bounds      []float64
	exponential Exponential // of an explicit layout, zero
	total       bool        // a counter's, which has no sum
}

var counter = &Layout{total: true}

// Counter is the layout of counters: one count, and nothing beside.
func Counter() *Layout { return counter }

// Bounds are the finite upper bounds of an explicit layout; the caller must not
// change them.
func (l *Layout) Bounds() []float64 { return l.bounds }

// UpperBounds appends the upper bound of each bucket that has one to dst,
// ascending; of an exponential layout the zero bucket's comes first.
func (l *Layout) UpperBounds(dst []float64) []float64 {
	if !l.isExponential() {
		return append(dst, l.bounds...)
	}
	e := l.exponential
	dst = append(dst, e.ZeroThreshold*e.Unit)
	for i := range e.Buckets {
		dst = append(dst, math.Exp2(math.Ldexp(float64(e.First+i+1), -e.Scale))*e.Unit)
	}
	return dst
}

// Exponential is the buckets of an exponential layout.
func (l *Layout) Exponential() (e Exponential, ok bool) { return l.exponential, l.isExponential() }

func (l *Layout) isExponential() bool { return l.exponential.Unit != 0 }

// Width is the number of counts.
func (l *Layout) Width() int {
	if l.isExponential() {
		return l.exponential.Width()
	}
	return len(l.bounds) + 1
}

// Bucketed tells whether there are buckets at all, and not just a count.
func (l *Layout) Bucketed() bool { return len(l.bounds) > 0 || l.isExponential() }

// Equal tells whether the layout is explicit and these are its bounds.
func (l *Layout) Equal(bounds []float64) bool {
	return !l.isExponential() && slices.Equal(l.bounds, bounds)
}

// Compare orders layouts: explicit ones by their bounds, then exponential ones.
func (l *Layout) Compare(o *Layout) int {
	a, b := l.exponential, o.exponential
	return cmp.Or(
		cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Scale, b.Scale), cmp.Compare(a.ZeroThreshold, b.ZeroThreshold),
		cmp.Compare(a.First, b.First), cmp.Compare(a.Buckets, b.Buckets), slices.Compare(l.bounds, o.bounds),
	)
}

// Regroup adds counts, one a bucket of the layout from, to dst, one a bucket of
// l. The bounds of l are among those of from.
func (l *Layout) Regroup(dst []uint64, from *Layout, counts []uint64) {
	if l.isExponential() {
		l.exponential.Add(dst, from.exponential, counts)
		return
	}
	i := 0
	for j, c := range counts {
		if i < len(l.bounds) && (j == len(from.bounds) || from.bounds[j] > l.bounds[i]) {
			i++
		}
		dst[i] += c
	}
}

// maxLayouts bounds how many layouts of a kind are shared. Explicit series past
// it get their own; ranges of exponential ones come and go, and are forgotten.
const maxLayouts = 1024

// Layouts shares equal layouts. It is safe for concurrent use.
type Layouts struct {
	mu          sync.Mutex
	shared      []*Layout
	exponential map[Exponential]*Layout
	common      map[[2]*Layout]*Layout
	counts      sync.Pool // of *[]uint64
}

// borrow lends memory for n counts, all zero.
func (ls *Layouts) borrow(n int) *[]uint64 {
	counts, ok := ls.counts.Get().(*[]uint64)
	if !ok {
		counts = new([]uint64)
	}
	*counts = slices.Grow((*counts)[:0], n)[:n]
	clear(*counts)
	return counts
}

// giveBack ends a loan.
func (ls *Layouts) giveBack(counts *[]uint64) { ls.counts.Put(counts) }

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

// InternExponential returns a shared layout that holds these buckets: as they
// are, but for a range that is rounded out, and a scale that is lowered where it
// is above MaxScale or the range is too wide for it.
func (ls *Layouts) InternExponential(e Exponential) *Layout {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.internExponential(e.round())
}

func (ls *Layouts) internExponential(rounded Exponential) *Layout {
	if l := ls.exponential[rounded]; l != nil {
		return l
	}
	if ls.exponential == nil || len(ls.exponential) >= maxLayouts {
		ls.exponential = make(map[Exponential]*Layout)
	}
	l := &Layout{exponential: rounded}
	ls.exponential[rounded] = l
	return l
}

// Common is the layout of the bounds that a and b share: the only ones at which
// their counts may be added. An explicit and an exponential one share none, nor
// do exponential ones of different units.
func (ls *Layouts) Common(a, b *Layout) *Layout {
	if a == b {
		return a
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l, ok := ls.common[[2]*Layout{a, b}]; ok {
		return l
	}
	l := ls.join(a, b)
	if ls.common == nil || len(ls.common) >= maxLayouts {
		ls.common = make(map[[2]*Layout]*Layout)
	}
	ls.common[[2]*Layout{a, b}] = l
	return l
}

func (ls *Layouts) join(a, b *Layout) *Layout {
	if a.isExponential() && a.exponential.Unit == b.exponential.Unit {
		return ls.internExponential(a.exponential.Common(b.exponential))
	}
	both := make([]float64, 0, min(len(a.bounds), len(b.bounds)))
	for _, bound := range a.bounds {
		if _, ok := slices.BinarySearch(b.bounds, bound); ok {
			both = append(both, bound)
		}
	}
	return ls.intern(both)
}
