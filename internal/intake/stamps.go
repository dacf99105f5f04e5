// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"maps"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// Stamps is a set of attributes that say who speaks: one bit a fact, and one
// for the replica.
type Stamps uint16

// StampReplica is the replica itself.
const StampReplica = Stamps(1) << fleet.FactCount

// StampOf is the stamp of one fact.
func StampOf(f fleet.Fact) Stamps { return Stamps(1) << f }

// StampNames are all stamps, as the attributes are called.
func StampNames() []string {
	names := []string{keyReplica}
	for f := range fleet.FactCount {
		names = append(names, f.String())
	}
	return names
}

// ParseStamp finds a stamp by the name of its attribute.
func ParseStamp(name string) (s Stamps, ok bool) {
	if name == keyReplica {
		return StampReplica, true
	}
	fact, ok := fleet.ParseFact(name)
	return StampOf(fact), ok
}

// Has tells whether all of some stamps are in the set.
func (s Stamps) Has(o Stamps) bool { return s&o == o }

// StampsOn are those that attributes have.
func StampsOn(m pcommon.Map) (has Stamps) {
	for f := range fleet.FactCount {
		if _, ok := m.Get(f.String()); ok {
			has |= StampOf(f)
		}
	}
	if _, ok := m.Get(keyReplica); ok {
		has |= StampReplica
	}
	return has
}

// relevant are all labels that a point's identity may be read from, each with
// the stamps that it is.
func (o *ClerkOptions) relevant() map[string]Stamps {
	relevant := make(map[string]Stamps)
	add := func(keys ...string) {
		for _, key := range keys {
			relevant[key] |= 0
		}
	}
	for _, d := range o.Dialects.Dialects() {
		l := &d.Labels
		for _, keys := range [][]string{l.Model, l.Role, l.Replica, l.Pod, l.Namespace, l.Node, l.GPUModel, l.Reject, {l.Unless}} {
			add(keys...)
		}
	}
	add(keyCluster, keyNamespace, keyPod)
	add(instanceLabels...)
	for _, labels := range slices.Concat(slices.Collect(maps.Values(o.Labels)), o.Groups) {
		for _, label := range labels {
			add(label, flatLabel(label))
		}
	}
	for f := range fleet.FactCount {
		relevant[f.String()] |= StampOf(f)
	}
	relevant[keyReplica] |= StampReplica
	return relevant
}

// teaches are the labels of points that tell what may change while a replica
// stays who it is.
func (o *ClerkOptions) teaches() map[string]bool {
	teaches := make(map[string]bool)
	for _, labels := range o.Labels {
		for _, label := range labels {
			teaches[label], teaches[flatLabel(label)] = true, true
		}
	}
	for _, key := range variantKeys {
		teaches[key] = true
	}
	return teaches
}

// look hashes what of a point's labels tells who it is of, and finds the stamps
// among them.
func (c *Clerk) look(attributes pcommon.Map) (id fleet.ID, has Stamps) {
	var sum uint64
	for k, v := range attributes.All() {
		if stamps, ok := c.relevant[k]; ok {
			has |= stamps
			sum += c.names.pair(k, v)
		}
	}
	return fleet.ID(sum), has
}
