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
