// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

// rollout is the variants of one fleet.
type rollout struct {
	Variants map[string]*variant
	Recruits map[string]*recruit // by replica
	// Comparisons of two of the variants each, of late: one that gives way to another
	// is taken up again if that ends.
	Comparisons []*comparison
	Seen        window.Instant
	// Burn is for how long a new replica's requests are not counted, in seconds:
	// the 99th percentile of e2e.
	Burn float64

	current *comparison // that of the pane; nil: there are no two variants
	known   []string    // labels that tell variants apart
}

func newRollout() *rollout {
	return &rollout{Variants: make(map[string]*variant), Recruits: make(map[string]*recruit)}
}

// choose finds the comparison of the canary and its baseline; false: there are no
// two variants. One of other two than before begins anew, or goes on.
func (r *rollout) choose(o *Options, now window.Instant) bool {
	match := len(o.Match) > 0
	r.Comparisons = slices.DeleteFunc(r.Comparisons, func(c *comparison) bool {
		return r.Variants[c.Arms[Canary]] == nil || !match && r.Variants[c.Arms[Baseline]] == nil
	})
	r.current = r.latest()
	switch {
	case match:
		r.takeNamed(o)
	case r.current == nil || !r.stands(r.current):
		if arms, ok := r.newest(); ok {
			r.take(arms, arms)
		} // else that is what is left of it
	}
	if r.current == nil {
		return false
	}
	r.current.Chosen = now
	if !match {
		r.promote(r.current)
	}
	return true
}

// takeNamed takes the comparison of the canary that labels name, if there is one.
func (r *rollout) takeNamed(o *Options) {
	arms, names, ok := r.named(o)
	if !ok {
		r.current = nil
		return
	}
	r.take(arms, names)
	if r.current.Since == 0 { // its baseline may have come after it
		r.current.Names = r.name(names)
	}
}

// mostComparisons is how many are remembered of a fleet.
const mostComparisons = 4

// take finds the comparison of two variants, or begins it. It is called by the
// labels of the variants with the names; and stays so.
func (r *rollout) take(arms, names [ArmCount]string) {
	at := slices.IndexFunc(r.Comparisons, func(c *comparison) bool { return c.Arms == arms })
	if at >= 0 {
		r.current = r.Comparisons[at]
		return
	}
	if len(r.Comparisons) == mostComparisons {
		slices.SortFunc(r.Comparisons, func(a, b *comparison) int { return cmp.Compare(b.Chosen, a.Chosen) })
		r.Comparisons = r.Comparisons[:mostComparisons-1]
	}
	r.current = &comparison{Arms: arms, Names: r.name(names)}
	r.Comparisons = append(r.Comparisons, r.current)
}

// latest is the comparison that was the last one; nil: there is none.
func (r *rollout) latest() (c *comparison) {
	for _, other := range r.Comparisons {
		if c == nil || other.Chosen > c.Chosen {
			c = other
		}
	}
	return c
}

// stands tells whether the roles in a comparison are what they were: both variants
// are there, and none that is newer.
func (r *rollout) stands(c *comparison) bool {
	canary, baseline := r.Variants[c.Arms[Canary]], r.Variants[c.Arms[Baseline]]
	for _, v := range r.Variants {
		if v.present > 0 && v.First > max(canary.First, baseline.First) {
			return false
		}
	}
	return canary.present > 0 && baseline.present > 0
}

// promotedPanes is for how many panes a canary has to be the majority to be
// promoted: scrapes that fail, and restarts, show parts of a fleet.
const promotedPanes = 3

// promote ends the comparison of a canary that has become the majority. If it is in
// the minority again, it goes on.
func (r *rollout) promote(c *comparison) {
	canary, baseline := r.Variants[c.Arms[Canary]].Replicas, r.Variants[c.Arms[Baseline]].Replicas
	switch {
	case canary < baseline:
		c.Majority = 0
		c.Reasons &^= 1 << Promoted
	case canary > baseline:
		if c.Majority++; c.Majority >= promotedPanes {
			c.Reasons.add(Promoted)
		}
	}
}

// named are the variant of most replicas among those that the labels match, and all
// others, which are called by the one of most replicas.
func (r *rollout) named(o *Options) (arms, names [ArmCount]string, ok bool) {
	var of [ArmCount][]string
	for _, key := range slices.Sorted(maps.Keys(r.Variants)) {
		arm := Baseline
		if matches(r.Variants[key].Labels, o.Match) {
			arm = Canary
		}
		of[arm] = append(of[arm], key)
	}
	for arm := range names {
		names[arm] = r.most(of[arm])
	}
	arms[Canary] = names[Canary]
	return arms, names, len(of[Canary]) > 0
}

// newest are the variant of most replicas, and of the others the one that was seen
// last; false if that is the older of the two: what is left of it is no canary. Of
// two that are alike in all, neither is.
func (r *rollout) newest() (arms [ArmCount]string, ok bool) {
	keys := slices.Sorted(maps.Keys(r.Variants))
	keys = slices.DeleteFunc(keys, func(key string) bool { return r.Variants[key].present == 0 })
	if len(keys) < 2 {
		return arms, false
	}
	arms[Baseline] = r.most(keys)
	keys = slices.DeleteFunc(keys, func(key string) bool { return key == arms[Baseline] })
	arms[Canary] = slices.MaxFunc(keys, r.age)
	age := r.age(arms[Canary], arms[Baseline])
	return arms, age > 0 || age == 0 && r.Variants[arms[Canary]].Replicas < r.Variants[arms[Baseline]].Replicas
}

// most is the variant of most replicas; of two alike, the one that is older.
func (r *rollout) most(keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	return slices.MaxFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Variants[a].Replicas, r.Variants[b].Replicas), r.age(b, a))
	})
}

// age is positive if the first of two variants is the newer one: it was seen
// later; or at once with the other, and its processes began later.
func (r *rollout) age(a, b string) int {
	x, y := r.Variants[a], r.Variants[b]
	if x.First != y.First || x.Began == 0 || y.Began == 0 {
		return cmp.Compare(x.First, y.First)
	}
	return cmp.Compare(x.Began, y.Began)
}

func matches(labels, match []fleet.Label) bool {
	return !slices.ContainsFunc(match, func(l fleet.Label) bool { return valueOf(labels, l.Name) != l.Value })
}

// name calls variants by those of their labels that tell them apart.
func (r *rollout) name(keys [ArmCount]string) (names [ArmCount]string) {
	var labels [ArmCount][]fleet.Label
	for arm, key := range keys {
		if v := r.Variants[key]; v != nil {
			labels[arm] = v.Labels
		}
	}
	for arm := range names {
		var parts []string
		for _, l := range labels[arm] {
			if l.Value != "" && valueOf(labels[1-arm], l.Name) != l.Value {
				parts = append(parts, l.Value)
			}
		}
		names[arm] = cmp.Or(strings.Join(parts, "/"), "none")
	}
	return names
}

// armOf is the arm of a replica or of what is told of its variant; false: it is
// of neither. If labels name the canary, all others are its baseline.
func (r *rollout) armOf(id *fleet.Identity, o *Options) (Arm, bool) {
	labels := r.labels(id, o.Match)
	if len(o.Match) > 0 {
		if matches(labels, o.Match) {
			return Canary, true
		}
		return Baseline, true
	}
	key, candidates := r.find(labels)
	if len(labels) == 0 || candidates != 1 {
		return 0, false
	}
	switch key {
	case r.current.Arms[Canary]:
		return Canary, true
	case r.current.Arms[Baseline]:
		return Baseline, true
	}
	return 0, false
}
