// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/stats"
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

// variant is one version of a model, as it is seen.
type variant struct {
	First, Last window.Instant
	// Began is when the process of the replica in the middle did, when the variant
	// was first seen; zero: that is not told.
	Began    float64
	Labels   []fleet.Label
	Replicas int // when it was last seen

	present int
	began   []float64
}

func newRollout() *rollout {
	return &rollout{Variants: make(map[string]*variant), Recruits: make(map[string]*recruit)}
}

// attend notes which variants the replicas of the frame are.
func (r *rollout) attend(f *fleet.Frame, o *Options) {
	if r.current == nil || len(r.known) == 0 {
		r.known = knownLabels(f.Members, o.Match)
	}
	for _, v := range r.Variants {
		v.present, v.began = 0, v.began[:0]
	}
	for _, c := range r.cohorts(f, o.Match) {
		if v := r.admit(c.labels, f.End); v != nil {
			v.Last = f.End
			v.present += len(c.members)
			for _, m := range c.members {
				if m.Started > 0 {
					v.began = append(v.began, m.Started)
				}
			}
		}
	}
	maps.DeleteFunc(r.Recruits, func(_ string, of *recruit) bool { return f.End.Sub(of.Last) > rememberFor })
	for key, v := range r.Variants {
		switch {
		case v.present > 0:
			v.Replicas = v.present
		case f.End.Sub(v.Last) > rememberFor:
			delete(r.Variants, key)
		}
		if v.Began == 0 && v.First == f.End {
			v.Began = stats.Median(v.began)
		}
	}
}

// cohort is replicas that tell the same of their variant.
type cohort struct {
	labels  []fleet.Label
	members []*fleet.MemberFrame
}

// cohorts are the replicas of the frame by what they tell of their variant, the
// largest first: where labels are learned late, most learn what most are.
func (r *rollout) cohorts(f *fleet.Frame, match []fleet.Label) (all []cohort) {
	places := make(map[string]int)
	for i := range f.Members {
		m := &f.Members[i]
		r.enlist(f, m)
		labels := r.labels(m.Identity, match)
		at, known := places[keyOf(labels)]
		if !known {
			at, all = len(all), append(all, cohort{labels: labels})
			places[keyOf(labels)] = at
		}
		all[at].members = append(all[at].members, m)
	}
	slices.SortStableFunc(all, func(a, b cohort) int { return cmp.Compare(len(b.members), len(a.members)) })
	return all
}

// knownLabels are the labels that most replicas tell that tell any: one that few
// know does not tell variants apart. Labels that name the canary always do.
func knownLabels(members []fleet.MemberFrame, match []fleet.Label) (known []string) {
	var names []string // as they come
	labelled, told := 0, make(map[string]int)
	for i := range members {
		labels := members[i].Identity.Variant
		labelled += min(1, len(labels))
		for _, l := range labels {
			if told[l.Name]++; told[l.Name] == 1 {
				names = append(names, l.Name)
			}
		}
	}
	for _, l := range match {
		if told[l.Name] == 0 {
			names = append(names, l.Name)
		}
		told[l.Name] = len(members)
	}
	return slices.DeleteFunc(names, func(name string) bool { return 2*told[name] <= labelled })
}

func valueOf(labels []fleet.Label, name string) string {
	for _, l := range labels {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// labels are those of a replica that tell variants apart. Those that name the
// canary do so by being absent, too.
func (r *rollout) labels(id *fleet.Identity, match []fleet.Label) (labels []fleet.Label) {
	for _, name := range r.known {
		value := valueOf(id.Variant, name)
		if value != "" || slices.ContainsFunc(match, func(l fleet.Label) bool { return l.Name == name }) {
			labels = append(labels, fleet.Label{Name: name, Value: value})
		}
	}
	return labels
}

// find finds the variant with those labels. If some are not told, it is the only
// one that may be meant; of several, none is.
func (r *rollout) find(labels []fleet.Label) (key string, candidates int) {
	for k, v := range r.Variants {
		switch {
		case slices.Equal(v.Labels, labels):
			return k, 1
		case agree(labels, v.Labels):
			key = k
			candidates++
		}
	}
	return key, candidates
}

func keyOf(labels []fleet.Label) string {
	var b strings.Builder
	for _, l := range labels {
		b.WriteString(l.Name + "=" + l.Value + "\n")
	}
	return b.String()
}

// agree tells whether the labels that both have are the same.
func agree(a, b []fleet.Label) bool {
	return !slices.ContainsFunc(a, func(l fleet.Label) bool {
		return slices.ContainsFunc(b, func(o fleet.Label) bool { return l.Name == o.Name && l.Value != o.Value })
	})
}

// admit finds the variant of a replica, or makes it; nil: it is not known which it
// is.
func (r *rollout) admit(labels []fleet.Label, now window.Instant) *variant {
	if len(labels) == 0 {
		return nil
	}
	key, candidates := r.find(labels)
	switch {
	case candidates > 1:
		return nil
	case candidates == 0:
		key = keyOf(labels)
		r.Variants[key] = &variant{First: now}
	}
	v := r.Variants[key]
	if len(labels) > len(v.Labels) {
		v.Labels = labels
	}
	return v
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
