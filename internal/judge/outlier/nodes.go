// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package outlier

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// nodes is which flagged replicas stand together on a node, over all fleets.
type nodes struct {
	former, current map[Node][]suspect
}

// Node is a machine of a cluster.
type Node struct{ Cluster, Name string }

// nodeOf is where a replica runs; its cluster is known where it is a key of the
// fleet.
func nodeOf(id *fleet.Identity) Node {
	n := Node{Name: id.Node}
	for _, key := range id.Keys {
		if key.Name == "cluster" {
			n.Cluster = key.Value
		}
	}
	return n
}

// suspect is one flagged replica of a node.
type suspect struct{ replica, model string }

// turn begins an evaluation. A node that had an outlier is told of once more, as
// having none.
func (n *nodes) turn() {
	n.former, n.current = n.current, make(map[Node][]suspect, len(n.current))
	for node, suspects := range n.former {
		if len(suspects) > 0 {
			n.current[node] = nil
		}
	}
}

// add notes a flagged replica.
func (n *nodes) add(f *fleet.Fleet, id *fleet.Identity) {
	if node := nodeOf(id); node.Name != "" {
		n.current[node] = append(n.current[node], suspect{id.Replica, modelOf(f)})
	}
}

// modelOf is what the replicas of a fleet serve.
func modelOf(f *fleet.Fleet) string {
	for _, key := range f.Keys {
		if key.Name == "model_name" {
			return key.Value
		}
	}
	return f.Key()
}

// others is how many other replicas of a replica's node were flagged in the
// evaluation before.
func (n *nodes) others(id *fleet.Identity) (count int) {
	for _, s := range n.former[nodeOf(id)] {
		if s.replica != id.Replica {
			count++
		}
	}
	return count
}

// Nodes tells, at the end of an evaluation, of each node on which a replica is or
// was flagged, whether it is an outlier itself: replicas of two models and more
// are slow on it together.
func (a *Alarm) Nodes() iter.Seq2[Node, bool] {
	return func(yield func(Node, bool) bool) {
		for _, node := range slices.SortedFunc(maps.Keys(a.nodes.current), func(x, y Node) int {
			return cmp.Or(cmp.Compare(x.Cluster, y.Cluster), cmp.Compare(x.Name, y.Name))
		}) {
			suspects := a.nodes.current[node]
			several := slices.ContainsFunc(suspects, func(s suspect) bool { return s.model != suspects[0].model })
			if !yield(node, several) {
				return
			}
		}
	}
}
