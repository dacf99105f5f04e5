// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"slices"

	"github.com/llmfleet/llmfleet/internal/window"
)

// twin is what is known of a source that may be a second scrape of the same
// process: a pod has a target for each of its ports, and two jobs may scrape
// one port. A copy is not counted; another process of the same pod is a rank.
type twin struct {
	of     *Source // whose copy it is; nil: nobody's
	judged bool    // whether it was decided before
	doubts int     // evaluations in a row that spoke against the decision
	before []count // totals at the last evaluation
}

// count is the total of one signal and rank at one time.
type count struct {
	signal Signal
	rank   uint16
	at     window.Instant
	total  uint64
}

// steadfast is how many evaluations in a row must speak against a decision: a
// restart is seen by one target before the other.
const steadfast = 2

// testimony is what a source says that tells copies from ranks.
type testimony struct {
	source  *Source
	live    bool
	heard   window.Presence
	process float64
	counts  []count
	before  []count
}

// testify reads what tells copies from ranks, under the target's lock.
func (s *Source) testify(end window.Instant) testimony {
	t := testimony{
		source: s, live: s.reachable && !s.departed(end), heard: s.presence,
		process: s.target.process, before: s.twin.before,
	}
	for _, series := range s.series {
		if total, ok := series.histogram.Total(); ok {
			t.add(count{series.signal, series.rank, series.histogram.At(), total})
		}
	}
	s.twin.before = t.counts
	return t
}

// add adds what one series counts. One signal may have several, told apart by
// labels that are no ranks (streaming or not): only their sum can be compared.
func (t *testimony) add(c count) {
	for i := range t.counts {
		if sum := &t.counts[i]; sum.signal == c.signal && sum.rank == c.rank {
			sum.total += c.total
			sum.at = max(sum.at, c.at)
			return
		}
	}
	t.counts = append(t.counts, c)
}

// settle decides for each live source of one replica whose copy it is, unless
// one of them has just seen a restart that the others may not have seen yet.
// Only the evaluation calls it.
func settle(sources []testimony) {
	if slices.ContainsFunc(sources, testimony.restarted) {
		return
	}
	for i := range sources {
		t := &sources[i]
		if !t.live {
			continue
		}
		s, of := &t.source.twin, t.original(sources)
		former := s.of
		switch {
		case of == former:
			s.doubts = 0
		case silenced(sources, former) != nil:
			s.of, s.doubts = of, 0
			// The copy takes the silent one's place, whose counts it has seen
			// too, unless it came only after.
			if silenced(sources, former).heard.Last >= t.heard.First {
				former.twin.of = cmp.Or(of, t.source)
			}
		case !s.judged || s.doubts+1 >= steadfast:
			s.of, s.doubts = of, 0
		default:
			s.doubts++
		}
		s.judged = true
	}
}

// restarted tells whether a count fell since the last evaluation.
func (t testimony) restarted() bool {
	return slices.ContainsFunc(t.counts, func(now count) bool {
		return slices.ContainsFunc(t.before, func(then count) bool {
			return then.signal == now.signal && then.rank == now.rank && then.total > now.total
		})
	})
}

// original finds a live source that is nobody's copy and tells of the same
// process.
func (t *testimony) original(sources []testimony) *Source {
	for i := range sources {
		o := &sources[i]
		if o.source != t.source && o.live && o.source.twin.judged && o.source.twin.of == nil && o.sameProcess(t) {
			return o.source
		}
	}
	return nil
}

// silenced returns what the source said if it is not live any more.
func silenced(sources []testimony, s *Source) *testimony {
	for i := range sources {
		if t := &sources[i]; t.source == s && !t.live {
			return t
		}
	}
	return nil
}

// sameProcess compares process start times where both tell one; otherwise, if
// that is not all that counts, the counts of equal ranks, which for one process
// can never fall from the earlier sample to the later one, whoever took them.
func (t *testimony) sameProcess(o *testimony) bool {
	if t.process != 0 && o.process != 0 {
		return t.process == o.process
	}
	if t.source.target.registry.options.CopiesByProcess {
		return false
	}
	shared := false
	for _, a := range slices.Concat(t.before, t.counts) {
		for _, b := range slices.Concat(o.before, o.counts) {
			if a.signal != b.signal || a.rank != b.rank {
				continue
			}
			shared = true
			if a.at <= b.at && a.total > b.total || b.at <= a.at && b.total > a.total {
				return false
			}
		}
	}
	return shared
}
