// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import "strings"

// Label is one name and value.
type Label struct{ Name, Value string }

// Identity says whose a series is.
type Identity struct {
	// Replica names the serving unit: its pod's uid, else namespace/name, else
	// its service.instance.id.
	Replica string
	// Engine is the dialect that it speaks.
	Engine string
	// Node is the node that it runs on; empty if that is not known.
	Node string
	// Keys are the known keys of its fleet, in the order of group_by.
	Keys []Label
	// Where finds the replica on the raw series: namespace and pod on
	// Kubernetes, where they are no keys of the fleet.
	Where []Label
	// Variant is what a rollout changes: model_revision, engine_version,
	// config_hash, each where known.
	Variant []Label
	// Many: it stands for all who have no place of their own, and always has one.
	Many bool
}

// fleetKey is the fleet that the identity belongs to.
func (id *Identity) fleetKey() string { return keyOf(id.Keys) }

func keyOf(keys []Label) string {
	var b strings.Builder
	for _, l := range keys {
		b.WriteString(l.Name)
		b.WriteByte(0)
		b.WriteString(l.Value)
		b.WriteByte(0)
	}
	return b.String()
}

// ID is a hash of whatever tells two things apart. Two different ones collide
// with probability 2^-64.
type ID uint64
