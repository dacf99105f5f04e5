// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"
	"maps"
	"slices"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
)

// Quality is one measure of how good answers are, and the metric that tells it of
// variants of models, whoever judges the answers.
type Quality struct {
	Metric string
	// Type of the metric: a histogram, or a gauge, of which each new value is one
	// observation.
	Type fleet.Kind
	// Attributes are those that a point must have.
	Attributes map[string]string
	// Signal is one of fleet.Quality.
	Signal fleet.Signal
}

// qualityDialect is what the measures are called in self-telemetry to come from.
const qualityDialect = "quality"

// dialectOf spells measures of quality.
func dialectOf(measures []Quality) *dialect.Set {
	d := &dialect.Dialect{Name: qualityDialect, Labels: dialect.Labels{Model: []string{keyModelName}}}
	for _, q := range measures {
		entry := &dialect.Entry{Signal: q.Signal, Kind: q.Type, Scale: 1}
		for _, label := range slices.Sorted(maps.Keys(q.Attributes)) {
			entry.Only = append(entry.Only, dialect.LabelFilter{
				Spellings: dialect.Spellings([]string{label}), Values: []string{q.Attributes[label]},
			})
		}
		d.Forms = append(d.Forms, &dialect.Form{Entry: entry, Names: []string{q.Metric}})
	}
	return dialect.Custom(d)
}

// judged are variants as one who judges answers tells of them. Where the teller
// itself runs, and from which template, says nothing of whom it judges.
type judged struct {
	groupBy  []string
	variants variants
}

func (*judged) wants(*dialect.Entry) bool { return true }

func (j *judged) identity(p *point) (fleet.Identity, Reason) {
	id := fleet.Identity{Engine: p.entry.Dialect.Name}
	keys, reason := keysOf(j.groupBy, func(key string) string {
		if key == keyModelName {
			return p.model()
		}
		return p.text(key)
	})
	if reason != 0 {
		return id, reason
	}
	id.Keys = keys
	id.Variant = j.variants.of(p, func(label string) string {
		return cmp.Or(anyLabelOf(p.attributes, label), p.ofResource(label))
	})
	if len(id.Variant) == 0 {
		return id, NoIdentity
	}
	id.Replica = teller(p)
	for _, l := range id.Variant {
		id.Replica += " " + l.Name + "=" + l.Value
	}
	return id, 0
}

func (*judged) crowd(*fleet.Identity) bool { return false }

// teller names who tells of a point, as far as that is known.
func teller(p *point) string {
	return cmp.Or(p.instance(), p.ofResource(resourcePodUID), p.ofResource("service.name"))
}
