// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"slices"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
)

// whose is what a replica of the registry stands for: an engine's replica, a
// tenant, or a variant as somebody tells of it.
type whose interface {
	// wants tells whether what an entry tells is read.
	wants(e *dialect.Entry) bool
	// identity says whose a point is; otherwise why that cannot be known.
	identity(p *point) (fleet.Identity, Reason)
	// crowd makes the identity that of all who have no place of their own; false:
	// whoever has none is not read.
	crowd(id *fleet.Identity) bool
}

// replicas are those that serve.
type replicas struct {
	signals      []fleet.Signal
	groupBy      []string
	variants     variants
	accelerators bool // how they fare is read, too
	pods         pods
}

// wants: engines, and how their accelerators fare.
func (r *replicas) wants(e *dialect.Entry) bool {
	switch e.Dialect.Component {
	case dialect.Engine:
		return slices.Contains(r.signals, e.Signal)
	case dialect.GPU:
		return r.accelerators && e.Signal.TellsStrain()
	default:
		return false
	}
}

func (r *replicas) identity(p *point) (fleet.Identity, Reason) {
	id := fleet.Identity{Engine: p.entry.Dialect.Name}
	keys, reason := keysOf(r.groupBy, p.key)
	if reason != 0 {
		return id, reason
	}
	id.Keys = keys
	if id.Replica = p.replica(); id.Replica == "" {
		return id, NoIdentity
	}
	id.Replica = r.pods.recognize(id.Replica, p)
	id.Node = p.node()
	for _, key := range []string{keyNamespace, keyPod} {
		if value := p.key(key); value != "" && !slices.Contains(r.groupBy, key) {
			id.Where = append(id.Where, fleet.Label{Name: key, Value: value})
		}
	}
	id.Variant = r.variants.of(p, p.label)
	return id, 0
}

func (*replicas) crowd(*fleet.Identity) bool { return false }

// keysOf are the keys of a point's fleet that are known; otherwise why it has none.
func keysOf(groupBy []string, value func(key string) string) (keys []fleet.Label, reason Reason) {
	for _, key := range groupBy {
		switch value := value(key); {
		case value != "":
			keys = append(keys, fleet.Label{Name: key, Value: value})
		case key == keyModelName:
			return nil, NoModel
		}
	}
	if len(keys) == 0 {
		return nil, NoFleet
	}
	return keys, 0
}
