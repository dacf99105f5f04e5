// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// The places on a replica's way.
const (
	placeCreated = "created"
	placeBound   = "bound"
	placeReady   = "ready"
)

// replica is a pod, or the pods of a group.
type replica struct {
	pods []*member
	size int
}

func (r *replica) created() bool { return len(r.pods) >= r.size }

func (r *replica) all(is func(*member) bool) bool {
	return !slices.ContainsFunc(r.pods, func(m *member) bool { return !is(m) })
}

// tellWorkloads counts the replicas of every workload of the fleet.
func (a *account) tellWorkloads() {
	crews := map[ref]map[string]*replica{}
	for _, m := range a.members {
		if m.selected && m.active() {
			of := a.owners[m]
			if crews[of] == nil {
				crews[of] = map[string]*replica{}
			}
			a.join(crews[of], m)
		}
	}
	for of, w := range a.wishes {
		if crews[of] == nil && a.counts(of, w) {
			crews[of] = map[string]*replica{} // asked for, even if there is no pod
		}
	}
	scalers := map[ref]scaler{}
	for _, key := range slices.SortedFunc(maps.Keys(a.scalers), compareKeys) {
		scalers[a.scalers[key].target] = a.scalers[key]
	}
	for of := range a.short {
		if crews[of] == nil {
			delete(a.short, of)
		}
	}
	for _, of := range slices.SortedFunc(maps.Keys(crews), compareRefs) {
		w := a.workload(of, crews[of], scalers)
		if w.Overflow {
			continue // counted where it was named
		}
		a.report.Workloads = append(a.report.Workloads, w)
	}
}

// join puts a pod into its replica.
func (a *account) join(crew map[string]*replica, m *member) {
	key := "pod/" + m.Name
	if m.group != "" {
		key = "group/" + m.group
	}
	if crew[key] == nil {
		crew[key] = &replica{}
	}
	crew[key].pods = append(crew[key].pods, m)
	crew[key].size = max(crew[key].size, m.size)
}

func (a *account) workload(of ref, crew map[string]*replica, scalers map[ref]scaler) Workload {
	w := Workload{Identity: a.identities[of], Desired: -1}
	gaps := map[[2]string]*Gap{}
	miss := func(missing, reason string, n int, age time.Duration) {
		key := [2]string{missing, reason}
		if gaps[key] == nil {
			gaps[key] = &Gap{Missing: missing, Reason: reason}
		}
		gaps[key].Replicas += n
		gaps[key].Age = max(gaps[key].Age, age)
	}
	partly := false
	for _, r := range crew {
		switch {
		case !r.created():
			partly = true
			continue
		case !r.all((*member).bound):
			reason, age := a.unbound(r)
			miss(placeBound, reason, 1, age)
		case !r.all((*member).ready):
			reason, age := a.unready(r)
			miss(placeReady, reason, 1, age)
			w.Bound++
		default:
			w.Bound++
			w.Ready++
		}
		w.Created++
	}
	if asked := a.wishes[of]; asked != nil {
		w.Source, w.Desired = asked.source, asked.replicas
		// An autoscaler does nothing while its target is scaled to zero.
		if s, scaled := scalers[of]; scaled && w.Desired > 0 {
			w.Source, w.Desired = s.source, s.desired
		}
		if n := w.Desired - w.Created; n > 0 {
			reason, age := a.uncreated(of, asked, partly, w.Ready < w.Created)
			miss(placeCreated, reason, n, age)
		} else {
			delete(a.short, of)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(gaps), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		w.Gaps = append(w.Gaps, *gaps[key])
	}
	return w
}

// uncreated is why, and since when, there are fewer pods than were asked for: as the
// controller says, else since it was first seen.
func (a *account) uncreated(of ref, asked *wish, partly, unready bool) (string, time.Duration) {
	since, known := a.short[of]
	if !known {
		since = a.now
		a.short[of] = since
	}
	failure, failed := asked.failure, asked.since
	for _, w := range a.wishes { // what a Deployment's ReplicaSet says, it may not have repeated yet
		if w.owner == of && w.failure != "" && failure == "" {
			failure, failed = w.failure, w.since
		}
	}
	if failure != "" && failed.Before(since) {
		since = failed
	}
	switch says := strings.ToLower(failure); {
	case strings.Contains(says, "quota"):
		return "quota", a.since(since)
	case strings.Contains(says, "admission") || strings.Contains(says, "denied") || strings.Contains(says, "forbidden"):
		return "admission", a.since(since)
	case failure != "":
		return reasonOther, a.since(since)
	case partly:
		return "incomplete", a.since(since)
	case asked.ordered && unready:
		return "ordered", a.since(since)
	}
	return reasonOther, a.since(since)
}

// unbound is why a replica has a pod without a node: the reason of the oldest such pod.
func (a *account) unbound(r *replica) (reason string, age time.Duration) {
	age = -1
	for _, m := range r.pods {
		if waits := a.since(m.CreationTimestamp.Time); !m.bound() && waits > age {
			age, reason = waits, cmp.Or(a.waits[m], reasonOther)
		}
	}
	return reason, age
}

// tellInferencePools counts the replicas that InferencePools select.
func (a *account) tellInferencePools() {
	for _, key := range slices.SortedFunc(maps.Keys(a.selectors), compareKeys) {
		if len(a.report.Pools) == a.options.MaxSeries {
			a.report.Overflow.Rows++
			continue
		}
		crew := map[types.NamespacedName]*replica{}
		for _, m := range a.members {
			if m.Namespace == key.Namespace && m.active() && a.selectors[key].matches(m.Pod) {
				id := types.NamespacedName{Namespace: "pod", Name: m.Name}
				if m.group != "" {
					id = types.NamespacedName{Namespace: a.owners[m].name, Name: "group/" + m.group}
				}
				if crew[id] == nil {
					crew[id] = &replica{}
				}
				crew[id].pods = append(crew[id].pods, m)
			}
		}
		pool := Pool{Namespace: key.Namespace, Name: key.Name, Members: len(crew)}
		for _, r := range crew {
			if r.all((*member).ready) {
				pool.Ready++
			}
		}
		a.report.Pools = append(a.report.Pools, pool)
	}
}
