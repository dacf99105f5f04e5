// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"time"

	"github.com/llmfleet/llmfleet/internal/window"
)

// gap is a part of the critical path that no stage accounts for.
type gap struct{ from, to window.Instant }

// works is since when the stage itself is what is waited for.
func (s *Span) works() window.Instant { return max(s.Start, s.idle) }

// before tells whether a stage is rather what was waited for than another: it ends
// later, or starts later, or goes on in the pod that was waited for afterwards.
func (s *Span) before(other *Span, pod string) bool {
	if s.End != other.End {
		return s.End > other.End
	}
	if s.works() != other.works() {
		return s.works() > other.works()
	}
	return s.Pod == pod && other.Pod != pod
}

// walk goes back from the end to the beginning, and gives each stage the time that
// the start waited for it: of those that run at an instant, the one that ends
// last, and of several the one that starts latest; it gives the time back to its
// start. What is exclusive adds up to all of the time. Stages that merely hold
// others are passed over.
func walk(spans []Span, from, to window.Instant) (gaps []gap) {
	pod := ""
	for t := to; t > from; {
		best, before := -1, from
		for i := range spans {
			s := &spans[i]
			switch {
			case s.Stage.Holds() || s.Stage == Unattributed || s.End <= s.works():
			case s.works() < t && s.End >= t:
				if best < 0 || s.before(&spans[best], pod) {
					best = i
				}
			case s.End < t:
				before = max(before, s.End)
			}
		}
		if best < 0 {
			gaps = append(gaps, gap{from: before, to: t})
			t = before
			continue
		}
		start := max(spans[best].works(), from)
		spans[best].Critical += t.Sub(start)
		pod = spans[best].Pod
		t = start
	}
	return gaps
}

// uncovered are the parts of [from, to] in which no stage runs, latest first.
func uncovered(spans []Span, from, to window.Instant) (gaps []gap) {
	for t := to; t > from; {
		covered, before := window.Instant(-1), from
		for i := range spans {
			s := &spans[i]
			switch {
			case s.Stage.Holds() || s.End <= s.Start:
			case s.Start < t && s.End >= t:
				if covered < 0 || s.Start < covered {
					covered = s.Start
				}
			case s.End < t:
				before = max(before, s.End)
			}
		}
		if covered < 0 {
			gaps = append(gaps, gap{from: before, to: t})
			t = before
		} else {
			t = max(covered, from)
		}
	}
	return gaps
}

func lengthOf(gaps []gap) (d time.Duration) {
	for _, g := range gaps {
		d += g.to.Sub(g.from)
	}
	return d
}
