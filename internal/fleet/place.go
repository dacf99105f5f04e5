// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

// Where is where a replica runs, by its names on Kubernetes: "" where it has
// none there, or several.
type Where struct{ Cluster, Namespace, Pod string }

// Place is where a replica runs, and how it can be found there.
type Place struct {
	Where
	UID       string   // of the pod
	Addresses []string // in the network: host:port, or IP
	Shared    bool     // with other replicas, so that nobody can be found there
}

// name is the pod's name among all pods; "" if it has none.
func (w *Where) name() string {
	if w.Pod == "" {
		return ""
	}
	return w.Cluster + "/" + w.Namespace + "/" + w.Pod
}
