// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

const configHash = "config_hash"

// variantKeys are what a rollout changes.
var variantKeys = []string{"model_revision", "engine_version", configHash}

// templateLabels are the labels by which Kubernetes and what builds on it tell the
// pods of one template from those of another. A pod of a LeaderWorkerSet has a
// controller-revision-hash, too, which differs from group to group.
var templateLabels = []string{
	"leaderworkerset.sigs.k8s.io/template-revision-hash", "rollouts-pod-template-hash", "pod-template-hash", "controller-revision-hash",
}

// variants says what tells the variants of a model apart, beside the keys of its
// fleet.
type variants struct {
	keys      []string
	labels    []string // of pods
	templates bool     // where no key is told, the pod's template stands for the configuration
}

func newVariants(o *Options) variants {
	v := variants{
		keys:   slices.DeleteFunc(slices.Clone(variantKeys), func(key string) bool { return slices.Contains(o.GroupBy, key) }),
		labels: slices.Clone(o.VariantLabels),
	}
	v.templates = o.Templates && slices.Contains(v.keys, configHash)
	v.labels = slices.DeleteFunc(v.labels, func(label string) bool {
		return slices.Contains(o.GroupBy, label) || slices.Contains(v.keys, label)
	})
	return v
}

// of is the variant that a point is of, with the labels of its pod.
func (v *variants) of(p *point, podLabel func(label string) string) (told []fleet.Label) {
	tell := func(name, value string) {
		if value != "" {
			told = append(told, fleet.Label{Name: name, Value: value})
		}
	}
	for _, key := range v.keys {
		tell(key, p.text(key))
	}
	if v.templates && len(told) == 0 {
		tell(configHash, templateHash(podLabel))
	}
	for _, label := range v.labels {
		tell(label, podLabel(label))
	}
	return told
}

// templateHash is the hash of a pod's template; "" if no label tells it.
func templateHash(podLabel func(label string) string) string {
	for _, label := range templateLabels {
		if hash := podLabel(label); hash != "" {
			return hash
		}
	}
	return ""
}

// spellings are the attributes in which labels of a pod are looked for.
func (v *variants) spellings() (all []string) {
	labels := v.labels
	if v.templates {
		labels = slices.Concat(labels, templateLabels)
	}
	for _, label := range labels {
		for _, prefix := range labelPrefixes {
			all = append(all, prefix+label)
		}
		all = append(all, flatLabel(label))
	}
	return all
}

// told are the attributes that tell variants apart.
func (v *variants) told() []string { return slices.Concat(v.keys, v.spellings()) }

// label is a label of the point's pod, as the point or its resource has it.
func (p *point) label(label string) string {
	return cmp.Or(anyLabelOf(p.attributes, label), anyLabelOf(p.resource, label))
}

// anyLabelOf is the value of a label in any of its spellings.
func anyLabelOf(m pcommon.Map, label string) string {
	return cmp.Or(labelOf(m, label), textOf(m, flatLabel(label)))
}
