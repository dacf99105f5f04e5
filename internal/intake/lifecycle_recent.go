// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"time"

	"github.com/llmfleet/llmfleet/internal/lifecycle"
	"github.com/llmfleet/llmfleet/internal/window"
)

// recent is a map of what was used last: size entries at least, twice as many at
// most.
type recent[K comparable, V any] struct {
	size       int
	young, old map[K]V
}

func recently[K comparable, V any](size int) recent[K, V] {
	return recent[K, V]{size: max(1, size), young: make(map[K]V)}
}

func (r *recent[K, V]) get(key K) (V, bool) {
	if v, ok := r.young[key]; ok {
		return v, true
	}
	v, ok := r.old[key]
	if ok {
		r.put(key, v)
	}
	return v, ok
}

func (r *recent[K, V]) put(key K, value V) {
	if _, known := r.young[key]; !known && len(r.young) >= r.size {
		r.young, r.old = make(map[K]V), r.young
	}
	r.young[key] = value
}

// moment is a time that a clock told, and when the collector learned it.
type moment struct{ told, learned window.Instant }

const (
	// newsApart is how far two tellings of one clock have to be apart to show that
	// the clock and the collector's go alike.
	newsApart = 10 * time.Second
	// newsJitter is how much news are delayed now and then, and what whole seconds
	// hide.
	newsJitter = 2 * time.Second
)

// news is when a fact was learned, 0 if it may be no news. How long ago something
// happened does not show that, as the clocks may be off by as much. But while a
// source is heard live, its clock and the collector's advance alike; where what
// lay apart is learned at once, a list or a file is read from its beginning. The
// first tellings of a clock are therefore none that show how far it is off.
func (l *Lifecycle) news(c lifecycle.Clock, at, learned window.Instant) window.Instant {
	if at <= 0 || learned <= 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	last, known := l.moments.get(c)
	passed := at.Sub(last.told)
	switch {
	case !known || (learned.Sub(last.learned)-passed).Abs() > newsJitter:
		l.moments.put(c, moment{at, learned})
		return 0
	case passed < newsApart:
		return 0
	}
	return learned
}
