// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import "slices"

// appendPage appends the page of this moment in the dialect d that all the
// engines have: one replica, or those of a node whose agent shows them all.
func appendPage(dst []byte, d *dialect, engines []*engine) []byte {
	for _, e := range engines {
		e.refresh()
	}
	for i := range d.families {
		dst = appendFamily(dst, d, engines, i)
		if d.created {
			dst = appendTwins(dst, engines, i)
		}
	}
	return append(dst, d.end()...)
}

// appendFamily appends family number i: its head once, then the series of every
// engine.
func appendFamily(dst []byte, d *dialect, engines []*engine, i int) []byte {
	start := len(dst)
	for _, e := range engines {
		lines, numbers := e.shown(i)
		if numbers == nil {
			continue
		}
		b := &e.page[i]
		if len(dst) == start && (len(lines) > 0 || !d.hideEmpty) {
			dst = append(dst, b.head...)
		}
		for j := range lines {
			dst = appendLine(dst, d, b.family.kind, &lines[j], numbers)
		}
	}
	return dst
}

// appendTwins appends the _created family of family number i.
func appendTwins(dst []byte, engines []*engine, i int) []byte {
	start := len(dst)
	for _, e := range engines {
		lines, numbers := e.shown(i)
		b := &e.page[i]
		if len(lines) == 0 || b.twin == "" {
			continue
		}
		if len(dst) == start {
			dst = append(dst, b.twin...)
		}
		since := createdAt
		if b.family.lazy {
			since = firstFinishedAt
		}
		for j := range lines {
			dst = appendNumber(append(dst, lines[j].created...), numbers.values[since])
			dst = append(dst, '\n')
		}
	}
	return dst
}

// shown returns the series of family number i that are on the page, and the
// numbers they show: neither if the family has vanished.
func (e *engine) shown(i int) ([]line, *numbers) {
	b := &e.page[i]
	shown := &e.numbers
	if frozen, stale := e.stale[b.declared]; stale {
		if shown = frozen; frozen == nil {
			return nil, nil
		}
	}
	if !b.family.lazy {
		return b.lines, shown
	}
	unused := func(l line) bool { return !shown.used(b.family.kind, l.series) }
	return slices.DeleteFunc(slices.Clone(b.lines), unused), shown
}

// suspend makes a family stale: frozen as it is now, or gone.
func (e *engine) suspend(declared string, mode Mode) {
	e.stale[declared] = nil
	if mode == Freeze {
		e.refresh()
		e.stale[declared] = e.clone()
	}
}

func appendLine(dst []byte, d *dialect, k kind, l *line, n *numbers) []byte {
	sample := func(prefix string, v float64, whole bool) {
		dst = append(d.appendNumber(append(dst, prefix...), v, whole), '\n')
	}
	if k == gaugeKind || k == counterKind {
		sample(l.value, n.values[l.series.value], k == counterKind || l.series.value.whole())
		return dst
	}
	h := &n.samples[l.series.sample]
	if d.countLast {
		sample(l.sum, h.sum, false)
	}
	below := uint64(0)
	for i, prefix := range l.buckets {
		below += h.counts[i]
		sample(prefix, float64(below), true)
	}
	sample(l.count, float64(h.count), true)
	if !d.countLast {
		sample(l.sum, h.sum, false)
	}
	return dst
}
