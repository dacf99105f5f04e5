// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"cmp"
	"slices"
	"time"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/stats"
	"github.com/llmfleet/llmfleet/internal/window"
)

// recruit is a replica that may be too new to be counted.
type recruit struct {
	Seen, Last window.Instant
	// Served is the end of the first pane in which it had answered requests; zero
	// before.
	Served  window.Instant
	Started float64 // when its process began; zero if that is not told
	Ready   bool    // it has burnt in, and its prefix cache has filled
}

// began is when its process did, as far as is known, in seconds since the Unix
// epoch.
func (r *recruit) began() float64 {
	if r.Started > 0 {
		return r.Started
	}
	return seconds(r.Seen)
}

func seconds(t window.Instant) float64 { return float64(t) / float64(time.Second) }

// enlist notes that a replica is there. A new process begins anew, and so does one
// that was away for long.
func (r *rollout) enlist(f *fleet.Frame, m *fleet.MemberFrame) {
	of := r.Recruits[m.Identity.Replica]
	if of == nil || f.End.Sub(of.Last) > rememberFor || m.Started > of.Started && of.Started > 0 {
		of = &recruit{Seen: f.End}
		r.Recruits[m.Identity.Replica] = of
	}
	of.Last = f.End
	if m.Started > 0 {
		of.Started = m.Started
	}
	if of.Served == 0 && serves(f, m) {
		of.Served = f.End
	}
}

// serves tells whether requests of a replica have ended in the pane; of one that
// does not tell, whether any was answered at all.
func serves(f *fleet.Frame, m *fleet.MemberFrame) bool {
	if ended := countOf(f, m, fleet.Finished); ended != nil {
		return ended.Observations() > 0
	}
	for i, s := range f.Signals {
		if s.IsLatency() && m.Told[i].Observations() > 0 {
			return true
		}
	}
	return false
}

// recruit sorts the replicas of the frame that count in the pane into arms.
// Whoever is new has to burn in: of its first requests the short ones end first.
// And its prefix cache has to fill.
func (j *Judge) recruit(r *rollout, f *fleet.Frame) {
	c := r.current
	for arm := range j.arms {
		j.arms[arm], c.Replicas[arm], c.Ages[arm] = j.arms[arm][:0], 0, c.Ages[arm][:0]
	}
	c.Others = 0
	all := j.sort(r, f)
	r.learnBurn(f, all[Baseline])
	usual := j.hitRatio(f, all[Baseline])
	for arm, members := range all {
		for _, m := range members {
			of := r.Recruits[m.Identity.Replica]
			if !m.Unreachable {
				c.Replicas[arm]++
				c.Ages[arm] = append(c.Ages[arm], seconds(f.End)-of.began())
			}
			why, counts := j.ready(r, f, m, usual)
			switch {
			case counts:
				j.arms[arm] = append(j.arms[arm], m)
			case arm == int(Canary) && of.Served != 0:
				c.Reasons.add(why)
			}
			if arm == int(Canary) && serves(f, m) {
				c.Heard = f.End
			}
		}
	}
	if len(j.arms[Canary]) > 0 { // those who are not ready yet join later
		c.Reasons &^= 1<<BurnIn | 1<<ColdCache
	}
	if c.Replicas[Baseline] == 0 {
		c.Reasons.add(NoBaseline)
	}
	if n := c.Replicas[Canary]; n > 0 && n < fewReplicas {
		c.Reasons.add(FewReplicas)
	}
}

// fewReplicas are so many that a slow version can be told from a slow replica.
const fewReplicas = 3

// sort sorts the replicas into arms; of the baseline only those that are of the
// canary's age, if that is asked for.
func (j *Judge) sort(r *rollout, f *fleet.Frame) (all [ArmCount][]*fleet.MemberFrame) {
	var oldest, newest float64 // canary
	for i := range f.Members {
		m := &f.Members[i]
		arm, ok := r.armOf(m.Identity, &j.options)
		if !ok {
			r.current.Others++
			continue
		}
		all[arm] = append(all[arm], m)
		if began := r.Recruits[m.Identity.Replica].began(); arm == Canary {
			if oldest == 0 || began < oldest {
				oldest = began
			}
			newest = max(newest, began)
		}
	}
	for _, members := range all {
		slices.SortFunc(members, func(a, b *fleet.MemberFrame) int { return cmp.Compare(a.Identity.Replica, b.Identity.Replica) })
	}
	if within := j.options.AgeWithin.Seconds(); within > 0 && len(all[Canary]) > 0 {
		all[Baseline] = slices.DeleteFunc(all[Baseline], func(m *fleet.MemberFrame) bool {
			began := r.Recruits[m.Identity.Replica].began()
			return began < oldest-within || began > newest+within
		})
	}
	return all
}

// ready tells whether a replica counts, or why it does not yet. Once it does, it
// goes on to.
func (j *Judge) ready(r *rollout, f *fleet.Frame, m *fleet.MemberFrame, usual float64) (why Reason, ok bool) {
	of := r.Recruits[m.Identity.Replica]
	if of.Ready {
		return 0, true
	}
	since := f.End.Sub(of.Served)
	if of.Served == 0 || since < j.burn(r) {
		return BurnIn, false
	}
	hits := j.hitRatio(f, []*fleet.MemberFrame{m})
	of.Ready = since >= j.options.BurnIn || usual < cacheInUse || hits < 0 || hits >= warmEnough*usual
	return ColdCache, of.Ready
}

const (
	// cacheInUse is the hit ratio from which on a prefix cache matters.
	cacheInUse = 0.05
	// warmEnough is how much of the baseline's hit ratio a warm cache has.
	warmEnough = 0.8
)

// hitRatio is what prefix caches held of what was looked up; -1 if that is not
// told.
func (j *Judge) hitRatio(f *fleet.Frame, members []*fleet.MemberFrame) float64 {
	for i := range prefixWays {
		if hits, lookups := prefixWays[i].sum(f, members); lookups > 0 {
			return float64(hits) / float64(lookups)
		}
	}
	return -1
}

// burn is for how long the requests of a new replica are not counted: until its
// long requests end as well, and for a pane at least.
func (j *Judge) burn(r *rollout) time.Duration {
	burn := min(time.Duration(r.Burn*float64(time.Second)), j.options.BurnIn)
	return max(burn, j.options.Pane)
}

// slowest is the quantile of e2e that long requests have.
const slowest = 0.99

// learnBurn takes over how long requests take of the baseline.
func (r *rollout) learnBurn(f *fleet.Frame, baseline []*fleet.MemberFrame) {
	at := f.Index(fleet.E2E)
	if at < 0 {
		return
	}
	var pool fleet.Pool
	pool.Gather(f, tellers(baseline, at))
	bounds := pool.Layout.UpperBounds(nil)
	cumulative := make([]float64, len(pool.Counts))
	total := 0.0
	for i, n := range pool.Counts {
		total += float64(n)
		cumulative[i] = total
	}
	switch value, state := stats.Quantile(slowest, bounds, cumulative); state {
	case stats.Defined:
		r.Burn = value
	case stats.Saturated:
		r.Burn = bounds[len(bounds)-1]
	}
}
