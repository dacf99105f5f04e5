// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"math"
	"slices"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/stats"
)

// CauseSignals are what causes are told from, beside the signals of the alarm and
// ITL: a frame that tells them lets more causes be found.
var CauseSignals = []fleet.Signal{
	fleet.PromptLength,
	fleet.PrefixHits, fleet.PrefixQueries, fleet.PrefixBlockHits, fleet.PrefixBlockQueries,
}

// What separates one cause from another. Each is a customary mark, none is
// fitted: what is told is a hint, with the numbers beside it.
const (
	moreWork      = 1.3              // requests waiting or running, over the mean of the others
	slowAtWork    = 1.2              // inter-token latency over what the batch explains
	longerPrompts = 1.2              // mean prompt length over that of the others
	colderCache   = 0.2              // of the prefix hit ratio, below the fleet's
	young         = 30 * time.Minute // of a process whose cache is not yet filled
	surely        = 100              // an e-value of one window
	remembrance   = 0.8              // of what a pane blamed, in the next
)

// blame adds to what a flagged replica is blamed for. The first panes after an
// onset say less than later ones, so that each pane has a vote, the newest the
// most.
func (a *Alarm) blame(of *fleetAlarm, f *fleet.Frame, i int) {
	m := a.present[i]
	raised := m.raised()
	if raised == 0 {
		m.Blamed = [CauseCount]float32{}
		return
	}
	guess := a.guess(of, f, i, raised)
	if guess == Unknown && m.cause() != NoCause {
		return // what explained it before still does
	}
	for c := range m.Blamed {
		m.Blamed[c] *= remembrance
	}
	m.Blamed[guess]++
}

// cause is what the replica is blamed for the most.
func (m *member) cause() Cause {
	best := NoCause
	for c, votes := range m.Blamed {
		if votes > m.Blamed[best] {
			best = Cause(c)
		}
	}
	return best
}

// guess is the cause that this pane speaks for. What is certain comes first, and
// what explains many replicas before what explains one.
func (a *Alarm) guess(of *fleetAlarm, f *fleet.Frame, i int, raised uint8) Cause {
	m := &f.Members[i]
	residual := of.load.residual(f, m)
	switch colder := a.colder(f, i); {
	case raised>>len(a.options.Signals)&1 != 0:
		return Errors
	case a.rolledOut(f, i):
		return Variant
	case a.strained(f, i):
		return Hardware
	case a.misplaced(f, m.Identity):
		return Placement
	case a.longPrompts(f, i):
		return Routing
	case colder && isYoung(f, m):
		return ColdCache
	case colder:
		return Routing
	case residual > slowAtWork:
		return Hardware
	case a.overloaded(i):
		return Load
	}
	return Unknown
}

// rolledOut tells whether what is slow is one variant, and not one machine: all
// of it that is there is slow, and nothing else is.
func (a *Alarm) rolledOut(f *fleet.Frame, i int) bool {
	own := f.Members[i].Identity.Variant
	if len(own) == 0 {
		return false
	}
	same, others := 0, 0
	for k, m := range a.present {
		variant := f.Members[k].Identity.Variant
		switch {
		case slices.Equal(variant, own):
			same++
		case m.raised() != 0:
			return false
		case len(variant) > 0:
			others++
		}
	}
	if others <= same { // first: to measure a whole fleet for each of its suspects takes long
		return false
	}
	for k, m := range a.present {
		if slices.Equal(f.Members[k].Identity.Variant, own) && m.raised() == 0 && !a.lags(f, k) {
			return false
		}
	}
	return true
}

// misplaced tells whether others on the replica's node are flagged with it, and
// the fleet is not all on that node.
func (a *Alarm) misplaced(f *fleet.Frame, id *fleet.Identity) bool {
	elsewhere := func(m fleet.MemberFrame) bool {
		node := nodeOf(m.Identity)
		return node.Name != "" && node != nodeOf(id)
	}
	return a.nodes.others(id) > 0 && slices.ContainsFunc(f.Members, elsewhere)
}

// lags tells whether a replica is slower than its peers, flagged or not.
func (a *Alarm) lags(f *fleet.Frame, i int) bool {
	for _, s := range a.options.Signals {
		if at := f.Index(s); at >= 0 {
			if ratio, known := a.gauge.slower(i, at); known && ratio > gate {
				return true
			}
		}
	}
	return false
}

// longPrompts tells whether the replica is sent longer prompts than its fleet:
// by their mean, and beyond what chance sends.
func (a *Alarm) longPrompts(f *fleet.Frame, i int) bool {
	at := f.Index(fleet.PromptLength)
	if at < 0 {
		return false
	}
	own := a.totals.promptsOf(i)
	others := a.totals.sums().promptLengths.without(own)
	if own.whole == 0 || others.whole == 0 || others.part == 0 || own.part/own.whole < longerPrompts*others.part/others.whole {
		return false
	}
	c := &a.causes
	c.ruler.measure(a.gauge.pool(at))
	var bounds [boundaries]boundary
	c.ruler.choose(&bounds, false)
	c.split.used = 0
	c.ruler.split(&c.split, &bounds, gate)
	d := &f.Members[i].Told[at]
	if c.split.used == 0 || d.Layout == nil || a.gauge.pool(at).Excludes(d.Layout) {
		return false
	}
	c.counts = a.gauge.pool(at).Regroup(c.counts, d)
	above, n := c.split.exceedancesOf(c.counts)
	var e float64
	for j := range above {
		null := stats.NullOf(c.split.share[j])
		for effect := range stats.Effects {
			e += math.Exp(null.LogE(effect, above[j], n))
		}
	}
	return e/float64(boundaries*len(stats.Effects)) > surely
}

// causes is the memory for finding one.
type causes struct {
	ruler  ruler
	split  split
	counts []uint64
}

// colder tells whether the replica finds less in its prefix cache than its fleet.
func (a *Alarm) colder(f *fleet.Frame, i int) bool {
	own := hitRatio(f, f.Members[i:i+1])
	all := a.totals.sums().hits
	return own.Withheld == Given && all.Withheld == Given && own.Value < all.Value-colderCache
}

// isYoung tells whether the replica's process began a short while ago.
func isYoung(f *fleet.Frame, m *fleet.MemberFrame) bool {
	age := time.Duration(int64(f.End) - int64(m.Started*float64(time.Second)))
	return m.Started > 0 && age < young
}

// overloaded tells whether more requests wait or run than on the others.
func (a *Alarm) overloaded(i int) bool {
	for _, s := range []fleet.Signal{fleet.Waiting, fleet.Running} {
		l := fleet.LoadOf(s)
		own := a.totals.loadOf(i, l)
		others := a.totals.sums().load[l].without(own)
		if own.whole > 0 && others.whole > 0 && own.part > moreWork*max(others.part/others.whole, 1) {
			return true
		}
	}
	return false
}
