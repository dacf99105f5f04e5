// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import "github.com/llmfleet/llmfleet/internal/fleet"

// CacheSignals are what the prefix cache's hit ratio is made of. A frame that
// is judged with Options.Cache tells them after the latencies, in this order.
var CacheSignals = []fleet.Signal{
	fleet.PrefixHits, fleet.PrefixQueries, fleet.PrefixBlockHits, fleet.PrefixBlockQueries,
}

// lookups is what was found in a prefix cache of what was looked up.
type lookups struct {
	hits, queries float64
	told          bool
}

func (l lookups) ratio() Figure {
	switch {
	case !l.told:
		return withheld(NotReported)
	case l.hits > l.queries:
		return withheld(Implausible)
	}
	return ratio(l.hits, l.queries)
}

func (l *lookups) add(o lookups) {
	l.hits += o.hits
	l.queries += o.queries
	l.told = l.told || o.told
}

// cache judges the prefix caches. Engines count tokens or blocks, and a sum of
// both would be neither.
func (j *Judge) cache(f *fleet.Frame, o *Options) {
	if !o.Cache {
		j.refuseCache(NotAsked)
		return
	}
	at := len(o.Signals)
	var tokens, blocks lookups
	for _, members := range [2][]fleet.MemberFrame{f.Members, f.Departed} {
		for i := range members {
			ofTokens, ofBlocks := lookedUp(members[i].Told[at:], 0), lookedUp(members[i].Told[at:], 2)
			tokens.add(ofTokens)
			if !ofTokens.told {
				blocks.add(ofBlocks)
			}
		}
	}
	for i := range f.Members {
		m, cell := &f.Members[i], &j.report.Replicas[i].PrefixHitRatio
		*cell = lookedUp(m.Told[at:], 0).ratio()
		if cell.Withheld == NotReported {
			*cell = lookedUp(m.Told[at:], 2).ratio()
		}
		if m.Warming {
			*cell = withheld(Warming)
		}
	}
	switch {
	case tokens.told && blocks.told:
		j.report.PrefixHitRatio = withheld(MixedUnits)
	case tokens.told:
		j.report.PrefixHitRatio = tokens.ratio()
	default:
		j.report.PrefixHitRatio = blocks.ratio()
	}
}

func (j *Judge) refuseCache(r Reason) {
	j.report.PrefixHitRatio = withheld(r)
	for i := range j.report.Replicas {
		j.report.Replicas[i].PrefixHitRatio = withheld(r)
	}
}

// lookedUp reads hits and queries, told one after the other.
func lookedUp(told []fleet.Distribution, at int) lookups {
	hits, queries := &told[at], &told[at+1]
	if hits.Layout == nil || queries.Layout == nil || hits.Unreliable || queries.Unreliable {
		return lookups{}
	}
	return lookups{hits: float64(hits.Observations()), queries: float64(queries.Observations()), told: true}
}
