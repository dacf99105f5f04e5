// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// account is a report in the making.
type account struct {
	*Store
	now    time.Time
	report Report

	members     []*member // by namespace and name
	owners      map[*member]ref
	identities  map[ref]Identity
	smallest    amount // GPU request of one pod of the fleet
	tolerations map[corev1.Toleration]bool
	waits       map[*member]string // why a pod has no node
	pools       map[poolKey]*pool
	slots       map[slotKey]*slot
}

// holder is who holds GPUs, and as what they count.
type holder struct {
	state State
	of    Identity
}

// open begins an account: it finds whose each pod is, and what the fleet wants at least.
func (s *Store) open(now time.Time) *account {
	a := &account{
		Store: s, now: now, owners: map[*member]ref{}, identities: map[ref]Identity{},
		smallest: amount{}, tolerations: map[corev1.Toleration]bool{}, waits: map[*member]string{},
		pools: s.pools(), slots: map[slotKey]*slot{},
	}
	models := map[ref]string{}
	for _, key := range slices.SortedFunc(maps.Keys(s.pods), compareKeys) {
		m := s.pods[key]
		of := s.owner(m.Pod)
		a.members, a.owners[m] = append(a.members, m), of
		if m.model != "" && (models[of] == "" || m.model < models[of]) {
			models[of] = m.model
		}
		if _, known := models[of]; !known {
			models[of] = ""
		}
		if m.selected && m.active() {
			a.learn(m)
		}
	}
	for of, w := range s.wishes {
		if of.kind == "ReplicaSet" && w.owner != (ref{}) && w.replicas == 0 {
			continue // what its owner has replaced
		}
		for _, m := range w.templates {
			if m.selected {
				a.learn(m)
			}
			if m.selected && s.counts(of, w) {
				models[of] = cmp.Or(m.model, models[of])
			}
		}
	}
	a.name(models)
	return a
}

// counts tells whether a wish is a workload by itself, and not a part of another.
func (s *Store) counts(of ref, w *wish) bool {
	return w.owner == ref{} || of.kind != "ReplicaSet" && s.wishes[w.owner] == nil
}

// name gives each workload its identity; beyond the limit they share one.
func (a *account) name(models map[ref]string) {
	for i, of := range slices.SortedFunc(maps.Keys(models), compareRefs) {
		if i < a.options.MaxSeries {
			a.identities[of] = Identity{Namespace: of.namespace, Kind: of.kind, Workload: of.name, Model: models[of]}
			continue
		}
		a.identities[of] = Identity{Overflow: true}
		a.report.Overflow.Rows++
	}
}

// learn notes what a pod of the fleet wants and tolerates.
func (a *account) learn(m *member) {
	for kind, n := range a.wants(m.Pod) {
		if least, known := a.smallest[kind]; n > 0 && (!known || n < least) {
			a.smallest[kind] = n
		}
	}
	for _, t := range m.Spec.Tolerations {
		t.TolerationSeconds = nil
		a.tolerations[t] = true
	}
}

// holderOf is as what a pod holds what it has; nil if it has given it back.
func (a *account) holderOf(m *member) *holder {
	h := &holder{state: AllocatedNotReady, of: a.identities[a.owners[m]]}
	switch {
	case m.ended():
		return nil
	case !m.selected || m.DeletionTimestamp != nil:
		h.state = Other
	case m.ready():
		h.state = AllocatedReady
	}
	return h
}

// compareHolders puts first as what a device counts that several hold.
func compareHolders(a, b holder) int {
	return cmp.Or(
		cmp.Compare(slices.Index(States, a.state), slices.Index(States, b.state)),
		compareIdentities(a.of, b.of),
	)
}

func compareIdentities(a, b Identity) int {
	return cmp.Or(
		compareBools(a.Overflow, b.Overflow),
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind),
		strings.Compare(a.Workload, b.Workload), strings.Compare(a.Model, b.Model),
	)
}

func comparePlaces(a, b Place) int {
	return cmp.Or(
		compareBools(a.Overflow, b.Overflow),
		strings.Compare(a.NodePool, b.NodePool), strings.Compare(a.GPUModel, b.GPUModel),
	)
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

func compareRefs(a, b ref) int {
	return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.kind, b.kind), strings.Compare(a.name, b.name))
}

// since is how long ago something was; never negative, as clocks differ.
func (a *account) since(t time.Time) time.Duration { return max(a.now.Sub(t), 0) }
